"""ktrace ctl: watchpoints that come and go while threads write as fast as they can."""
import re
import unittest

from live import NO_WATCHES, debug_registers_trap, program, until, wait_until_asleep
from test_ctl import Ctl


@unittest.skipUnless(debug_registers_trap(), NO_WATCHES)
class Watchpoints(Ctl):
    """Threads write as fast as they can while watchpoints come and go."""

    def begin(self, *options):
        self.target = self.start(program("watch"))
        self.tracer = self.attach(self.target, *options)

    def busy(self, threads):
        self.target.tell(f"busy {threads}")
        self.target.truth(f"^busy {threads}$")

    def rest(self):
        """The threads come to rest, each behind one more write at least: how much each has written, by id."""
        self.target.tell("rest")
        own = {}
        while True:
            line = self.target.truth(r"^(own|wrote) (\d+) ?(\d+)?")
            if line[1] == "wrote":
                return own
            own[int(line[2])] = int(line[3])

    def writes(self, threads=3, count=40):
        self.target.tell(f"threads {threads} {count}")
        self.target.truth("^done$")
        return threads * count

    def test_added_under_load(self):
        """From the answer on every write of every thread is seen; new threads have it, too."""
        self.begin("-k", "look", "--format", "json")
        self.busy(4)
        self.assertEqual(self.ask("add", "-w", "own"), "2 w own: 1 location\n")
        written = self.rest()
        self.target.truth("^done$")
        self.assertEqual(self.ask("add", "-w", "counter", "--count"), "3 w counter: 1 location\n")
        before = self.hits()
        self.assertEqual(before[3], 0)
        count = self.writes()
        after = self.hits()
        self.assertEqual((after[2] - before[2], after[3]), (count, count))
        trace = self.finish()
        chains = {}
        for event in trace.events("watch"):
            chains.setdefault(event["tid"], []).append((event["old"], event["new"]))
        self.assertEqual(len(chains), len(written) + 3)
        for tid, chain in chains.items():
            first = chain[0][0]
            self.assertEqual(chain, [(n, n + 1) for n in range(first, first + len(chain))])
            self.assertEqual(chain[-1][1], written.get(tid, 40))

    def test_list_and_switches(self):
        self.begin("-v", "-w", "counter", "--count")
        self.assertRegex(self.ask("list"), r"^[0-9a-f]{16} w counter\+0x0 \[watch\]\n$")
        self.ask("disable", "1")
        self.assertRegex(self.ask("list"), r" w counter\+0x0 \[watch\] \[DISABLED\]\n$")
        self.writes()
        self.assertEqual(self.hits(), {1: 0})
        self.ask("enable", "counter")
        first = self.writes()
        self.ask("off")
        self.writes()
        self.assertEqual(self.hits(), {1: first})
        self.ask("on")
        second = self.writes()
        self.assertEqual(self.hits(), {1: first + second})
        self.ask("remove", "1")
        self.assertEqual(self.ask("list"), "")
        self.writes()
        self.assertEqual(self.finish().err.count(f" {first + second} hits = "), 1)

    def test_switched_under_load(self):
        """The writing threads' events come in the middle of it; one that is off and another one do not mix."""
        self.begin("-w", "counter", "-w", "own", "-w", "ratio", "--count")
        self.busy(4)
        for _ in range(10):
            self.ask("disable", "1")
            self.ask("off")
            self.ask("on")
            self.ask("enable", "1")
            self.ask("remove", "own" if _ % 2 == 0 else "counter")
            added = self.ask("add", "-w", "own" if _ % 2 == 0 else "counter", "--count")
            if _ % 2 != 0:
                self.ask("disable", added.split()[0])
                self.ask("enable", added.split()[0])
            numbers = {"counter": None, "own": None}
            for number, spec in re.findall(r"(?m)^(\d+) (\w+)\+0x0", self.ask("stats")):
                numbers[spec] = int(number)
            if numbers["counter"] != 1:
                self.ask("remove", "counter")
                self.assertIn(" w counter: 1 location", self.ask("add", "-w", "counter", "--count"))
                break
        self.rest()
        self.target.truth("^done$")
        before = self.hits()
        count = self.writes()
        after = self.hits()
        self.assertEqual(sorted(after[n] - before[n] for n in after), [0, count, count])
        self.finish()

    def test_refused_whole(self):
        self.begin("-w", "counter", "-w", "own", "--count")
        self.busy(2)
        error = self.refused("add", "-k", "look", "-w", "cfg")
        self.assertIn("need 5 debug registers, and a processor has 4", error)
        self.assertIn("not a multiple", self.refused("add", "-w", "0x1001/4"))
        self.assertIn("no global, static or thread-local variable", self.refused("add", "-w", "ratio", "-w", "no_such"))
        self.refused("add", "-w", "counter:q", status=2)
        self.rest()
        self.target.truth("^done$")
        self.assertEqual(self.ask("list").count("\n"), 2)
        self.ask("remove", "own")
        self.assertEqual(self.ask("add", "-w", "cfg"), "3 w cfg: 1 location\n")
        self.target.tell("touch")
        self.target.truth("^done$")
        self.assertEqual(self.hits()[3], 3)
        self.finish()

    def test_a_sleeper_gets_it_undisturbed(self):
        for call in ("epoll_wait", "semop", "read", "futex"):
            with self.subTest(call=call):
                self.target = self.start(program("sleeper"), call)
                wait_until_asleep(self.target.pid)
                self.tracer = self.attach(self.target, "-k", "do_work", "--count")
                wait_until_asleep(self.target.pid)
                self.ask("add", "-w", "listener")
                wait_until_asleep(self.target.pid)
                self.ask("remove", "listener")
                self.target.tell("wake")
                self.assertEqual(self.target.truth(r"woke (-?\d+) (\d+) ").groups(), ("1", "0"), call)
                self.target.truth("done")
                self.finish()

    def test_a_parent_that_waits_for_its_vfork_child(self):
        """It cannot be interrupted; its child goes on meanwhile."""
        self.begin("-f", "-k", "bump", "--count")
        self.target.tell("borrow")
        until(lambda: self.hits()[1] > 0, "the child writes")
        self.ask("add", "-w", "counter", "--count")
        until(lambda: self.hits()[2] > 0, "the child's writes are seen")
        self.target.tell("enough")
        self.assertEqual(self.target.truth(r"^child \d+ (-?\d+)$")[1], "0")
        self.target.truth("^done$")
        before = self.hits()
        self.assertEqual(self.writes(), self.hits()[2] - before[2])
        self.finish()
