"""kill -9 of ktrace, of its tracing process, of both: under load, at random moments. The target checks its own results.

The moments are events, counted by the target; how many is random, from a fixed seed. The long form is
tests/soak/kills.
"""
import ctypes
import errno
import os
import signal
import subprocess
import sys
import unittest

from live import (KTRACE, LIMIT, MACHINE, SLOW, Lines, LiveTest, children_of, figure, folders_of, has_own_text, ktrace, mappings_left, program,
                  sleeps_in, state_of, thread_folders, until, wait_until_asleep, wait_until_let_go)
from survivor import PROBES, Survivor
from test_sleepers import sleep_on

IDLE = ("-k", "unexpected", "-j", "tick", "--count")  # nothing that runs
NANOSLEEP = {"x86_64": (35, 230), "aarch64": (101, 115)}[os.uname().machine]  # and clock_nanosleep
PR_SET_CHILD_SUBREAPER = 36
AT_RISK = 12  # requests from the signal's stop to one at which nothing would be delivered
EVERY = int(os.environ.get("KTRACE_KILL_EVERY", "13"))  # of the tracing process's requests
ROUNDS = int(os.environ.get("KTRACE_KILLS", "6"))


def kill_both(tracer):
    """The tracing process first: it would detach without its guardian, and that one would mend, were it not stopped."""
    tracing = tracer.tracing
    os.kill(tracer.pid, signal.SIGSTOP)
    until(lambda: state_of(f"/proc/{tracer.pid}") == "T", "the guardian is stopped")
    os.kill(tracing, signal.SIGKILL)
    os.kill(tracer.pid, signal.SIGKILL)


