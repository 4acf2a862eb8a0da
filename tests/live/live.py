"""What live tests share: targets that state the truth, and ktrace beside them.

No test waits by time: a target says that it is ready, ktrace says that it is attached.
"""
import functools
import glob
import json
import os
import platform
import re
import select
import signal
import subprocess
import tempfile
import time
import unittest

BUILD = os.environ["KTRACE_BUILD"]
KTRACE = os.path.join(BUILD, "cmd", "ktrace", "ktrace")
TARGETS = os.path.join(BUILD, "tests", "targets")
MACHINE = platform.machine()
LIBC = os.path.realpath(f"/lib/{MACHINE}-linux-gnu/libc.so.6")
NUMBERS = {"x86_64": {"read": 0, "write": 1, "writev": 20, "openat": 257, "semtimedop": 220, "poll": 7},
           "aarch64": {"read": 63, "write": 64, "writev": 66, "openat": 56, "semtimedop": 192, "poll": 73}}[MACHINE]  # of system calls
# Registers: of integer arguments, of a result, the program counter.
ARGUMENTS = {"x86_64": ("di", "si", "dx"), "aarch64": ("x0", "x1", "x2")}[MACHINE]
RESULT, PC = {"x86_64": ("ax", "ip"), "aarch64": ("x0", "pc")}[MACHINE]
SLOW = "KTRACE_TEST_SLOW" in os.environ
LIMIT = float(os.environ.get("KTRACE_TEST_LIMIT", "120"))  # seconds until something is taken to hang

# A shell's job in the background ignores it, and so would what is started here, until it asks for it: a ktrace that gets
# SIGINT in its first millisecond would not end.
signal.signal(signal.SIGINT, signal.default_int_handler)


