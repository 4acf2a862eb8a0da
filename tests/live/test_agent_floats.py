"""Floating point without a stop: arguments, filters, rows and results as by stops, and the program keeps its own registers.

The target (tests/targets/scales.c) computes with floating point, in its signal handler, too, and checks its results.
"""
import unittest

from live import program
from test_agent import AgentTest
from test_jumps import HAS_RUNS, NO_RUNS

NAMES = ("scaled", "halved", "moved")


@unittest.skipUnless(HAS_RUNS, NO_RUNS)
class AgentFloats(AgentTest):
    def begin(self, *probes, threads=2, every=0, engine="auto"):
        self.target = self.start(program("scales"), threads, every)
        self.tracer = self.attach(self.target, "--engine", engine, *probes, "--format", "json")
        if engine == "auto":
            self.wait_for_jumps(*(name for name in NAMES if any(name in word for word in probes)))

    def work(self, count):
        calls, ticks, wrong = (int(n) for n in self.do(f"work {count}", r"^did (\d+) (\d+) (\d+)").groups())
        self.assertEqual(wrong, 0, "the target's own results")
        return calls, ticks

    def test_values(self):
        for engine in ("trap", "auto"):
            with self.subTest(engine):
                self.begin("-j", "scaled", "-r", "scaled", "-r", "halved", "-r", "moved", engine=engine)
                self.work(500)
                trace = self.end()
                for own in self.of_threads(trace, "entry", "scaled"):
                    self.assertEqual([e["args"] for e in own], [{"x": i / 2, "f": i / 4, "i": i} for i in range(500)])
                for own in self.of_threads(trace, "return", "scaled"):
                    self.assertEqual([e["retval"] for e in own], [i / 2 + i / 4 + i for i in range(500)])
                for own in self.of_threads(trace, "return", "halved"):
                    self.assertEqual([(e["args"]["f"], e["retval"]) for e in own], [(i / 2, i / 4) for i in range(500)])
                for own in self.of_threads(trace, "return", "moved"):
                    self.assertEqual([(e["args"]["at"], e["retval"]) for e in own],
                                     [({"x": i, "y": -i / 8}, {"x": i + 1, "y": -i / 8 - 1}) for i in range(500)])

    def test_filters_and_rows(self):
        """Computed with, and compared."""
        self.begin("-j", "scaled --if x * 2.0 >= 100 && f < 50.5 --stats=x + f --by i % 2", "-r", "halved --if retval > 10.25")
        calls, _ = self.work(400)
        trace = self.end()
        passing = [i for i in range(400) if i >= 100 and i / 4 < 50.5]
        summary = trace.summary("scaled")
        self.assertEqual((summary["hits"], summary["filtered"]), (calls, calls - 2 * len(passing)))
        for row in summary["by"]:
            sums = [i / 2 + i / 4 for i in passing if i % 2 == row["key"]]
            self.assertEqual((row["stats"]["count"], row["stats"]["min"], row["stats"]["max"]),
                             (2 * len(sums), min(sums), max(sums)))
        for own in self.of_threads(trace, "return", "halved"):
            self.assertEqual([e["retval"] for e in own], [i / 4 for i in range(400) if i / 4 > 10.25])

    def test_under_signals(self):
        """Wherever in the agent a thread is when one comes."""
        self.begin("-j", "scaled --if x > 3.5", "-r", "moved", "-j", "halved --if f > 1e9 --count", threads=3, every=150)
        calls, ticks = self.work(8000)
        self.assertGreater(ticks, 0)
        trace = self.end()
        for own in self.of_threads(trace, "entry", "scaled"):
            self.assertEqual([e["args"]["i"] for e in own], list(range(8, 8000)))
        for own in self.of_threads(trace, "return", "moved"):
            self.assertEqual([e["retval"]["x"] for e in own], list(range(1, 8001)))
        self.assertEqual(trace.summary("halved")["hits"], calls + ticks)
