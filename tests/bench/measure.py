"""Processes that are measured: the target (hot), and who traces it (floor or ktrace).

Costs are CPU time: what the scheduler says that the target's and the tracer's threads have run (the first field of
/proc/PID/task/TID/schedstat, ns). On a machine with other work that is steady where wall time is not.
"""
import os
import re
import select
import signal
import statistics
import subprocess
import time

PATIENCE = 120  # seconds until a process is taken to hang
UNSTEADY = "the processor's time stamp counter is not steady"


class Hung(Exception):
    pass


class NotHere(Exception):
    """This machine has not what is measured."""


class Lines:
    """The lines of a pipe."""

    def __init__(self, stream, what):
        self.fd, self.what, self.buffer, self.seen = stream.fileno(), what, b"", []

    def until(self, pattern):
        end = time.monotonic() + PATIENCE
        while True:
            while b"\n" in self.buffer:
                line, self.buffer = self.buffer.split(b"\n", 1)
                self.seen.append(line.decode(errors="replace"))
                found = re.search(pattern, self.seen[-1])
                if found:
                    return found
            if not select.select([self.fd], [], [], max(0.0, end - time.monotonic()))[0]:
                raise Hung(f"{self.what} says nothing, after {self.seen[-3:]}")
            data = os.read(self.fd, 65536)
            if not data:
                raise Hung(f"{self.what} has ended, after {self.seen[-3:]}")
            self.buffer += data


def family(pid):
    """A process and its children: ktrace traces in a child of its own."""
    with open(f"/proc/{pid}/task/{pid}/children") as f:
        return [pid] + [child for each in f.read().split() for child in family(int(each))]


def cpu_ns(pid):
    """What the process has run so far; its threads must not end in between."""
    total = 0
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/schedstat") as f:
            total += int(f.read().split()[0])
    return total


def peak_mb(pid):
    with open(f"/proc/{pid}/status") as f:
        return int(re.search(r"VmHWM:\s+(\d+)", f.read()).group(1)) / 1024


def pinned_to(core, command):
    return command if core is None else ["taskset", "-c", str(core), *command]


class Target:
    """hot, waiting for commands."""

    def __init__(self, program, *options, core=None):
        self.process = subprocess.Popen(pinned_to(core, [program, *map(str, options)]), stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, bufsize=0)
        self.lines = Lines(self.process.stdout, "hot")
        self.lines.until("^ready")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    @property
    def pid(self):
        return self.process.pid

    def tell(self, line):
        self.process.stdin.write(line.encode() + b"\n")

    def go(self, calls, tracer=None, what="go"):
        """(CPU, wall) in ns per call, of the target and its tracer together."""
        pids = [self.pid] + (family(tracer.pid) if tracer else [])
        before = sum(map(cpu_ns, pids))
        self.tell(f"{what} {calls}")
        went = self.lines.until(r"^went calls (\d+) wall (\d+)")
        made = int(went.group(1))
        return (sum(map(cpu_ns, pids)) - before) / made, int(went.group(2)) / made

    def take(self, name, calls):
        """The median of what each call took, ns, measured by the calls themselves."""
        self.tell(f"take {name} {calls}")
        return int(self.lines.until(r"^took \w+ calls \d+ ns (\d+)").group(1))


class Floor:
    """The loop by hand."""

    def __init__(self, program, target, address, mode, core=None):
        self.process = subprocess.Popen(
            pinned_to(core, [program, "-p", str(target.pid), "-a", f"{address:x}", "-m", mode]),
            stdout=subprocess.PIPE)
        self.lines = Lines(self.process.stdout, "floor")
        self.lines.until("^armed")

    @property
    def pid(self):
        return self.process.pid

    def end(self):
        """The hits that it saw."""
        self.process.send_signal(signal.SIGINT)
        hits = int(self.lines.until(r"^hits (\d+)").group(1))
        self.process.wait()
        return hits


class Ktrace:
    """ktrace attached to the target, by traps unless another engine is named; its events go to `output`."""

    def __init__(self, program, target, arguments, core=None, output="/dev/null"):
        engine = [] if "--engine" in arguments else ["--engine", "trap"]
        self.started = time.monotonic()
        self.process = subprocess.Popen(
            pinned_to(core, [program, "attach", "-p", str(target.pid), "-o", output, *engine, *arguments]),
            stderr=subprocess.PIPE)
        self.lines = Lines(self.process.stderr, "ktrace")
        self.lines.until("Attached")
        self.attach_seconds = time.monotonic() - self.started

    @property
    def pid(self):
        return self.process.pid

    def await_jumps(self, program, target, count):
        """Seconds until `count` locations are jumps."""
        start = time.monotonic()
        while True:
            # A list of many keeps the tracer from its work.
            select.select([self.process.stderr], [], [], 0.05)
            order = [program, "ctl", "-p", str(target.pid), "list", "-v"]
            listed = subprocess.run(order, capture_output=True, text=True, check=True).stdout
            if UNSTEADY in listed:
                raise NotHere(UNSTEADY)
            if listed.count("[OPTIMIZED]") >= count:
                return time.monotonic() - start
            if time.monotonic() - start > 60:
                raise Hung(f"ktrace made {listed.count('[OPTIMIZED]')} of {count} jumps")

    def end(self):
        """The hits that it counted, at all locations."""
        self.process.send_signal(signal.SIGINT)
        rest = self.process.stderr.read()
        self.process.wait()
        text = "\n".join(self.lines.seen) + "\n" + (self.lines.buffer + rest).decode(errors="replace")
        return sum(int(n) for n in re.findall(r"ktrace: (\d+) hits? at ", text))


def address_of(target, program, symbol):
    """Where a function of the program lies in the process (a position-independent executable)."""
    nm = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout
    offset = int(re.search(rf"^(\w+) \w {symbol}$", nm, re.M).group(1), 16)
    with open(f"/proc/{target.pid}/maps") as f:
        return int(f.readline().split("-")[0], 16) + offset


def median_ratio(ours, theirs):
    """The median of the ratios of each round."""
    return statistics.median(a / b for a, b in zip(ours, theirs))
