"""Expectations, against what the target is known to do: figures, values, order, rows; the exit status and the reports."""
import json
import os
import tempfile
import xml.etree.ElementTree as ElementTree

from live import ktrace, program
from test_options import OptionTest


class Expectations(OptionTest):
    def judged(self, line, *options, status=3):
        """The lines on standard error about expectations, and the JSON objects."""
        trace = self.traced(line, *options, status=status)
        lines = [e for e in trace.err.splitlines() if "expect" in e]
        self.assertEqual([o for o in trace.objects if o["type"] not in ("expectation", "summary", "row")], [], trace)
        return lines, [o for o in trace.objects if o["type"] == "expectation"]

    def test_counts(self):
        lines, objects = self.judged("calls 12", "-j", "work", "--expect", "count <= 12", "--expect", "count < 12",
                                     "--expect", "count(args.op == 1) == 3 && count(args.n > 100) == 0")
        self.assertEqual(lines, ["ktrace: work [options]: expected count < 12, saw 12",
                                 "ktrace: 2 of 3 expectations hold"])
        self.assertEqual([(o["expect"], o["symbol"], o["module"], o["holds"], o["seen"]) for o in objects], [
            ("count <= 12", "work", "options", True, {"count": 12}),
            ("count < 12", "work", "options", False, {"count": 12}),
            ("count(args.op == 1) == 3 && count(args.n > 100) == 0", "work", "options", True,
             {"count(args.op == 1)": 3, "count(args.n > 100)": 0})])

    def test_times(self):
        """Of a silent probe, beside a table of counts, and of that of --stats; p42 is in no table."""
        for options in ([], ["--count"], ["--stats"], ["--hist"]):
            lines, objects = self.judged("calls 50", "-r", "work", *options, "--expect", "p42 > 0 && max < 1000s", "--expect",
                                         "avg > 1000s || count != 50")
            self.assertEqual(len(objects), 2, objects)
            self.assertEqual(set(objects[0]["seen"]), {"p42", "max"})
            self.assertLessEqual(objects[0]["seen"]["p42"], objects[0]["seen"]["max"])
            self.assertRegex(lines[0], r"^ktrace: work \[options\]: expected avg > 1000s \|\| count != 50, saw avg "
                                       r"(<|~?)[\d.]+ [nm]?u?s, count 50 in 50 calls$")
            self.assertEqual(lines[1:], ["ktrace: 1 of 2 expectations hold"])

    def test_values(self):
        """work returns n * op: with op 0 that is 0. Of 8 calls these are two, and n = 0."""
        trace = self.traced("calls 8", "-r", "work", "--expect", "each(retval > 0)", "--expect", "never(retval > 21)",
                            "--expect", "never(args.n == 5)", status=3, trace_format="text")
        lines = trace.err.splitlines()
        at = lines.index("ktrace: work [options]: expected each(retval > 0), saw it fail in 2 of 8 calls")
        self.assertRegex(lines[at + 1], r'^\d\d:\d\d:\d\d\.\d{6} options/\d+ work\(op=OP_READ, name="alpha", n=0, '
                                        r'half=0\) returned 0 and took ')
        at = lines.index("ktrace: work [options]: expected never(args.n == 5), saw it hold in 1 of 8 calls")
        self.assertIn("n=5, half=2.5", lines[at + 1])
        self.assertEqual(lines[-1], "ktrace: 1 of 3 expectations hold")
        self.assertEqual(trace.out, "")

    def test_values_that_do_not_fit_all_functions(self):
        """recurse has no op: the claim is not of it. A parameter that none has is an error of the EXPR."""
        lines, objects = self.judged("calls 8", "-j", "work", "-j", "recurse", "--expect", "each(args.op < 3)")
        self.assertEqual([(o["symbol"], o["holds"]) for o in objects], [("work", False), ("recurse", True)])
        refused = ktrace("attach", "-p", self.start(program("options")).pid, "-j", "work", "--expect", "each(args.no == 1)")
        self.assertEqual(refused.status, 1, refused)
        self.assertEqual(refused.err.splitlines()[0], "ktrace: each(args.no == 1): work has no parameter `no`")
        self.assertTrue(refused.err.splitlines()[1].startswith(" " * len("ktrace: each(") + "^~~~~~~ "), refused)

    def test_filters_and_rows(self):
        """Hits are those that pass the filters; with --by each row is judged."""
        lines, objects = self.judged("calls 12", "-j", "work --if args.n < 8 --by args.op", "--expect",
                                     "count == 2", "--expect", "count(args.n < 6) == 2")
        self.assertEqual({(o["expect"], o["key"]): o["holds"] for o in objects},
                         {("count == 2", op): True for op in ("OP_READ", "OP_WRITE", "OP_SEEK", "OP_CLOSE")} |
                         {("count(args.n < 6) == 2", op): op in ("OP_READ", "OP_WRITE")
                          for op in ("OP_READ", "OP_WRITE", "OP_SEEK", "OP_CLOSE")})
        self.assertEqual(lines[-1], "ktrace: 6 of 8 expectations hold")
        self.assertIn("ktrace: work [options] args.op=OP_SEEK: expected count(args.n < 6) == 2, saw 1", lines)

    def test_without_a_hit(self):
        lines, objects = self.judged("calls 3", "-r", "work --if args.n > 5", "--expect", "count == 0", "--expect",
                                     "total == 0", "--expect", "each(retval == 77)", "--expect", "p99 < 1s")
        self.assertEqual([o["holds"] for o in objects], [True, True, True, False])
        self.assertEqual(lines[0], "ktrace: work: expected p99 < 1s: nothing was measured")
        self.assertEqual(objects[3]["reason"], "nothing was measured")
        # Of several functions, those without a hit are left out.
        lines, objects = self.judged("calls 3", "-r", "work", "-r", "recurse", "--expect", "max < 1000s", status=3)
        self.assertEqual([(o["symbol"], o["holds"]) for o in objects], [("work", True), ("recurse", False)])
        _, objects = self.judged("calls 3", "-r", "options:[wr]*k*", "--expect", "max < 1000s", status=0)
        self.assertEqual([o["symbol"] for o in objects], ["work"])

    def test_whose(self):
        """By name, by SPEC, of all together; one inside the quotes is for that probe alone."""
        lines, objects = self.judged("calls 5", "-j", "work --expect count == 5", "-k", "options:work+0x0", "--expect",
                                     "options:work+0x0: count == 4", "--expect", "all: count == 10")
        self.assertEqual([(o["symbol"], o["holds"]) for o in sorted(objects, key=lambda o: o["expect"])],
                         [("all", True), ("work", True), ("work", False)])
        self.assertEqual(lines, ["ktrace: work [options]: expected count == 4, saw 5",
                                 "ktrace: 2 of 3 expectations hold"])

    def test_lost_hits(self):
        """Of recurse, which calls itself, one call can be in flight: the others are missed."""
        lines, objects = self.judged("deep 5", "-r", "recurse", "--maxactive", "1", "--count", "--expect", "count >= 1")
        self.assertEqual(lines, ["ktrace: recurse [options]: expected count >= 1, saw 1: 5 hits were missed",
                                 "ktrace: 0 of 1 expectations hold"])
        self.assertEqual(objects[0]["reason"], "5 hits were missed")

    def test_order(self):
        """work, then recurse: of each thread by itself."""
        for claim, holds in [("work before recurse", True), ("recurse before work", False), ("recurse then work", True)]:
            target = self.start(program("options"))
            tracer = self.attach(target, "-j", "work", "-r", "recurse", "--expect", claim)
            for line in ("calls 3", "deep 0"):
                target.tell(line)
                target.truth("^done$")
            trace = tracer.stop()
            self.assertEqual(trace.status, 0 if holds else 3, (claim, trace))
            self.assertIn("1 of 1 expectations hold" if holds else "saw it fail 3 times, first in thread %d" % target.pid,
                          trace.err)
            self.assertEqual(target.end(), 0)

    def test_then_when_the_thread_ends(self):
        """recurse waits for a work that its thread never comes to."""
        target = self.start(program("options"))
        tracer = self.attach(target, "-j", "work", "-j", "recurse", "--expect", "recurse then work")
        target.tell("deep 0")
        target.truth("^done$")
        self.assertEqual(target.end(), 0)
        trace = tracer.finish()
        self.assertEqual(trace.status, 3, trace)
        self.assertIn("ktrace: recurse: expected recurse then work, saw it fail 1 time, first in thread", trace.err)

    def test_off_with_the_probe(self):
        """The probes that measure for it are switched, and removed, with it."""
        for orders, seen in [((["disable", "1"], ["enable", "1"]), 5), ((["off"], ["on"]), 5), ((["remove", "1"], ["list"]), 3)]:
            target = self.start(program("options"))
            tracer = self.attach(target, "-j", "work", "--print", "args.n", "--expect", "each(args.n < 3)", "--expect",
                                 f"count == {seen}")
            for line, order in zip(("calls 3", "calls 8", "calls 2"), (*orders, ["list"])):
                target.tell(line)
                target.truth("^done$")
                self.assertEqual(ktrace("ctl", "-p", target.pid, *order).status, 0)
            trace = tracer.stop()
            self.assertEqual(trace.status, 0, (orders, trace))
            self.check_untouched(target)
            self.assertEqual(target.end(), 0)

    def test_max_events_are_those_of_the_user(self):
        """What ktrace measures for an expectation is no event."""
        trace = self.ended("calls 20", "-r", "work", "--max-events", "4", "--print", "args.n", "--expect", "count == 4 && p50 > 0")
        self.assertEqual(len(trace.events("return")), 4, trace)
        self.assertEqual(trace.status, 0, trace)

    def test_exit_status_of_run(self):
        """The program's own, and where that is 0, that of the expectations."""
        for command, broken, status in [(["true"], False, 0), (["true"], True, 3), (["false"], True, 1)]:
            trace = ktrace("run", "-q", "-j", "libc:exit", "--expect", "count == 7" if broken else "count == 1", *command)
            self.assertEqual(trace.status, status, trace)
            self.assertEqual("expected count == 7, saw 1" in trace.err, broken, trace)
        self.assertEqual(ktrace("run", "-r", "no_such", "--expect", "count == 1", "true").status, 125)

    def test_reports(self):
        with tempfile.TemporaryDirectory() as folder:
            xml, tap = os.path.join(folder, "r.xml"), os.path.join(folder, "r.tap")
            for path in (xml, tap):
                trace = ktrace("run", "-q", "-j", "libc:exit", "--expect", "count == 1", "--expect", "count > 1 && count < 3",
                               "--report", path, "true")
                self.assertEqual(trace.status, 3, trace)
            self.check_junit(xml, tests=2, failures=1, errors=0)
            with open(tap) as file:
                lines = file.read().splitlines()
            self.assertEqual(lines[:4], ["TAP version 13", "1..2", "ok 1 - exit: count == 1",
                                         "not ok 2 - exit: count > 1 && count < 3"])
            trace = ktrace("attach", "-p", str(os.getpid()), "-j", "no_such_function", "--expect", "count == 1", "--report", xml)
            self.assertEqual(trace.status, 1, trace)
            self.check_junit(xml, tests=1, failures=0, errors=1)

    def check_junit(self, path, **counts):
        """By the schema of Ant's JUnit task: what must be there, in this order."""
        suites = ElementTree.parse(path).getroot()
        self.assertEqual(suites.tag, "testsuites")
        suite, = suites
        self.assertLessEqual({"name", "package", "id", "timestamp", "hostname", "tests", "failures", "errors", "time"},
                             set(suite.attrib))
        self.assertRegex(suite.get("timestamp"), r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d$")
        self.assertEqual({name: int(suite.get(name)) for name in counts}, counts)
        self.assertRegex(" ".join(part.tag for part in suite), r"^properties( testcase)* system-out system-err$")
        cases = suite.findall("testcase")
        self.assertEqual(len(cases), counts["tests"])
        for case in cases:
            self.assertTrue(case.get("name") and case.get("classname") and float(case.get("time")) >= 0)
            self.assertLessEqual(len(case), 1)
            for outcome in case:
                self.assertIn(outcome.tag, ("failure", "error"))
                self.assertTrue(outcome.get("type") and outcome.get("message"))
        self.assertEqual(sum(len(case.findall("failure")) for case in cases), counts["failures"])
        self.assertEqual(sum(len(case.findall("error")) for case in cases), counts["errors"])


class Diff(OptionTest):
    def test_two_runs(self):
        """work is called four times as often, recurse no more, next_step for the first time."""
        with tempfile.TemporaryDirectory() as folder:
            files = [os.path.join(folder, name) for name in ("old.json", "new.json")]
            for path, lines in zip(files, [("calls 10", "deep 3"), ("calls 40", "next_step 2")]):
                target = self.start(program("options"))
                tracer = self.attach(target, "--format", "json", "-o", path, "-j", "work", "-j", "recurse", "-j", "next_step",
                                     "--count")
                for line in lines:
                    target.tell(line)
                    target.truth("^done$")
                self.assertEqual(tracer.stop().status, 0)
                self.assertEqual(target.end(), 0)
            shown = ktrace("diff", *files)
            self.assertEqual(shown.status, 0, shown)
            self.assertEqual(shown.lines, ["   count      old   change  function",
                                           "      40       10    +300%  work",
                                           "                4     gone  recurse",
                                           "       2               new  next_step"])
            self.assertEqual(ktrace("diff", *files, "--expect", "count <= 4 * old.count").status, 0)
            broken = ktrace("diff", *files, "--expect", "work: count < 2 * old.count")
            self.assertEqual(broken.status, 3, broken)
            self.assertEqual(broken.err.splitlines(),
                             ["ktrace: work [options]: expected count < 2 * old.count, saw count 40, old.count 10",
                              "ktrace: 0 of 1 expectations hold"])
            table = ktrace("diff", *files, "--format", "csv").lines
            self.assertEqual(table[:2], ["total,old_total,change,count,old_count,p99,old_p99,function,module,key",
                                         ",,+300%,40,10,,,work,options,"])
            objects = ktrace("diff", *files, "--format", "json").objects
            self.assertEqual(objects[0], {"type": "diff", "symbol": "work", "module": "options", "change": 3.0,
                                          "new": {"count": 40}, "old": {"count": 10}})

    def test_a_function_that_became_slower(self):
        """Of two runs of the same program, one sleeps for 20 ms and one for 200 ms."""
        with tempfile.TemporaryDirectory() as folder:
            files = [os.path.join(folder, name) for name in ("old.json", "new.json")]
            for path, seconds in zip(files, ("0.02", "0.2")):
                trace = ktrace("run", "-q", "-r", "libc:clock_nanosleep", "-r", "libc:setlocale", "--stats", "--format", "json",
                               "-o", path, "sleep", seconds)
                self.assertEqual(trace.status, 0, trace)
                with open(path) as file:
                    stats = json.loads(file.readline())["stats"]
                self.assertGreaterEqual(stats["total"] + stats["error"]["total"], float(seconds) * 1e9, trace)
            slower = ktrace("diff", *files, "--expect", "clock_nanosleep: p99 < 3 * old.p99", "--report",
                            os.path.join(folder, "r.tap"))
            self.assertEqual(slower.status, 3, slower)
            self.assertEqual(slower.lines[0], "   total      old   change    count      old      p99      old  function")
            self.assertRegex(slower.lines[1], r"^ +[\d.]+ms +[\d.]+ms +\+\d+% +1 +1 +[\d.]+ms +~?[\d.]+ms  clock_nanosleep$")
            with open(os.path.join(folder, "r.tap")) as file:
                self.assertIn("not ok 1 - clock_nanosleep: p99 < 3 * old.p99\n", file.read())
