"""Events, filters and rows without a stop: what the agent in the process does is what a stop would have done.

The target (tests/targets/paces.c) counts up in each thread, and checks its results.
"""
import collections
import json
import re
import unittest

from live import SLOW, adds_up, ktrace, program
from test_jumps import HAS_RUNS, IS_ARM, NO_RUNS, Jumps
from test_kills import kill_both


class AgentTest(Jumps):
    def end(self):
        trace = self.tracer.stop()
        self.assertEqual(trace.status, 0, trace.err)
        for summary in trace.summaries():
            self.assertTrue(adds_up(summary), summary)
        self.check_end()
        return trace

    def of_threads(self, trace, kind, symbol):
        """The events of each thread, in order."""
        threads = collections.defaultdict(list)
        for event in map(json.loads, trace.out.splitlines()):
            if event["type"] == kind and event["symbol"] == symbol:
                threads[event["tid"]].append(event)
        return list(threads.values())

    def switches(self):
        """Of the thread that traces: it waits at each stop."""
        with open(f"/proc/{self.target.pid}/status") as status:
            tracer = re.search(r"TracerPid:\s+(\d+)", status.read())[1]
        with open(f"/proc/{tracer}/status") as status:
            return int(re.search(r"(?m)^voluntary_ctxt_switches:\s+(\d+)", status.read())[1])


class PacesTest(AgentTest):
    """Of tests/targets/paces.c."""

    def begin(self, *probes, threads=4, every=0, engine="auto"):
        """`every`: microseconds between two signals; more on a machine that is emulated, which would do nothing else."""
        every *= 20 if SLOW else 1
        self.names = ("pace",)
        self.target = self.start(program("paces"), threads, every)
        self.tracer = self.attach(self.target, "--engine", engine, *probes, "--format", "json")
        if engine == "auto":
            self.wait_for_jumps(*(name for name in ("pace", "ticked") if any(name in word for word in probes)))

    def work(self, order):
        """Calls of pace, of ticked."""
        paces, ticks, wrong = (int(n) for n in self.do(order, r"^did (\d+) (\d+) (\d+)").groups())
        self.assertEqual(wrong, 0, "the target's own results")
        return paces, ticks


