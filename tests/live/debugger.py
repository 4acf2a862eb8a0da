"""What gdb says of the same program at the same places: the truth that stacks are compared with.

A run is repeated exactly: no address space randomization, the same environment. gdb stops at the Nth time that a place is
reached, as ktrace does. The program is where it was; libraries may lie elsewhere, by whole pages.
"""
import json
import os
import subprocess
import tempfile

from live import KTRACE, LIMIT, Trace
from workshop import require, room

SCRIPT = r"""
import gdb, json, os

def base_of(module):
    with open(f"/proc/{gdb.selected_inferior().pid}/maps") as f:
        for line in f:
            fields = line.split(None, 5)
            if len(fields) > 5 and os.path.basename(fields[5].strip()) == module:
                with open(fields[5].strip(), "rb") as file:  # a program that is linked to a fixed address says so itself
                    return 0 if file.read(18)[16] == 2 else int(fields[0].split("-")[0], 16)

def is_code(pc):
    with open(f"/proc/{gdb.selected_inferior().pid}/maps") as f:
        for line in f:
            fields = line.split(None, 5)
            low, high = (int(a, 16) for a in fields[0].split("-"))
            if low <= pc < high:
                return "x" in fields[1]
    return False

def stack():
    frames, frame = [], gdb.newest_frame()
    while frame is not None and len(frames) < 400:
        if not is_code(frame.pc()):  # without any information it goes on by guesses
            break
        sal = frame.find_sal()
        if frame.type() == gdb.TAILCALL_FRAME:  # guessed: nothing on the stack shows it
            frame = frame.older()
            continue
        frames.append({"addr": frame.pc(), "module": gdb.solib_name(frame.pc()), "name": frame.name(), "inlined": frame.type() == gdb.INLINE_FRAME,
                       "file": sal.symtab.filename if sal.symtab else None, "line": sal.line})
        try:
            frame = frame.older()
        except gdb.MemoryError:
            break
    return frames

for setting in ("pagination off", "confirm off", "breakpoint pending on", "backtrace past-main on",
                "backtrace past-entry on", "startup-with-shell off", "print demangle on", "debuginfod enabled off",
                "disable-randomization on", "stop-on-solib-events 1"):
    gdb.execute("set " + setting)
gdb.execute("unset environment LINES")
gdb.execute("unset environment COLUMNS")
for signal in ("SIGUSR1", "SIGUSR2", "SIGALRM", "SIGCHLD", "SIGSEGV", "SIGPROF"):
    gdb.execute(f"handle {signal} nostop noprint pass", to_string=True)
with open(os.environ.pop("KTRACE_PLACES")) as f:
    job = json.load(f)
gdb.execute("unset environment KTRACE_PLACES")
gdb.execute("starti", to_string=True)
stops = 0
while job["dynamic"] and stops < 2 or any(m and base_of(m) is None for m, _, _ in job["places"]):
    gdb.execute("continue", to_string=True)  # until the loader has mapped the program's libraries
    stops += 1
gdb.execute("set stop-on-solib-events 0")
answers = {}

class Place(gdb.Breakpoint):
    # Counts how often it is reached; looks at the stack when one of `wanted` (hit: number of the place) is due.
    def __init__(self, address, wanted):
        super().__init__(f"*{address:#x}", internal=True)
        self.silent, self.wanted, self.hits = True, wanted, 0

    def stop(self):
        self.hits += 1
        if self.hits in self.wanted:
            answers[self.wanted[self.hits]] = stack()
        return len(answers) == len(job["places"])

by_address = {}
for number, (module, address, hit) in enumerate(job["places"]):
    by_address.setdefault((base_of(module) if module else 0) + address, {})[hit] = number
for address, wanted in by_address.items():
    Place(address, wanted)
try:
    gdb.execute("continue", to_string=True)
except gdb.error:
    pass
with open(job["answers"], "w") as f:
    json.dump(answers, f)
"""


def exactly(environment):
    """The environment of both runs."""
    return {key: value for key, value in environment.items() if key not in ("LINES", "COLUMNS")}


def traced(command, places, environment, *options):
    """A run under ktrace with --stack; places: (SPEC, number of the hit). Of each: hit, SPEC, event."""
    require("setarch")
    out = os.path.join(tempfile.mkdtemp(dir=room()), "events")
    events = []
    done = None
    for number in sorted({hit for _, hit in places}):
        specs = list(dict.fromkeys(spec for spec, hit in places if hit == number))
        done = subprocess.run(["setarch", "-R", KTRACE, "run", "-o", out, "--format", "json", "--stack", "--every",
                               str(number), "--first", "1", *options, *[o for s in specs for o in ("-k", s)], "--", *command],
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                              env=exactly(environment), timeout=LIMIT)
        with open(out) as f:
            trace = Trace(f.read(), done.stderr.decode(errors="replace"), done.returncode)
        for event in trace.events():
            events.append((number, specs[event["probe"] - 1], event))
    return events, done


def debugged(command, places, environment, dynamic=True):
    """The same under gdb; places: (module or None, address in it, number of the hit). By the index of the place: its frames."""
    require("gdb")
    folder = tempfile.mkdtemp(dir=room())
    script, job, answers = (os.path.join(folder, name) for name in ("script.py", "job", "answers"))
    with open(script, "w") as f:
        f.write(SCRIPT)
    with open(job, "w") as f:
        json.dump({"places": places, "answers": answers, "dynamic": dynamic}, f)
    done = subprocess.run(["gdb", "-q", "-nx", "-batch", "-x", script, "--args", *command], stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=LIMIT * 3,
                          env=dict(exactly(environment), KTRACE_PLACES=job))
    if not os.path.exists(answers):
        raise AssertionError(done.stderr.decode(errors="replace")[-3000:])
    with open(answers) as f:
        return {int(number): frames for number, frames in json.load(f).items()}
