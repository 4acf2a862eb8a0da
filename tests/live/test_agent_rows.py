"""Tables that threads add to by themselves, without a record for each hit: what is in them is what stops have seen."""
import unittest

from test_agent import PacesTest
from test_ctl import ctl
from test_jumps import HAS_RUNS, NO_RUNS


@unittest.skipUnless(HAS_RUNS, NO_RUNS)
class AgentRows(PacesTest):
    def tables(self, engine, *probes, threads, calls, every=0):
        """Of a trace: (its hits by counts, the table) of each probe, and the calls."""
        self.begin(*probes, threads=threads, every=every, engine=engine)
        paces, _ = self.work(f"work {calls}")
        trace = self.end()
        counts = ("hits", "events", "filtered", "unselected", "dropped", "unreturned")
        tables = ("count", "stats", "hist")
        return [([s[c] for c in counts if c in s], {t: s[t] for t in tables if t in s}) for s in trace.summaries()], paces

    def check_alike(self, *probes, **how):
        by_jumps, calls = self.tables("auto", *probes, **how)
        self.assertEqual(by_jumps, self.tables("trap", *probes, **how)[0])
        self.assertEqual({counts[0] for counts, _ in by_jumps}, {calls})
        return by_jumps

    def test_numbers_of_entries(self):
        """Each number has its row's bucket; what has none there (far from the first ones, below 0) comes as a record."""
        probes = "pace --stats=i", "pace --count --if i % 3 == 0", "pace --hist=against", "pace --hist=low"
        (stats,), (counted,), _, _ = (self.check_alike("-j", each, threads=2, calls=6000) for each in probes)
        self.assertEqual([stats[1]["stats"][x] for x in ("min", "max", "count")], [0, 5999, 12000])
        self.assertEqual(counted[0][:3], [12000, 4000, 8000])

    def test_several_at_one_place(self):
        self.check_alike("-j", "pace --stats=i", "-k", "pace --count --if arg0 % 3 == 0", "-k", "pace --hist=arg1",
                         threads=2, calls=6000, every=150)

    def test_numbers_of_returns(self):
        self.check_alike("-r", "pace --hist=retval --if retval % 3 == 0", threads=2, calls=5000)
        self.check_alike("-r", "pace --stats=low", threads=2, calls=5000)

    def test_under_signals(self):
        """Each hit is added once, wherever a signal comes."""
        for probe, calls in ("pace --stats=low", 10000), ("pace --count --if low != 0", 10000):
            self.check_alike("-j", probe, threads=3, calls=calls, every=150)

    def test_durations(self):
        """All calls are in the table, the filtered ones are counted, and the sums fit."""
        self.begin("-r", "pace --stats", "-r", "ticked --stats", threads=3, every=150)
        paces, ticks = self.work("work 20000")
        for summary, calls in zip(self.end().summaries(), (paces, ticks)):
            stats = summary["stats"]
            self.assertEqual((summary["hits"], summary["events"], stats["count"]), (calls, calls, calls))
            self.assertLessEqual(stats["min"], stats["p50"])
            self.assertLessEqual(stats["p99"], stats["max"])
            self.assertLessEqual(stats["max"], stats["total"])
            self.assertAlmostEqual(stats["avg"] * calls, stats["total"], delta=calls)

    def test_histograms_of_durations(self):
        self.begin("-r", "pace --hist --if duration >= 0", "-r", "ticked --hist --if duration < 0", threads=3, every=150)
        paces, ticks = self.work("work 20000")
        kept, none = self.end().summaries()
        self.assertEqual(sum(bucket["count"] for bucket in kept["hist"]), paces)
        self.assertEqual((none["hits"], none["filtered"]), (ticks, ticks))

    def test_read_while_it_is_added_to(self):
        """No row has another one's numbers, whenever ktrace looks at what the threads are just adding."""
        lows = 1000, 200000, 30000000
        self.begin(*(word for low in lows for word in ("-j", f"pace --stats=i % 10 + {low}")), threads=3)
        self.work("work 500000")
        for low, summary in zip(lows, self.end().summaries()):
            self.assertEqual([summary["stats"][x] - low for x in ("min", "max")], [0, 9], summary)

    def test_while_it_runs(self):
        """What is shown in between is what there is by then."""
        self.begin("-r", "pace --hist", threads=2)
        for round_ in range(1, 4):
            paces, _ = self.work("work 5000")
            shown = ctl(self.target, "stats").out
            self.assertIn(f"{paces} hits", shown, round_)
        self.end()
