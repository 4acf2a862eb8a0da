"""The socket of ktrace ctl: its owner, its place, and the harm that a client could do."""
import glob
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

from live import KTRACE, LIMIT, ktrace, program, thread_folders
from test_ctl import Ctl, ctl

PYTHON = "/usr/bin/python3"  # which another user may run, too

# A process that its own child traces, which does something at the socket that the ktrace of that number would have.
PRETENDER = r"""
import ctypes, os, socket, sys, time
libc = ctypes.CDLL(None)
may_trace, traced = os.pipe(), os.pipe()
tracer = os.fork()
if tracer:
    libc.prctl(0x59616d61, tracer, 0, 0, 0)  # PR_SET_PTRACER
    os.write(may_trace[1], b"1")
    os.read(traced[0], 1)
    print("ready", os.getpid(), flush=True)
    os.wait()
    os._exit(0)
os.read(may_trace[0], 1)
libc.ptrace(0x4206, os.getppid(), 0, 0)  # PTRACE_SEIZE
directory = os.environ["XDG_RUNTIME_DIR"] + "/ktrace"
os.makedirs(directory, 0o700, exist_ok=True)
listener = socket.socket(socket.AF_UNIX)
listener.bind(f"{directory}/{os.getpid()}-{os.stat('/proc/self/ns/pid').st_ino}.sock")
listener.listen()
os.write(traced[1], b"1")
client = listener.accept()[0]
client.recv(1000)
exec(sys.argv[1])
"""
CONTROLS = r'client.sendall(b"ktrace-ctl 1 0 12 9\nred \x1b[31m\n\xe2\x82no\x1b[2J\0\n\n")'
NOTHING = "client.recv(1000)"  # until it is let down
WORK = """
end = time.monotonic() + 12
while time.monotonic() < end:
    pass
client.sendall(b"ktrace-ctl 1 0 5 0\\ndone\\n")
"""


def socket_of(tracer):
    for directory in (os.environ.get("XDG_RUNTIME_DIR"), None):
        path = f"{directory}/ktrace" if directory else f"/tmp/ktrace-{os.geteuid()}"
        for path in glob.glob(f"{path}/{tracer.tracing}-*.sock"):
            return path
    raise AssertionError("there is no socket")


def traced_by(ancestor):
    """The process `calls` below another one, by the numbers of this pid namespace."""
    children = []
    for task in thread_folders(ancestor):
        with open(f"{task}/children") as f:
            children += [int(pid) for pid in f.read().split()]
    for pid in children:
        with open(f"/proc/{pid}/comm") as f:
            if f.read() == "calls\n":
                return pid
        if found := traced_by(pid):
            return found
    return None


def own_number(pid):
    """The number that a process has in its own pid namespace."""
    with open(f"/proc/{pid}/status") as f:
        return int(re.search(r"^NSpid:.*\s(\d+)$", f.read(), re.M)[1])