def adopt_orphans(adopts=True):
    """Whether this process becomes the parent of a descendant whose own parent ends. Where the system's first process does,
    the kernel lets the orphan's process group, in which one is stopped, go on at once (setpgid(2))."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, int(adopts), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def sleeps_a_moment(pid):
    """Some thread of a ktrace does."""
    return any(sleeps_in(folder) in NANOSLEEP for each in (pid, *children_of(pid)) for folder in folders_of(each))


def kill_what_is_called_ktrace(tracer):
    """As `pkill -9 -f ktrace` does."""
    def is_called_so(pid):
        with open(f"/proc/{pid}/comm") as comm, open(f"/proc/{pid}/cmdline") as command:
            return "ktrace" in comm.read() + command.read()

    for pid in [pid for pid in (tracer.pid, tracer.tracing) if is_called_so(pid)]:
        os.kill(pid, signal.SIGKILL)


class Kills(Survivor):
    def kill(self, kill_it, probes=PROBES, most=60):
        tracer = self.attach(self.target, "--engine", "trap", *probes)
        self.wait_random(most)
        self.left = mappings_left(self.target.pid)
        kill_it(tracer)
        trace = tracer.finish()
        self.wait_random(3 * most)
        return trace

    def test_of_ktrace(self):
        """Its tracing process detaches: nothing is left, whatever the target does with its signals."""
        for arguments in (("8", "timer"), ("8", "blocked", "3"), ("8", "alone", "3"), ("8", "handler"),
                          ("8", "blocked", "2", "ignore"), ("8", "blocked", "2", "handler", "timer")):
            with self.subTest(arguments):
                self.begin(*arguments)
                for _ in range(ROUNDS):
                    self.kill(kill_what_is_called_ktrace)
                self.check_end()
                figure(f"{ROUNDS} kills of ktrace survived by {' '.join(arguments)}")

    def test_of_the_tracing_process(self):
        """The guardian puts everything back and says so."""
        self.begin("8")
        for _ in range(ROUNDS):
            trace = self.kill(lambda tracer: os.kill(tracer.tracing, signal.SIGKILL))
            self.assertEqual(trace.status, 1)
            self.assertIn("the tracing process was killed by SIGKILL", trace.err)
            self.assertRegex(trace.err, rf"took out of process {self.target.pid} .*{self.left} mappings")
            self.check_untouched(self.target)
        self.check_end()
        figure(f"{ROUNDS} kills of its tracing process survived")

    def test_on_a_busy_processor(self):
        """Its threads are brought out of the handler although they seldom come to run."""
        allowed = os.sched_getaffinity(0)
        self.addCleanup(os.sched_setaffinity, 0, allowed)
        os.sched_setaffinity(0, {max(allowed)})
        self.begin("8", under=("nice", "-n", "19"))
        other = subprocess.Popen([sys.executable, "-c", "while True: pass"])
        self.addCleanup(other.wait)
        self.addCleanup(other.kill)
        for _ in range(ROUNDS):
            trace = self.kill(lambda tracer: os.kill(tracer.tracing, signal.SIGKILL), most=20)
            self.assertRegex(trace.err, rf"took out of process {self.target.pid} .*{self.left} mappings")
        self.check_end()
        figure(f"{ROUNDS} kills of its tracing process survived on a busy processor")

    def test_of_both(self):
        """The target lives on by the page that is in it; the next attach takes that out, or repair does."""
        self.begin("8")
        for _ in range(ROUNDS):
            self.kill(kill_both)
        repaired = ktrace("repair", "-p", self.target.pid)
        self.assertEqual(repaired.status, 0, repaired)
        self.assertRegex(repaired.err, rf"took out of process \d+ .*{self.left} mappings")
        repaired = ktrace("repair", "-p", self.target.pid)
        self.assertEqual((repaired.status, repaired.err),
                         (0, f"ktrace: nothing to repair in process {self.target.pid}\n"))
        self.check_end()
        figure(f"{ROUNDS} kills of both survived")

    def test_of_both_and_full_speed_afterwards(self):
        """Each trap goes out of the target's code when it is come to: no thread stops there again, and nobody repairs."""
        self.begin("8")
        for _ in range(ROUNDS):
            self.kill(kill_both)
            until(lambda: has_own_text(self.target.pid), "no trap is left in what runs")
        self.assertEqual(ktrace("repair", "-p", self.target.pid).status, 0)
        self.check_end()
        figure(f"{ROUNDS} kills of both survived at full speed")

    def test_under_a_timer(self):
        """Signals that arrive in the middle of instructions: no thread is left with others blocked that wait for that."""
        for kill_it in (kill_both, lambda tracer: os.kill(tracer.tracing, signal.SIGKILL)):
            self.begin("8", "timer")
            for _ in range(ROUNDS):
                self.kill(kill_it)
            self.assertEqual(ktrace("repair", "-p", self.target.pid).status, 0)
            self.check_end()
        figure(f"{2 * ROUNDS} kills of both or of its tracing process survived under a timer")

    def test_in_handlers(self):
        """Threads are in handlers of signals that came in our copies of instructions when these are taken away."""
        self.begin("8")
        for _ in range(ROUNDS):
            self.kill(kill_both)
            self.target.tell("signal")
            self.target.truth("in handlers")
            self.assertEqual(ktrace("repair", "-p", self.target.pid).status, 0)
            self.check_untouched(self.target)
            self.target.tell("release")
            self.target.truth("released")
            self.wait_random(60)
        self.check_end()
        figure(f"{ROUNDS} repairs survived by threads in handlers")

    @unittest.skipIf(MACHINE == "aarch64", "a thread whose tracer is killed in its single step is lost here")
    def test_with_post_handlers(self):
        """Every instruction is stepped, with signals blocked: each thread gets back its own mask by the handler in the page."""
        for arguments in (("8",), ("8", "timer")):
            self.begin(*arguments)
            for _ in range(ROUNDS):
                self.kill(kill_both, ("-k", "leaf", "-k", "do_work", "-w", "noted", "--post"))
            self.assertEqual(ktrace("repair", "-p", self.target.pid).status, 0)
            self.check_end()
        figure(f"{2 * ROUNDS} kills of both survived with post handlers")

    def test_with_children_under_way(self):
        """A fork that began before ktrace's action for SIGTRAP was there makes a child that has it not; followed, it gets the
        traps that its parent has got meanwhile."""
        for follow in ((), ("-f",)):
            with self.subTest(follow=follow):
                target = self.start(program("broods"), 2, 4)
                for _ in range(ROUNDS):
                    tracer = self.attach(target, "-r", "do_work", "--count", *follow)
                    kill_both(tracer)
                    tracer.finish()
                    target.tell("on")
                    self.assertEqual(target.truth(r"^children \d+ bad (\d+)$")[1], "0")
                self.assertEqual(ktrace("repair", "-p", target.pid).status, 0)
                self.check_untouched(target)
                self.assertEqual(target.end(), 0)
        figure(f"{2 * ROUNDS} kills of both right behind attaching survived by children that were being made")

    def test_asleep(self):
        """All threads sleep in a call that fails with EINTR where it is interrupted: it is restarted, whatever takes out what is
        left."""
        for call, result, error in (("sigtimedwait_timeout", -1, errno.EAGAIN), ("epoll_wait_timeout", 0, 0)):
            with self.subTest(call=call):
                timeout = 2000
                while not self.killed_asleep(call, result, error, timeout):
                    timeout *= 2  # it was over before ktrace was there

    def killed_asleep(self, call, result, error, timeout):
        """False: it did not sleep on until ktrace was gone."""
        target = self.start(program("sleeper"), call, 2, timeout)
        sleep_on(target, 2)
        tracer = self.attach(target, "-r", "do_work", "-k", "milliseconds")
        # A call that stands interrupted when ktrace is killed, for jumps that are made, fails with EINTR.
        until(lambda: "under way" not in ktrace("ctl", "-p", target.pid, "list", "-v").out, "ktrace is at rest")
        slept_on = sleep_on(target, 2)
        os.kill(tracer.tracing, signal.SIGKILL)
        trace = tracer.finish()
        if not slept_on or not sleep_on(target, 2):
            self.assertEqual(target.truth(r"woke (-?\d+) (\d+) ").groups(), (str(result), str(error)))
            return False
        self.assertRegex(trace.err, rf"took out of process {target.pid} .* [1-9]\d* traps?, ")
        wait_until_let_go(target.pid)
        self.check_untouched(target)
        for _ in range(2):
            self.assertGreaterEqual(int(target.truth(rf"woke {result} {error} (\d+) ")[1]), timeout - 1)
        target.truth("done")
        self.assertEqual(target.end(), 0)
        return True

    def test_repair_of_a_process_that_is_traced(self):
        self.begin("2")
        tracer = self.attach(self.target, *PROBES)
        repaired = ktrace("repair", "-p", self.target.pid)
        self.assertEqual(repaired.status, 1, repaired)
        self.assertIn("traced already, by ktrace", repaired.err)
        tracer.stop()
        self.check_end()

    def test_who_comes_while_its_tracing_process_lets_go(self):
        """That one has lost its guardian, and traces on for a moment: it is waited for."""
        self.begin("2")
        adopt_orphans()
        self.addCleanup(adopt_orphans, False)
        for command, says in ((("repair",), "nothing to repair"), (("attach", *PROBES, "--duration", "1ms"), "Attached")):
            tracer = self.attach(self.target, *PROBES)
            tracing = tracer.tracing
            os.kill(tracing, signal.SIGSTOP)
            try:
                until(lambda tracing=tracing: state_of(f"/proc/{tracing}") == "T", "the tracing process is stopped")
                os.kill(tracer.pid, signal.SIGKILL)
                until(lambda tracer=tracer: state_of(f"/proc/{tracer.pid}") in "ZX", "ktrace has ended")
                other = subprocess.Popen([KTRACE, *command, "-p", str(self.target.pid)], stdout=subprocess.DEVNULL,
                                         stderr=subprocess.PIPE, text=True)
                self.addCleanup(other.kill)
                until(lambda other=other: other.poll() is not None or sleeps_a_moment(other.pid), "the other one waits")
                self.assertEqual(state_of(f"/proc/{tracing}"), "T")
            finally:
                os.kill(tracing, signal.SIGCONT)
            tracer.finish()
            os.waitpid(tracing, 0)
            said = other.communicate(timeout=LIMIT)[1]
            self.assertEqual((other.returncode, says in said), (0, True), said)
        self.check_end()