@unittest.skipUnless(HAS_RUNS, NO_RUNS)
class Agent(PacesTest):
    def events(self, trace, symbol):
        return [e for e in (json.loads(line) for line in trace.out.splitlines())
                if e["type"] == "entry" and e["symbol"] == symbol]

    def check_paces(self, events, count):
        """Each thread's are all there, in order, with their values and numbers."""
        threads = collections.defaultdict(list)
        for event in events:
            threads[event["tid"]].append(event)
        for tid, own in threads.items():
            self.assertEqual(len(own), count, tid)
            for i, event in enumerate(own):
                self.assertEqual(event["args"], {"i": i, "low": i & 0xff, "against": -i}, tid)
            times = [event["time_ns"] for event in own]
            self.assertTrue(times == sorted(times), tid)
        return len(threads)

    def test_events_of_threads_under_signals(self):
        """None is lost or doubled wherever in the agent a thread is when a signal comes."""
        self.begin("-j", "pace", "-j", "ticked", threads=4, every=150)
        paces, ticks = self.work("work 20000")
        self.assertGreater(ticks, 0)
        trace = self.end()
        self.assertEqual(self.check_paces(self.events(trace, "pace"), 20000), 4)
        self.assertEqual(paces, 80000)
        self.assertEqual(sorted(e["args"]["n"] for e in self.events(trace, "ticked")), list(range(ticks)))
        self.assertEqual(trace.summary("pace")["hits"], paces)

    def test_no_stop_for_an_event(self):
        """More of them than a ring has room for."""
        self.begin("-j", "pace", "--lossless", threads=1)
        before = self.switches()
        self.work("work 30000")
        self.assertLess(self.switches() - before, 3000, "one for a hit would be ten times as many")
        self.assertEqual(self.check_paces(self.events(self.end(), "pace"), 30000), 1)

    def test_threads_that_come_and_go(self):
        """A thread pointer is used again at once."""
        self.begin("-j", "pace")
        paces, _ = self.work("churn 300")
        events = self.events(self.end(), "pace")
        self.assertEqual(len(events), paces)
        self.assertEqual(self.check_paces(events, 20), 300)

    def test_filters(self):
        self.begin("-j", "pace", "--if", "low == 3 || i < 5 && !(against < -3)", threads=3)
        paces, _ = self.work("work 3000")
        trace = self.end()
        wanted = [i for i in range(3000) if i & 0xff == 3 or (i < 5 and not -i < -3)]
        threads = collections.defaultdict(list)
        for event in self.events(trace, "pace"):
            threads[event["tid"]].append(event["args"]["i"])
        self.assertEqual(list(threads.values()), [wanted] * 3)
        summary = trace.summary("pace")
        self.assertEqual((summary["hits"], summary["filtered"]), (paces, paces - 3 * len(wanted)))

    def test_rows(self):
        self.begin("-j", "pace", "--stats=i", "--by", "low", threads=2)
        self.work("work 5120")
        summary = self.end().summary("pace")
        rows = {row["key"]: row for row in summary["by"]}
        self.assertEqual(sorted(rows), list(range(256)))
        for low, row in rows.items():
            values = [i for i in range(5120) if i & 0xff == low]
            self.assertEqual((row["stats"]["count"], row["stats"]["min"], row["stats"]["max"]),
                             (2 * len(values), min(values), max(values)), low)

    def test_both_engines_see_the_same(self):
        """Of every kind of probe at once: by thread, the same in the same order."""
        seen = {}
        for engine in ("trap", "auto"):
            registers = 'reg("x2"), reg("x2") & 0x400' if IS_ARM else 'reg("dx"), reg("flags") & 0x400'
            self.begin("-k", "pace", "--print", f"arg0, {registers}, arg0 * 7 % 5", engine=engine, threads=2)
            self.work("work 2000")
            self.work("churn 20")
            threads = collections.defaultdict(list)
            for event in map(json.loads, self.end().out.splitlines()):
                if event["type"] == "pre":
                    threads[event["tid"]].append(list(event["values"].values()))
            seen[engine] = sorted(threads.values(), key=lambda own: (len(own), own))
        self.assertEqual(seen["trap"], seen["auto"])

    def test_children(self):
        """One that is not followed has nothing of it; one that is has its own."""
        for follow in ((), ("-f",)):
            with self.subTest(follow):
                self.begin("-j", "pace", *follow)
                self.assertEqual(self.do("child 700", r"^child (\d+)")[1], "0")
                self.work("work 10")
                self.assertEqual(self.end().summary("pace")["hits"], 740 if follow else 40)

    def test_changed_while_it_counts(self):
        """A probe that is switched off and on, and another one in its place, while threads run."""
        self.begin("-j", "pace", "--if", "low == 1", threads=2)
        for _ in range(3):
            self.target.tell("work 100000")
            self.ask("disable", "1")
            self.ask("enable", "1")
            self.target.truth("^did")
            self.wait_for_jumps("pace")
        self.ask("remove", "1")
        self.ask("add", "-j", "pace", "--if", "low == 2")
        self.wait_for_jumps("pace")
        before, _ = self.work("work 0")
        after, _ = self.work("work 2560")
        trace = self.end()
        last = [s for s in trace.summaries() if s["probe"] == 2]
        self.assertEqual([(s["hits"], s["events"]) for s in last], [(after - before, 20)])

    def test_both_are_killed(self):
        """What is left goes on by itself, and can be taken out."""
        self.begin("-j", "pace", threads=4, every=300)
        self.target.tell("work 300000")
        kill_both(self.tracer)
        self.assertEqual(self.target.truth(r"^did (\d+) \d+ (\d+)").groups(), ("1200000", "0"))
        self.assertEqual(ktrace("repair", "-p", self.target.pid).status, 0)
        self.check_end()
