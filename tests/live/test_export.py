"""Formats for other programs: csv, folded stacks, Chrome's trace events."""
import csv
import json

from live import program
from test_options import OptionTest


class Exports(OptionTest):
    def table(self, line, *options):
        trace = self.traced(line, *options, trace_format="csv")
        return list(csv.DictReader(trace.lines))

    def test_csv_of_counts(self):
        rows = self.table("calls 12", "-j", "work", "--by", "args.op,args.name")
        self.assertEqual(list(rows[0]), ["count", "function", "module", "args.op", "args.name"])
        self.assertEqual(sum(int(row["count"]) for row in rows), 12)
        self.assertIn({"count": "1", "function": "work", "module": "options", "args.op": "OP_READ", "args.name": "alpha"}, rows)

    def test_csv_of_statistics(self):
        row, = self.table("calls 12", "-r", "work", "--stats")
        self.assertEqual(list(row), ["total", "self", "count", "avg", "min", "p50", "p90", "p99", "max", "function", "module"])
        self.assertEqual((row["count"], row["function"]), ("12", "work"))
        figures = [int(row[name]) for name in ("min", "p50", "p90", "p99", "max", "total")]
        self.assertEqual(figures, sorted(figures))

    def test_csv_of_histograms(self):
        rows = self.table("calls 8", "-j", "work", "--hist=args.n")
        self.assertEqual([(row["low"], row["high"], row["count"]) for row in rows],
                         [("0", "0", "1"), ("1", "1", "1"), ("2", "3", "2"), ("4", "7", "4")])

    def test_folded(self):
        """recurse is called by itself: each depth is a stack."""
        trace = self.traced("deep 2", "-j", "recurse", "--by", "comm,stack", trace_format="folded")
        stacks = dict(line.rsplit(" ", 1) for line in trace.lines)
        self.assertEqual(set(stacks.values()), {"1"}, trace)
        depths = sorted(stack.split(";").count("recurse") for stack in stacks)
        self.assertEqual(depths, [1, 2, 3])
        self.assertTrue(all(stack.startswith("options;") and "main;recurse" in stack for stack in stacks), stacks)

    def events(self, trace):
        events = json.loads(trace.out)
        for event in events:  # as the description of the format has it
            self.assertIn(event["ph"], ("X", "i", "M"))
            self.assertLessEqual({"name", "ph", "pid", "tid", "args"}, set(event))
            if event["ph"] != "M":
                self.assertIsInstance(event["ts"], float)
                self.assertGreaterEqual(event["ts"], 0)
            if event["ph"] == "X":
                self.assertGreaterEqual(event["dur"], 0)
            if event["ph"] == "i":
                self.assertEqual(event["s"], "t")
        return events

    def test_chrome_with_nested_calls_in_threads(self):
        """Ctrl-C ends the trace. Calls of a track are within each other or apart."""
        target = self.start(program("options"))
        tracer = self.attach(target, "--format", "chrome", "-r", "recurse", "-r", "calls", "-r", "work", "-k", "next_step",
                             "--allow-missing")  # clang inlines one
        for line in ("deep 4", "threads 3 5", "next_step 1"):
            target.tell(line)
            target.truth("^done$")
        trace = tracer.stop()
        self.assertEqual(trace.status, 0, trace)
        events = self.events(trace)
        calls = [event for event in events if event["ph"] == "X"]
        self.assertEqual(sum(event["name"] == "recurse" for event in calls), 5)
        self.assertEqual(sum(event["name"] == "work" for event in calls), 15)
        self.assertEqual([event["name"] for event in events if event["ph"] == "i"], ["next_step+0x0"])
        tracks = {event["tid"] for event in calls}
        self.assertEqual({event["tid"] for event in events if event["ph"] == "M"}, tracks)
        self.assertEqual({event["args"]["name"] for event in events if event["ph"] == "M"}, {"options", "t0", "t1", "t2"})
        for track in tracks:
            open_until = []
            for event in sorted((e for e in calls if e["tid"] == track), key=lambda e: (e["ts"], -e["dur"])):
                while open_until and open_until[-1] <= event["ts"]:
                    open_until.pop()
                end = round(event["ts"] + event["dur"], 3)
                self.assertTrue(not open_until or end <= open_until[-1], (event, open_until))
                open_until.append(end)
            deep = [e["args"]["depth"] for e in calls if e["tid"] == track and e["name"] == "recurse"]
            self.assertEqual(deep, sorted(deep))
        self.assertEqual(target.end(), 0)

    def test_chrome_of_nothing(self):
        trace = self.traced("calls 0", "-r", "work", trace_format="chrome")
        self.assertEqual(json.loads(trace.out), [])
