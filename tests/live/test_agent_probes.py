"""Several probes at one place, and those that select among their hits, without a stop: as by stops."""
import collections
import json
import time
import unittest

from test_agent import PacesTest
from test_jumps import HAS_RUNS, NO_RUNS


def monotonic_further_by():
    """CLOCK_MONOTONIC less CLOCK_REALTIME, in ns."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC) - time.clock_gettime_ns(time.CLOCK_REALTIME)


@unittest.skipUnless(HAS_RUNS, NO_RUNS)
class AgentProbes(PacesTest):
    def of_threads(self, trace, symbol):
        """What each thread has seen at a function, in order: (type, its values)."""
        threads = collections.defaultdict(list)
        for event in map(json.loads, trace.out.splitlines()):
            if event["type"] in ("entry", "pre", "return") and event["symbol"] == symbol:
                values = event["values"] if "values" in event else event["args"]
                threads[event["tid"]].append((event["type"], *values.values()))
        return list(threads.values())

    def test_all_kinds_at_one_place(self):
        """Each hit is for each of them, in their order, wherever a signal comes."""
        self.begin("-j", "pace --print i", "-k", "pace --if arg0 % 3 == 0 --print arg0", "-r", "pace --print i,retval",
                   "-k", "pace --count", "-r", "ticked --print n", "-j", "ticked --print n", threads=3, every=150)
        paces, ticks = self.work("work 10000")
        self.assertGreater(ticks, 0)
        trace = self.end()
        wanted = []
        for i in range(10000):
            wanted += [("entry", i)] + ([("pre", i)] if i % 3 == 0 else []) + [("return", i, i * 4 + (i & 0xff))]
        for own in self.of_threads(trace, "pace"):
            self.assertEqual(own, wanted)
        for kind in "entry", "return":
            seen = [n for own in self.of_threads(trace, "ticked") for of_kind, n in own if of_kind == kind]
            self.assertEqual(sorted(seen), list(range(ticks)))
        hits = {(s["kind"], "count" in s): s for s in trace.summaries() if s["symbol"] == "pace"}
        self.assertEqual({s["hits"] for s in hits.values()}, {paces})
        self.assertEqual(len(hits), 4)
        self.assertEqual(hits["k", False]["filtered"], 3 * (10000 - 3334))

    def test_a_stop_for_one_is_for_all(self):
        """What lies at small addresses only a stop can say."""
        self.begin("-j", "pace --print i", "-r", "pace --if str(arg0) == \"x\"", "-k", "pace --if *(int *)arg1 == 1", threads=2)
        paces, _ = self.work("work 3000")
        trace = self.end()
        for own in self.of_threads(trace, "pace"):
            self.assertEqual(own, [("entry", i) for i in range(3000)])
        self.assertEqual({s["hits"] for s in trace.summaries()}, {paces})

    def test_a_call_by_stops_around_full_rings(self):
        """The stops at a full ring are taken off once."""
        self.begin("-r", "walk --maxactive 8", "-j", "pace --print i", threads=1)
        self.work("work 30000")
        (call,) = [e for e in map(json.loads, self.end().out.splitlines())
                   if e["type"] == "return" and e["symbol"] == "walk"]
        self.assertLess(call["duration_ns"], call["time_ns"] - call["entry_ns"])
        self.assertGreater(call["duration_ns"] + call["error_ns"], 30000, "a ns a call, at the least")

    def test_of_the_thread(self):
        """What is known of it without a stop: the time, its own variables."""
        before = time.monotonic_ns()
        self.begin("-j", "pace --print i,nsecs,own_paces --if own_paces > 10",
                   "-r", "pace --print nsecs,own_paces", threads=2, every=150)
        paces, _ = self.work("work 3000")
        trace = self.end()
        after = time.monotonic_ns()
        for own in self.of_threads(trace, "pace"):
            begun = [values for kind, *values in own if kind == "pre" or kind == "entry"]
            ended = [values for kind, *values in own if kind == "return"]
            self.assertEqual([(i, own_) for i, _, own_ in begun], [(i, i + 1) for i in range(10, 3000)])
            self.assertEqual([own_ for _, own_ in ended], list(range(1, 3001)))
            times = [values[1] if len(values) == 3 else values[0] for _, *values in own]
            self.assertEqual(times, sorted(times))
            self.assertLessEqual(before, times[0])
            self.assertLessEqual(times[-1], after)
        for event in map(json.loads, trace.out.splitlines()):
            if event["type"] in ("entry", "return"):
                self.assertAlmostEqual(event["values"]["nsecs"] - event["time_ns"], monotonic_further_by(), delta=5_000_000)

    def test_selections(self):
        """One after the other of all hits that pass the filter."""
        probes = ("-j", "pace --every 7 --if low < 200 --print i", "-k", "pace --chance 0.1 --seed 11 --print arg0",
                  "-k", "pace --first 5 --print arg0", "-k", "pace --every 10 --count --by arg0 % 4")
        seen = {}
        for engine in ("trap", "auto"):
            self.begin(*probes, threads=1, engine=engine)
            paces, _ = self.work("work 6000")
            trace = self.end()
            counts = [(s["hits"], s["events"], s["filtered"], s["unselected"]) for s in trace.summaries()]
            rows = [s["by"] for s in trace.summaries() if "by" in s]
            seen[engine] = (self.of_threads(trace, "pace"), counts, rows)
            passing = [i for i in range(6000) if i & 0xff < 200]
            self.assertEqual([i for kind, i in seen[engine][0][0] if kind == "entry"], passing[6::7])
            self.assertEqual(counts[2], (paces, 5, 0, paces - 5))
        self.assertEqual(seen["trap"], seen["auto"])

    def test_selections_over_threads(self):
        self.begin("-j", "pace --every 7", "-k", "pace --first 100", threads=4)
        paces, _ = self.work("work 5000")
        each, first = self.end().summaries()
        self.assertEqual((each["hits"], each["events"]), (paces, paces // 7))
        self.assertEqual((first["hits"], first["events"]), (paces, 100))