def fewer(count):
    """So many; a twentieth on a machine that is emulated, where each stop takes ten times as long."""
    return max(1, count // 20) if SLOW else count


def program(name):
    return os.path.join(TARGETS, name)


TOOK = r"took (?:<|~?)[\d.]+ (?:ns|us|ms|s)"


class Lines:
    """Lines of a pipe, with a limit on how long one may take to come."""

    def __init__(self, stream, what):
        self.fd, self.what, self.buffer, self.seen = stream.fileno(), what, b"", []

    def next(self):
        end = time.monotonic() + LIMIT
        while b"\n" not in self.buffer:
            if not select.select([self.fd], [], [], max(0.0, end - time.monotonic()))[0]:
                raise AssertionError(f"{self.what} says nothing; so far: {self.seen} {self.buffer!r}")
            data = os.read(self.fd, 65536)
            if not data:
                raise EOFError(f"{self.what} has ended; so far: {self.seen} {self.buffer!r}")
            self.buffer += data
        line, self.buffer = self.buffer.split(b"\n", 1)
        self.seen.append(line.decode(errors="replace"))
        return self.seen[-1]

    def told(self, text):
        """Whether this is among what has been said and not been read."""
        while select.select([self.fd], [], [], 0)[0]:
            data = os.read(self.fd, 65536)
            if not data:
                break
            self.buffer += data
        return text in self.buffer.decode(errors="replace")

    def until(self, pattern):
        while True:
            line = self.next()
            found = re.search(pattern, line)
            if found:
                return found


def has_sanitizers():
    """This build of ktrace has, which take memory, time and descriptors of their own."""
    with open(KTRACE, "rb") as f:
        return b"__asan_report_load8" in f.read()  # its own text names __asan_init


class Target:
    """A program of tests/targets (or any other) that waits for lines on its standard input."""

    def __init__(self, *command, ready=r"^ready", env=None, cwd=None, process_group=None):
        self.process = subprocess.Popen([str(c) for c in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        env=env, cwd=cwd, process_group=process_group)
        self.lines = Lines(self.process.stdout, command[0])
        if ready:
            self.lines.until(ready)

    @property
    def pid(self):
        return self.process.pid

    def tell(self, line="go"):
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def truth(self, pattern):
        return self.lines.until(pattern)

    def end(self):
        """Its exit status, once its input has ended."""
        self.process.stdin.close()
        try:
            status = self.process.wait(LIMIT)
        finally:
            self.kill()
        return status

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()


class Trace:
    """What ktrace printed and how it ended."""

    def __init__(self, out, err, status):
        self.out, self.err, self.status = out, err, status

    def __repr__(self):
        return f"status {self.status}\n--- out\n{self.out[-4000:]}\n--- err\n{self.err[-4000:]}"

    @property
    def lines(self):
        return self.out.splitlines()

    @property
    def payloads(self):
        """The lines without time and comm/tid."""
        return [line.split(" ", 2)[2] for line in self.lines if re.match(r"\d\d:\d\d:\d\d\.\d{6} ", line)]

    @property
    def objects(self):
        return [json.loads(line) for line in self.lines]

    def events(self, kind=None):
        return [o for o in self.objects if o["type"] not in ("summary", "row", "expectation") and (kind is None or o["type"] == kind)]

    def rows(self):
        """Of the table of all functions, by their names; of --interval none."""
        return {o["symbol"]: o for o in self.objects if o["type"] == "row" and "interval" not in o}

    def summaries(self):
        return [o for o in self.objects if o["type"] == "summary"]

    def summary(self, symbol, kind=None):
        found = [s for s in self.summaries() if s["symbol"] == symbol and kind in (None, s["kind"])]
        assert len(found) == 1, f"{symbol}: {found}"
        return found[0]


def adds_up(summary):
    parts = ("events", "filtered", "unselected", "missed", "unreturned", "dropped")
    return summary["hits"] == sum(summary[p] for p in parts)


def figure(text):
    """What was done, and how often: shown at the end of a test run, and by the long forms in tests/soak."""
    print(f"figure: {text}", flush=True)


def with_engine(command, arguments):
    """Each trace of a run of the tests by another engine than the default: KTRACE_TEST_ENGINE=trap."""
    engine = os.environ.get("KTRACE_TEST_ENGINE")
    if not engine or command not in ("attach", "run") or "--engine" in arguments:
        return (command, *arguments)
    return (command, "--engine", engine, *arguments)


class Ktrace:
    """ktrace in the background, attached when the constructor returns."""

    def __init__(self, *arguments, command="attach", wait=True, env=None, pass_fds=()):
        self.out = tempfile.TemporaryFile()
        self.process = subprocess.Popen([KTRACE, *map(str, with_engine(command, arguments))], stdout=self.out,
                                        stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, env=env, pass_fds=pass_fds)
        self.errors = Lines(self.process.stderr, "ktrace")
        if wait:
            self.errors.until(r"Attached \d+ probe")

    @property
    def pid(self):
        return self.process.pid

    @property
    def tracing(self):
        """The process that traces: ktrace's child."""
        return children_of(self.pid)[0]

    def finish(self):
        """Waits for its end."""
        rest = b""
        end = time.monotonic() + LIMIT
        fd = self.process.stderr.fileno()
        while True:
            if not select.select([fd], [], [], max(0.0, end - time.monotonic()))[0]:
                self.process.kill()
                raise AssertionError(f"ktrace does not end: {self.errors.seen} {rest!r}")
            data = os.read(fd, 65536)
            if not data:
                break
            rest += data
        status = self.process.wait(LIMIT)
        self.process.stderr.close()
        self.out.seek(0)
        out = self.out.read().decode(errors="replace")
        self.out.close()
        err = "\n".join(self.errors.seen) + "\n" + (self.errors.buffer + rest).decode(errors="replace")
        return Trace(out, err, status)

    def stop(self, sig=signal.SIGINT):
        self.process.send_signal(sig)
        return self.finish()


def folders_of(pid):
    """Those of its threads, which may have ended since; none where the process has."""
    return glob.glob(f"/proc/{pid}/task/*")


def thread_folders(pid):
    """Those of all its threads that have not ended meanwhile: one at least. AssertionError: the process has ended, though
    its parent may not have waited for it yet."""
    folders = [folder for folder in folders_of(pid) if os.path.exists(f"{folder}/status")]
    if all(state_of(folder) in "ZX" for folder in folders):
        raise AssertionError(f"process {pid} has ended")
    return folders


def mappings_left(pid):
    """How many executable ones without a file a process has: ktrace's, where it makes none itself."""
    with open(f"/proc/{pid}/maps") as maps:
        return sum("x" in fields[1] and len(fields) == 5 for fields in map(str.split, maps))


def children_of(pid):
    """The processes that a single-threaded one has started; none where it has ended."""
    return [int(child) for child in told_of(f"/proc/{pid}/task/{pid}", "children").split()]


def told_of(folder, file):
    """The state of a process or thread by /proc; "" of one that has ended meanwhile."""
    try:
        with open(f"{folder}/{file}") as f:
            return f.read()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def state_of(folder):
    """The state letter of a process or thread, by its folder in /proc; X: it is there no more."""
    stat = told_of(folder, "stat")
    return stat.rsplit(")", 1)[1].split()[0] if stat else "X"


def wait_until_let_go(pid):
    """No thread of it is traced any more: a tracer may still be at work when its end is reported, or be on its way out."""
    def traced(folder):
        status = told_of(folder, "status")
        return status and "TracerPid:\t0\n" not in status
    until(lambda: not any(map(traced, thread_folders(pid))), f"process {pid} is let go")


def sleeps_in(folder):
    """The number of the system call that a thread sleeps in; None: it does not sleep."""
    place = told_of(folder, "syscall").split() or ["running"]
    return int(place[0]) if place[0] not in ("running", "-1") and state_of(folder) == "S" else None


WRITE = NUMBERS["write"]  # prints a line


def is_asleep(pid):
    """It sleeps, and not for its reader."""
    return sleeps_in(f"/proc/{pid}") not in (None, WRITE)


def wait_until_asleep(pid):
    """The process has said that it is ready, and goes to sleep next."""
    until(lambda: is_asleep(pid), "the process sleeps")


def until(condition, what):
    """Waits for something that no line reports."""
    end = time.monotonic() + LIMIT
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"waited in vain until {what}")
        os.sched_yield()


def ktrace(*arguments, env=None, stdin=subprocess.DEVNULL, cwd=None):
    """Runs ktrace to its end."""
    command = with_engine(arguments[0], arguments[1:]) if arguments else ()
    done = subprocess.run([KTRACE, *map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          stdin=stdin, timeout=LIMIT, env=env, cwd=cwd)
    return Trace(done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"), done.returncode)


@functools.cache
def debug_registers_trap():
    """Some virtual machines have debug registers that stop nothing."""
    return subprocess.run([program("watchable")], timeout=LIMIT).returncode == 0


NO_WATCHES = "the debug registers of this machine stop nothing"


def has_own_text(pid):
    """That of the process's own program is as in its file, though ktrace is there."""
    path = os.readlink(f"/proc/{pid}/exe")
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb") as memory, open(path, "rb") as file:
        for fields in map(str.split, maps):
            if "x" not in fields[1] or fields[-1] != path:
                continue
            start, end = (int(address, 16) for address in fields[0].split("-"))
            memory.seek(start)
            now = memory.read(end - start)
            file.seek(int(fields[2], 16))
            before = file.read(end - start)
            if now[:len(before)] != before:
                return False
    return True


class LiveTest(unittest.TestCase):
    """Ends what a test started, whatever became of it."""

    def start(self, *command, **options):
        target = Target(*command, **options)
        self.addCleanup(target.kill)
        return target

    def attach(self, target, *arguments, **options):
        return self.trace("-p", target.pid, *arguments, **options)

    def trace(self, *arguments, **options):
        if "-w" in arguments and not debug_registers_trap():
            self.skipTest(NO_WATCHES)
        tracer = Ktrace(*arguments, **options)

        def clean_up():
            if tracer.process.poll() is None:
                tracer.process.kill()
                tracer.process.wait()
            tracer.process.stderr.close()
            if not tracer.out.closed:
                tracer.out.close()

        self.addCleanup(clean_up)
        return tracer

    def check_untouched(self, target, generates_code=False):
        """Nothing of ours is left in the process: no tracer, no mapping, its text as in the file. Of one that generates code
        itself no anonymous mapping is asked whose it is."""
        for folder in thread_folders(target.pid):
            status = told_of(folder, "status")
            if status:
                self.assertIn("TracerPid:\t0\n", status)
                self.assertNotIn("State:\tt", status)
        self.check_text(target, has_code_without_file=generates_code)

    def check_text(self, target, has_code_without_file=False):
        """No byte of it is another than in the file."""
        # Of a leader that has ended before its threads the files are empty.
        folder = next(f for f in thread_folders(target.pid) if state_of(f) not in "ZX")
        with open(f"{folder}/maps") as f, open(f"{folder}/mem", "rb") as memory:
            for line in f:
                fields = line.split(None, 5)
                if "x" not in fields[1]:
                    continue
                path = fields[5].strip() if len(fields) > 5 else ""
                if path == "" and has_code_without_file:
                    continue
                self.assertNotEqual(path, "", f"an executable mapping without a file: {line}")
                if not path.startswith("/"):
                    continue
                start, end = (int(a, 16) for a in fields[0].split("-"))
                memory.seek(start)
                now = memory.read(end - start)
                with open(path, "rb") as file:
                    file.seek(int(fields[2], 16))
                    before = file.read(end - start)
                self.assertEqual(now[:len(before)], before, f"{path} is not as in its file")
