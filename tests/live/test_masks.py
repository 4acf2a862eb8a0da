"""SIGTRAP blocked, or ignored: the kernel's changes to that at traps, and at exec, are undone before they are seen."""
import signal
import sys

from live import SLOW, LiveTest, adds_up, fewer, program, told_of, until

TURNS = 20 if SLOW else 100
CHILDREN, HITS_OF_CHILD = 4 * TURNS // 10, 3  # of "keep TURNS"


class Masks(LiveTest):
    def right_hits(self, target, what):
        target.tell(what)
        hits, bad = (int(n) for n in target.truth(what + r" hits (\d+) bad (\d+)").groups())
        self.assertEqual(bad, 0)
        return hits

    def check(self, options, hits_of_children, *arguments, order=f"keep {TURNS}"):
        target = self.start(program("masks"), *arguments)
        tracer = self.attach(target, "-k", "hit", "--count", "--format", "json", *options)
        hits = self.right_hits(target, order)
        trace = tracer.stop()
        self.assertEqual(trace.status, 0, trace)
        summary = trace.summary("hit")
        self.assertTrue(adds_up(summary), trace)
        self.assertEqual(summary["hits"], hits + hits_of_children)
        self.check_untouched(target)
        self.assertEqual(target.end(), 0)

    def test_of_threads(self):
        """A mask that a thread, or its maker, had when it was attached to, and one of all signals."""
        self.check((), 0)

    def test_of_children(self):
        self.check(("-f",), CHILDREN * HITS_OF_CHILD)

    def test_with_steps(self):
        self.check(("--post",), 0)

    def test_of_a_thread_that_blocks_it_later(self):
        """It has it open from its next hit on; the process's action is put back."""
        for options in ((), ("--post",)):
            target = self.start(program("masks"), "open")
            tracer = self.attach(target, "-k", "hit", "--count", "--format", "json", "--engine", "trap", *options)
            target.tell("later 100")
            hits, opened, caught = map(int, target.truth(r"later 100 hits (\d+) open (\d+) caught (\d+)").groups())
            self.assertEqual((opened, caught), (100, 100))
            trace = tracer.stop()
            self.assertEqual(trace.status, 0, trace)
            self.assertEqual(trace.summary("hit")["hits"], hits)
            self.check_untouched(target)
            self.assertEqual(target.end(), 0)

    def test_open_ones_beside_blocked_ones(self):
        """Nobody gets SIGTRAP blocked for another one's trap, nor for one of its own that came when it was blocked."""
        self.check((), 0, "open", order=f"open {fewer(2000)}")

    def test_open_ones_beside_blocked_ones_with_steps(self):
        self.check(("--post",), 0, "open", order=f"open {fewer(1000)}")

    def test_children_of_a_process_whose_action_is_reset_all_the_time(self):
        """What they are born with gets them over the traps, should ktrace be killed before they come by the first."""
        target = self.start(program("masks"))
        tracer = self.attach(target, "-f", "-k", "hit", "--count")
        target.tell("forks 200")
        target.truth(r"forks 200 caught 200$")
        self.assertEqual(tracer.stop().status, 0)
        self.check_untouched(target)
        self.assertEqual(target.end(), 0)


IGNORING = """
import os, signal, subprocess, sys
signal.signal(signal.SIGTRAP, signal.SIG_IGN)
print("ready", flush=True)
for line in sys.stdin:
    os.getppid()
    if line == "exec\\n":
        os.execv("/bin/cat", ["cat"])
    for status in (subprocess.run(["cat", "/proc/self/status"], stdout=subprocess.PIPE).stdout.decode(),
                   os.popen("exec cat /proc/self/status").read()):
        print(*(l for l in status.splitlines() if l.startswith("SigIgn")), flush=True)
"""


class Ignored(LiveTest):
    """A program that ignores SIGTRAP, where our handler is in the meantime."""

    def check(self, mask):
        self.assertTrue(int(mask, 16) >> signal.SIGTRAP - 1 & 1, mask)

    def begin(self, *options):
        target = self.start(sys.executable, "-c", IGNORING)
        return target, self.attach(target, "-k", "libc:getppid", "--count", *options)

    def test_by_programs_of_children(self):
        target, tracer = self.begin()
        target.tell()
        for _ in range(2):
            self.check(target.truth(r"SigIgn:\s(\w+)")[1])
        self.assertEqual(tracer.stop().status, 0)
        self.check_untouched(target)

    def test_by_the_next_program(self):
        target, tracer = self.begin("--allow-missing")
        target.tell("exec")
        until(lambda: told_of(f"/proc/{target.pid}", "comm") == "cat\n", "the next program is there")
        target.tell("done")
        target.truth("done")
        self.assertEqual(tracer.stop().status, 0)
        self.check(told_of(f"/proc/{target.pid}", "status").split("SigIgn:")[1].split()[0])
        self.check_untouched(target)
        self.assertEqual(target.end(), 0)