class Socket(Ctl):
    def in_a_directory_of_its_own(self):
        """This test's sockets are apart from those of others that run meanwhile."""
        runtime = tempfile.TemporaryDirectory()
        self.addCleanup(runtime.cleanup)
        os.chmod(runtime.name, 0o755)
        changed = unittest.mock.patch.dict(os.environ, XDG_RUNTIME_DIR=runtime.name)
        changed.start()
        self.addCleanup(changed.stop)

    def connect(self):
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(LIMIT)
        connection.connect(socket_of(self.tracer))
        self.addCleanup(connection.close)
        return connection

    def test_it_is_the_user_s_own(self):
        self.begin("-k", "do_work", "--count")
        path = socket_of(self.tracer)
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
        self.assertEqual(os.stat(os.path.dirname(path)).st_mode & 0o777, 0o700)
        self.finish()
        self.assertFalse(os.path.exists(path))

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("setpriv"), "needs root and setpriv")
    def test_another_user_is_refused(self):
        self.begin("-k", "do_work", "--count")
        done = subprocess.run(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", KTRACE, "ctl", "-p",
                               str(self.target.pid), "list"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=LIMIT, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertRegex(done.stderr, r"^ktrace: ktrace \(process \d+\) belongs to another user \(uid 0\); only that "
                                      r"user and root may talk to it\n$")
        self.finish()

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("setpriv") and os.path.exists(PYTHON),
                         f"needs root, setpriv and {PYTHON}")
    def test_another_user_who_reaches_it_is_not_heard(self):
        """Even where the directory and the socket were opened to everybody."""
        self.in_a_directory_of_its_own()
        self.begin("-k", "do_work", "--count")
        path = socket_of(self.tracer)
        os.chmod(os.path.dirname(path), 0o755)
        os.chmod(path, 0o777)
        try:
            script = ("import socket,sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); "
                      "s.sendall(b'ktrace-ctl 1 1 5\\nlist\\0'); print(len(s.recv(100)))")
            done = subprocess.run(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", PYTHON, "-c",
                                   script, path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=LIMIT,
                                  text=True, check=False)
            self.assertTrue(done.stdout == "0\n" or "BrokenPipe" in done.stderr or "ConnectionReset" in done.stderr,
                            done)
        finally:
            os.chmod(os.path.dirname(path), 0o700)
            os.chmod(path, 0o600)
        self.finish()

    def test_garbage_is_harmless(self):
        self.begin("-k", "do_work", "--count")
        for garbage in (b"\0", b"GET / HTTP/1.0\r\n\r\n", b"ktrace-ctl 1 1 999999999999\n", b"ktrace-ctl 1 2 2\nab",
                        b"ktrace-ctl 1 1 4\nabcd", b"ktrace-ctl 1 -1 -1\n", b"k" * 1000000, b"ktrace-ctl 1 " * 1000,
                        b"ktrace-ctl 1 1 5\nlisT\0", b"ktrace-ctl 1 0 0\n", os.urandom(4096),
                        b"ktrace-ctl 1 3 9\nctl\0\xff\xff\0\n\0"):
            with self.subTest(garbage=garbage[:30]):
                connection = self.connect()
                try:
                    connection.sendall(garbage)
                    answer = connection.recv(1000)
                    self.assertRegex(answer, rb"^ktrace-ctl 1 [12] 0 \d+\nktrace: |^$")
                except (BrokenPipeError, ConnectionResetError):
                    pass  # it has heard enough
        self.assertEqual(self.ask("list").count("\n"), 1)
        calls = self.work()
        self.assertEqual(self.hits(), {1: calls})
        self.finish()

    def test_nobody_waits_for_a_client_that_does_not_come_to_the_point(self):
        self.begin("-k", "do_work", "--count")
        waiting = [self.connect() for _ in range(40)]
        waiting[0].sendall(b"ktrace-ctl 1 2")
        for half_closed in waiting[1:5]:
            half_closed.sendall(b"ktrace-ctl 1 3 100\nctl\0")
            half_closed.shutdown(socket.SHUT_WR)
        for gone in waiting[5:10]:
            gone.sendall(b"ktrace-ctl 1 4 18\nctl\0-p\0" + str(self.target.pid).encode())
            gone.close()
        calls = self.work()
        self.assertEqual(self.hits(), {1: calls})
        # An order in pieces is an order.
        words = b"".join(word + b"\0" for word in (b"ctl", b"-p", str(self.target.pid).encode(), b"list"))
        for byte in b"ktrace-ctl 1 4 %d\n%s" % (len(words), words):
            waiting[20].sendall(bytes([byte]))
        answer = b""
        while not re.match(rb"ktrace-ctl 1 0 \d+ 0\n[0-9a-f]{16} k do_work", answer):
            part = waiting[20].recv(1000)
            self.assertNotEqual(part, b"", answer)
            answer += part
        self.finish()

    def test_a_client_that_does_not_listen_holds_nobody_up(self):
        self.begin("-k", "calls:*", "--count")
        words = b"".join(word + b"\0" for word in (b"ctl", b"-p", str(self.target.pid).encode(), b"list"))
        deaf = [self.connect() for _ in range(10)]
        for connection in deaf:
            connection.sendall(b"ktrace-ctl 1 4 %d\n%s" % (len(words), words))
        self.work()
        self.assertGreater(self.ask("list").count("\n"), 2)
        self.finish()

    def test_of_a_process_that_something_else_traces(self):
        target = self.start(program("calls"), 1, 1)
        answer = ctl(target, "list")
        self.assertEqual(answer.status, 1)
        self.assertRegex(answer.err, r"^ktrace: no ktrace traces process \d+ \(calls\); ktrace attach -p \d+ starts one\n$")

    def test_what_only_looks_like_ktrace_steers_no_terminal(self):
        """Root asks about a process of another user's, whose child traces it and answers."""
        self.in_a_directory_of_its_own()
        target = self.start(sys.executable, "-c", PRETENDER, CONTROLS)
        answer = ktrace("ctl", "-p", target.pid, "list")
        self.assertEqual(answer.status, 0, answer)
        self.assertEqual((answer.out, answer.err), ("red \\x1b[31m\n\\xe2\\x82", "no\\x1b[2J\\x00\n\n"))
        self.assertEqual(target.end(), 0)

    def test_a_stopped_tracer_is_not_waited_for(self):
        self.begin("-k", "do_work", "--count")
        tracing = self.tracer.tracing
        os.kill(tracing, signal.SIGSTOP)
        try:
            answer = ctl(self.target, "disable", "1")
        finally:
            os.kill(tracing, signal.SIGCONT)
        self.assertEqual((answer.status, answer.out), (1, ""), answer)
        self.assertEqual(answer.err, f"ktrace: ktrace (process {tracing}) does not answer: it is stopped; kill -CONT "
                                     f"{tracing} lets it go on, and it carries the order out then\n")
        self.assertRegex(self.ask("list"), r" \[DISABLED\]\n$")
        self.finish()

    def test_who_works_is_waited_for_and_who_does_nothing_is_not(self):
        self.in_a_directory_of_its_own()
        targets = [self.start(sys.executable, "-c", PRETENDER, what) for what in (WORK, NOTHING)]
        orders = []
        for target in targets:
            order = subprocess.Popen([KTRACE, "ctl", "-p", str(target.pid), "list"], stdout=subprocess.PIPE,
                                     stderr=subprocess.PIPE, text=True)
            self.addCleanup(order.kill)
            orders.append(order)
        (worked, done_nothing) = (order.communicate(timeout=LIMIT) for order in orders)
        self.assertEqual((worked, orders[0].returncode), (("done\n", ""), 0))
        self.assertEqual((done_nothing[0], orders[1].returncode), ("", 1))
        self.assertRegex(done_nothing[1], r"^ktrace: ktrace \(process (\d+)\) does not answer: it does nothing; kill \1 "
                                          r"ends it, or kill -9 \1\n$")
        for target in targets:
            self.assertEqual(target.end(), 0)

    def test_a_socket_of_a_killed_ktrace_is_taken_away(self):
        self.in_a_directory_of_its_own()  # any other ktrace would take it away
        self.begin("-k", "main", "--count")
        left = socket_of(self.tracer)
        os.kill(self.tracer.tracing, signal.SIGKILL)
        self.tracer.process.wait()
        self.assertTrue(os.path.exists(left))
        other = self.attach(self.target, "-k", "do_work", "--count")
        self.assertFalse(os.path.exists(left))
        other.stop()

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("unshare"), "needs root and unshare")
    def test_a_socket_is_left_alone_by_who_does_not_see_its_process(self):
        """Another container shares the directory, not the process numbers."""
        self.begin("-k", "do_work", "--count")
        other = subprocess.run(["unshare", "--pid", "--fork", "--mount-proc", KTRACE, "run", "-k", "do_work", "--count",
                                "--", program("calls"), "1", "1"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               stdin=subprocess.DEVNULL, timeout=LIMIT, text=True, check=False)
        if "unshare" in other.stderr:
            self.skipTest(other.stderr)
        self.assertEqual(other.returncode, 0, other.stderr)
        self.assertEqual(self.ask("list").count("\n"), 1)
        self.finish()

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("unshare"), "needs root and unshare")
    def test_two_containers_share_the_directory_and_the_process_numbers(self):
        """Both ktraces have the same number, each in its own pid namespace; ctl finds either from outside."""
        traces = []
        for _ in range(2):
            trace = subprocess.Popen(["unshare", "--pid", "--fork", "--mount-proc", "--kill-child", KTRACE, "run", "-k",
                                      "do_work", "--count", "--", program("calls"), "1", "10"], stdin=subprocess.PIPE,
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            for stream in (trace.stdin, trace.stdout, trace.stderr):
                self.addCleanup(stream.close)
            self.addCleanup(trace.wait)
            self.addCleanup(trace.kill)
            line = trace.stdout.readline()
            if not line and "unshare" in trace.stderr.read():
                self.skipTest("unshare is not permitted")
            self.assertRegex(line, "^ready")
            traces.append(trace)
        targets = [traced_by(trace.pid) for trace in traces]
        self.assertEqual([own_number(pid) for pid in targets], [own_number(targets[0])] * 2)
        for pid, own in zip(targets, ("-j", "-r")):
            added = ktrace("ctl", "-p", pid, "add", own, "do_work", "--count")
            self.assertEqual((added.status, added.err), (0, ""), added)
        for pid, own in zip(targets, "jr"):
            listed = ktrace("ctl", "-p", pid, "list")
            self.assertEqual([line.split()[1] for line in listed.out.splitlines()], ["k", own], listed)
        for trace in traces:
            trace.stdin.write("go\n")
            trace.stdin.close()
            self.assertEqual(trace.wait(timeout=LIMIT), 0)

    def test_a_directory_of_somebody_else_is_not_used(self):
        """Tracing goes on without ctl, and says so."""
        with tempfile.TemporaryDirectory() as runtime:
            os.mkdir(f"{runtime}/ktrace", 0o777)
            os.chmod(f"{runtime}/ktrace", 0o777)
            environment = dict(os.environ, XDG_RUNTIME_DIR=runtime)
            target = self.start(program("calls"), 1, 10)
            tracer = self.attach(target, "-k", "do_work", "--count", env=environment)
            self.assertEqual(os.listdir(f"{runtime}/ktrace"), [])
            self.assertEqual(ctl(target, "list").status, 0)  # in /tmp instead
            tracer.stop()