class Requests(LiveTest):
    """The tracing process is killed before one of its requests: each of them, from the first to the last."""

    def kill_before(self, target, request, arguments):
        """False: there were not that many."""
        killed = subprocess.run([program("undertaker"), str(request), KTRACE, "attach", "-p", str(target.pid), *arguments],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=LIMIT)
        try:
            target.tell("check 3")
            target.truth(r"^right \d+$")
        except (EOFError, BrokenPipeError):
            self.fail(f"request {request}: {target.lines.seen[-1:]}, status {target.process.wait()}; {killed.stderr}")
        return f"killed before {str(request).lstrip('i')}\n" in killed.stdout

    def check(self, survivor, *arguments, name="survivor"):
        target = self.start(program(name), *survivor)
        request, kills = 1, 0
        while self.kill_before(target, request, arguments):
            request += EVERY
            kills += 1
        self.assertGreater(request, 1)
        self.assertEqual(ktrace("repair", "-p", target.pid).status, 0)
        # A ktrace that is killed between mapping memory and noting it leaves a mapping that is not known as ktrace's.
        self.check_untouched(target, generates_code=True)
        self.assertEqual(target.end(), 0, target.lines.seen)
        figure(f"{kills} kills before a request of its tracing process survived by {name} {' '.join(survivor)}")

    def test_at_requests_plain(self):
        self.check(("4",), "-k", "leaf", "-k", "flags_popf", "-j", "do_work", "--max-events", "30")

    @unittest.skipIf(SLOW, "hardly a signal comes in a copy where a stop takes so long")
    def test_behind_requests_to_tell_of_a_signal(self):
        """One in a copy that runs without a step is delivered in the place of a step's SIGTRAP: killed in between, ktrace
        would leave it a SIGTRAP that looks as if a process had sent it (ptrace(2), PTRACE_SETSIGINFO)."""
        target = self.start(program("survivor"), "4", "timer")
        for kills in range(1, ROUNDS + 1):
            self.assertTrue(self.kill_before(target, f"i{kills}", ("-k", "calls_direct", "-k", "calls_table", "--count")))
        # Where a thread was in the timer's handler, which returns into a copy, the guardian has left the copies.
        self.assertEqual(ktrace("repair", "-p", target.pid).status, 0)
        self.check_untouched(target)
        self.assertEqual(target.end(), 0, target.lines.seen)
        figure(f"{ROUNDS} kills behind a request to tell of a signal survived")

    def test_at_requests_dispatched(self):
        """A thread with syscall user dispatch has it again after an injected call."""
        target = self.start(program("dispatched"), ready="ready|none")
        if "none" in target.lines.seen[-1]:
            raise unittest.SkipTest("no dispatch of system calls here")
        request = 1
        while self.kill_dispatched_before(target, request):
            request += EVERY
        self.assertGreater(request, 1)
        self.check_untouched(target, generates_code=True)
        target.tell()
        target.truth(r"^made ")
        self.assertEqual(target.end(), 0)

    def kill_dispatched_before(self, target, request):
        killed = subprocess.run([program("undertaker"), str(request), KTRACE, "attach", "-p", str(target.pid), "-k",
                                 "do_work", "--post", "--max-events", "2"],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=LIMIT)
        target.tell("check 3")
        self.assertEqual(target.truth(r"^(right|wrong)")[1], "right", f"request {request}: {killed}")
        return f"killed before {request}\n" in killed.stdout

    def test_at_requests_vectors(self):
        """Its threads compare all of their floating-point and vector registers."""
        self.check(("2",), "-j", "do_work", "-k", "on_tick", "--max-events", "30", name="vectors")

    def test_at_requests_blocked(self):
        self.check(("4", "blocked", "4"), *IDLE, "--duration", "20ms")

    def test_at_requests_handler(self):
        self.check(("4", "handler"), *IDLE, "--duration", "20ms")

    def test_at_requests_ignored(self):
        self.check(("4", "ignore"), *IDLE, "--duration", "20ms")

    def test_at_requests_asleep(self):
        """Its one thread waits for what to check."""
        self.check(("0",), *IDLE, "--duration", "20ms")

    def killed_and_woken(self, request):
        """Its one thread sleeps in a call that is made again by hand, and is woken when ktrace is there, or is no more.
        (killed, lived)"""
        target = self.start(program("sleeper"), "epoll_wait_at_most")
        wait_until_asleep(target.pid)
        undertaker = subprocess.Popen([program("undertaker"), str(request), KTRACE, "attach", "-p", str(target.pid),
                                       "-k", "do_work", "-j", "milliseconds", "--max-events", "2"],
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(undertaker.kill)
        said = Lines(undertaker.stderr, "ktrace")
        until(lambda: said.told("Attached") or undertaker.poll() is not None, "it has attached or was killed")
        target.tell("wake")
        killed = undertaker.communicate(timeout=LIMIT)[0].decode()
        until(lambda: target.process.poll() is not None or target.lines.told("done"), "it goes on or has died")
        lived = target.process.poll() is None
        if lived:
            wait_until_let_go(target.pid)
            self.assertEqual(ktrace("repair", "-p", target.pid).status, 0)
            self.check_untouched(target, generates_code=True) # as for the others
            self.assertEqual(target.end(), 0)
        target.kill()
        return f"killed before {request}\n" in killed, lived

    def test_at_requests_made_again(self):
        died, request, killed = [], 1, True
        while killed:
            killed, lived = self.killed_and_woken(request)
            if not lived:
                died.append(request)
            request += EVERY
        self.assertGreater(request, 40)
        self.assertEqual(died, [])
        figure(f"killed before each {EVERY}th of {request} requests around a call that is made again")


if __name__ == "__main__":
    unittest.main()
