"""kill -9 of ktrace, of its tracing process, of both: under load, at random moments. The target checks its own results.

The moments are events, counted by the target; how many is random, from a fixed seed. The long form is
tests/soak/kills.
"""
import os
import random
import signal
import subprocess
import sys
import unittest

from live import LiveTest, ktrace, program

PROBES = ("-r", "do_work", "-j", "leaf", "-k", "choose_branch", "-k", "flags_popf", "-k", "ask_syscall", "--count")
ROUNDS = int(os.environ.get("KTRACE_KILLS", "6"))


def system_calls(pid):
    """What its threads sleep in."""
    found = []
    for tid in sorted(os.listdir(f"/proc/{pid}/task")):
        with open(f"/proc/{pid}/task/{tid}/syscall") as f:
            found.append(f.read().split()[0])
    return found


class Kills(LiveTest):
    def begin(self, *arguments, seed=1, under=()):
        self.random = random.Random(seed)
        self.target = self.start(*under, program("survivor"), *arguments)
        self.wait_random(100)

    def wait_random(self, most):
        """Until every thread of the target has gone on by that many rounds, all of them right."""
        self.target.tell(f"check {self.random.randrange(most)}")
        self.target.truth(r"^right \d+$")

    def kill(self, pids_of, probes=PROBES, most=60):
        tracer = self.attach(self.target, *probes)
        self.wait_random(most)
        for pid in pids_of(tracer):
            os.kill(pid, signal.SIGKILL)
        trace = tracer.finish()
        self.wait_random(3 * most)
        return trace

    def check_end(self):
        self.check_untouched(self.target)
        self.assertEqual(self.target.end(), 0, self.target.lines.seen)

    def test_of_ktrace(self):
        """It detaches: nothing is left, whatever the target does with its signals."""
        for arguments in (("8", "timer"), ("8", "blocked", "3"), ("8", "handler"), ("8", "blocked", "2", "ignore")):
            with self.subTest(arguments):
                self.begin(*arguments)
                for _ in range(ROUNDS):
                    self.kill(lambda tracer: [tracer.pid])
                # The last one may be on its way out still: it is gone when another can attach.
                self.attach(self.target, *PROBES).stop()
                self.check_end()

    def test_of_the_tracing_process(self):
        """The guardian puts everything back and says so."""
        self.begin("8")
        for _ in range(ROUNDS):
            trace = self.kill(lambda tracer: [tracer.tracing])
            self.assertEqual(trace.status, 1)
            self.assertIn("the tracing process was killed by signal 9", trace.err)
            self.assertRegex(trace.err, rf"took out of process {self.target.pid} .* [1-9]\d* traps?, 1 page")
            self.check_untouched(self.target)
        self.check_end()

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
            trace = self.kill(lambda tracer: [tracer.tracing], most=20)
            self.assertRegex(trace.err, rf"took out of process {self.target.pid} .* [1-9]\d* traps?, 1 page")
        self.check_end()

    def test_of_both(self):
        """The target lives on by the page that is in it; the next attach takes that out, or repair does."""
        self.begin("8")
        for _ in range(ROUNDS):
            self.kill(lambda tracer: [tracer.pid, tracer.tracing])
        repaired = ktrace("repair", "-p", self.target.pid)
        self.assertEqual(repaired.status, 0, repaired)
        self.assertRegex(repaired.err, r"took out of process \d+ .* [1-9]\d* traps?, 1 page")
        repaired = ktrace("repair", "-p", self.target.pid)
        self.assertEqual((repaired.status, repaired.err),
                         (0, f"ktrace: nothing to repair in process {self.target.pid}\n"))
        self.check_end()

    def test_with_post_handlers(self):
        """Every instruction is stepped."""
        self.begin("8")
        for _ in range(ROUNDS):
            self.kill(lambda tracer: [tracer.pid, tracer.tracing],
                      ("-k", "leaf", "-k", "do_work", "--post"))
        self.assertEqual(ktrace("repair", "-p", self.target.pid).status, 0)
        self.check_end()

    def test_asleep(self):
        """All threads sleep in a call that may not be interrupted, so there is no page yet: the guardian has the bytes."""
        for several in (False, True):
            with self.subTest(several=several):
                while not self.killed_asleep(several):
                    pass  # its time-out was over before ktrace was there

    def killed_asleep(self, several):
        """False: it did not sleep on until the guardian had done its work."""
        target = self.start(program("sleeper"), "epoll_wait_timeout", 2)
        target.truth("moment 1")
        call = system_calls(target.pid)
        tracer = self.attach(target, *(("-r", "do_work", "-k", "milliseconds") if several else ("-k", "do_work")))
        os.kill(tracer.tracing, signal.SIGKILL)
        trace = tracer.finish()
        slept = system_calls(target.pid) == call
        if slept:
            self.assertRegex(trace.err, rf"took out of process {target.pid} .* [1-9]\d* traps?, 0 pages")
        self.check_untouched(target)
        target.truth("woke 0 0 9")
        target.truth("done")
        self.assertEqual(target.end(), 0)
        return slept

    def test_repair_of_a_process_that_is_traced(self):
        self.begin("2")
        tracer = self.attach(self.target, *PROBES)
        repaired = ktrace("repair", "-p", self.target.pid)
        self.assertEqual(repaired.status, 1, repaired)
        self.assertIn("traced already, by ktrace", repaired.err)
        tracer.stop()
        self.check_end()


if __name__ == "__main__":
    unittest.main()
