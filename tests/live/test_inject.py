"""Fault injection: what functions see and what their callers get is what was asked for, at the hits that were selected."""
import os
import re
import subprocess

from live import ARGUMENTS, KTRACE, LIMIT, TOOK, LiveTest, adds_up, ktrace, program
from workshop import build


class Injection(LiveTest):
    def told(self, function, count, *options, target=None, trace_format="json"):
        """What the target says of its calls: (saw, got) each."""
        target = self.start(target or program("inject"))
        tracer = self.attach(target, "--format", trace_format, *options)
        target.tell(f"{function} {count}")
        self.ran = int(target.truth(r"^ran (\d+) done$")[1])
        said = [re.fullmatch(rf"{function} \d+: saw (.*) got (.*)", line) for line in target.lines.seen[1:-1]]
        self.run = tracer.stop()
        self.assertEqual(self.run.status, 0, self.run)
        if trace_format == "json":
            for summary in self.run.summaries():
                self.assertTrue(adds_up(summary), summary)
        self.check_untouched(target)
        self.assertEqual(target.end(), 0)
        return [s.groups() for s in said]

    def injected(self, symbol):
        return self.run.summary(symbol)["injected"]

    # Arguments.

    def test_set_arg(self):
        for options in (["-j", "add"], ["-k", "add"], ["-r", "add"]):
            self.assertEqual(self.told("add", 3, *options, "--set-arg", "b=args.a*10"),
                             [("0 0", "0"), ("1 10", "11"), ("2 20", "22")])
            self.assertEqual(self.injected("add"), 3)
            self.assertEqual([e["set"] for e in self.run.events()], [{"b": n * 10} for n in range(3)])

    def test_set_arg_by_number(self):
        self.assertEqual(self.told("add", 1, "-j", "add", "--set-arg", "0=-7", "--set-arg", "1=-1"), [("-7 -1", "-8")])

    def test_set_arg_of_floating_type(self):
        self.assertEqual(self.told("scale", 1, "-j", "scale", "--set-arg", "x=8", "--set-arg", "by=0.25", "--set-arg", "2=3"),
                         [("8 0.25 3", "5")])

    def test_set_arg_on_the_stack(self):
        self.assertEqual(self.told("many", 1, "-j", "many", "--set-arg", "g=100", "--set-arg", "h=-2", "--set-arg", "5=0"),
                         [("0 100 -2", "113")])

    def test_set_arg_pointer(self):
        self.assertEqual(self.told("text", 1, "-j", "text", "--set-arg", "of=0", "--set-arg", "n=300"),
                         [("(null) 44", "(null)")])

    def test_set_arg_without_debug_information(self):
        plain = build("inject", "-O2")
        self.assertEqual(self.told("add", 1, "-j", "add", "--set-arg", "1=5", target=plain), [("0 5", "5")])

    def test_set_reg(self):
        self.assertEqual(self.told("add", 1, "-k", "add", "--set-reg", f"{ARGUMENTS[0]}=40"), [("40 2", "42")])
        self.assertEqual([e["set"] for e in self.run.events()], [{ARGUMENTS[0]: 40}])

    # Results.

    def test_set_ret(self):
        self.assertEqual(self.told("add", 2, "-r", "add", "--set-ret", "retval * 100 + args.a"),
                         [("0 2", "200"), ("1 2", "301")])
        events = self.run.events("return")
        self.assertEqual([(e["retval"], e["set"]["retval"]) for e in events], [(2, 200), (3, 301)])
        self.assertEqual(self.ran, 2)

    def test_set_ret_of_floating_type(self):
        self.assertEqual(self.told("scale", 1, "-r", "scale", "--set-ret", "1.5"), [("0 0.5 1", "1.5")])
        self.assertEqual(self.told("half", 1, "-r", "half", "--set-ret", "0.75"), [("0", "0.75")])

    def test_set_ret_at_tables(self):
        """Tables see all hits, injections are selected."""
        said = self.told("add", 6, "-r", "add", "--set-ret", "-1", "--count", "--every", "3")
        self.assertEqual([got for _, got in said], ["2", "3", "-1", "5", "6", "-1"])
        summary = self.run.summary("add")
        self.assertEqual((summary["count"], summary["injected"]), (6, 2))

    def test_an_argument_and_the_result(self):
        """A call is selected once; both are done at it, and it counts once."""
        for table in ([], ["--count"], ["--stats=retval"], ["--hist=retval"], ["--by", "retval"]):
            said = self.told("add", 9, "-r", "add", "--set-arg", "b=40", "--set-ret", "retval*1000", *table, "--every", "3",
                             "--first", "2", "--if", "args.a != 1")
            self.assertEqual(said, [(f"{a} {40 if a in (3, 6) else 2}", str((a + 40) * 1000 if a in (3, 6) else a + 2))
                                    for a in range(9)], table)
            summary = self.run.summary("add")
            self.assertEqual([summary[k] for k in ("hits", "filtered", "unselected", "injected")],
                             [9, 1, 0 if table else 6, 2], table)
        self.assertEqual({row["key"]: row["count"] for row in summary["by"]},
                         {2: 1, 4: 1, 6: 1, 7: 1, 9: 1, 10: 1, 43: 1, 46: 1})

    def test_a_result_at_tables_by_a_late_filter(self):
        """Where the filter looks at the result, the calls are selected at their returns."""
        said = self.told("add", 8, "-r", "add", "--set-ret", "0", "--stats=retval", "--if", "retval % 2 == 0", "--every", "2")
        self.assertEqual([got for _, got in said], ["2", "3", "0", "5", "6", "7", "0", "9"])
        summary = self.run.summary("add")
        self.assertEqual((summary["filtered"], summary["injected"], summary["stats"]["count"], summary["stats"]["max"]),
                         (4, 2, 4, 8))

    def test_tables_elsewhere(self):
        """Entry probes, with each of the others."""
        for kind in ("-k", "-j"):
            said = self.told("add", 6, kind, "add", "--set-arg", "a=100", "--set-reg", f"{ARGUMENTS[1]}=1", "--hist=args.a",
                             "--every", "3")
            self.assertEqual([got for _, got in said], ["2", "3", "101", "5", "6", "101"])
            summary = self.run.summary("add")
            self.assertEqual((summary["injected"], sum(row["count"] for row in summary["hist"])), (2, 6))
        said = self.told("add", 6, "-j", "add", "--skip=7", "--by", "args.a", "--every", "2")
        self.assertEqual([got for _, got in said], ["2", "7", "4", "7", "6", "7"])
        self.assertEqual(len(self.run.summary("add")["by"]), 6)

    def test_calls_that_are_missed_run_untouched(self):
        """Beyond --maxactive nothing is set."""
        said = self.told("deep", 5, "-r", "deep", "--maxactive", "2", "--set-arg", "add=100", "--count")
        # Of deep(n) … deep(0), each of which adds to the sum of those below, the outer two are seen.
        self.assertEqual([int(got) for _, got in said], [min(n + 1, 2) * 100 + max(n - 1, 0) for n in range(5)])
        summary = self.run.summary("deep")
        self.assertEqual((summary["hits"], summary["missed"], summary["injected"]), (15, 6, 9))

    def test_skip_and_a_result(self):
        said = self.told("add", 4, "-r", "add", "--skip=9", "--set-ret", "retval + 1", "--count", "--every", "2")
        self.assertEqual([got for _, got in said], ["2", "10", "4", "10"])
        self.assertEqual((self.ran, self.injected("add")), (2, 2))

    # Skipping.

    def test_skip(self):
        for options in (["-j", "add"], ["-k", "add"]):
            self.assertEqual(self.told("add", 2, *options, "--skip=args.a+50"), [("-", "50"), ("-", "51")])
            self.assertEqual(self.ran, 0)
            self.assertEqual([e["skipped"] for e in self.run.events()], [50, 51])

    def test_skip_without_a_value(self):
        self.assertEqual(self.told("add", 1, "-j", "add", "--skip"), [("-", "0")])
        self.assertEqual(self.told("nothing", 2, "-j", "nothing", "--skip"), [("-", ""), ("-", "")])
        self.assertEqual(self.ran, 0)

    def test_skip_with_floating_result(self):
        self.assertEqual(self.told("scale", 1, "-j", "scale", "--skip=2.5"), [("-", "2.5")])
        self.assertEqual(self.told("half", 1, "-j", "half", "--skip=2"), [("-", "2")])

    def test_skip_under_a_return_probe(self):
        """The call returns, at once; another return probe there sees it."""
        self.assertEqual(self.told("add", 2, "-r", "add", "--skip=9"), [("-", "9"), ("-", "9")])
        events = self.run.events("return")
        self.assertEqual([(e["retval"], e["skipped"]) for e in events], [(9, 9), (9, 9)])
        self.assertEqual(self.run.summary("add")["unreturned"], 0)

    def test_selected(self):
        said = self.told("add", 12, "-j", "add", "--skip=-1", "--if", "args.a % 2 == 1", "--every", "3", "--first", "1")
        self.assertEqual([got for _, got in said], [str(n + 2) if n != 5 else "-1" for n in range(12)])
        summary = self.run.summary("add")
        self.assertEqual([summary[k] for k in ("hits", "events", "filtered", "unselected", "injected")], [12, 1, 6, 5, 1])

    def test_chance(self):
        said = self.told("add", 400, "-j", "add", "--skip=-1", "--chance", "0.25", "--seed", "1")
        failed = sum(got == "-1" for _, got in said)
        self.assertEqual(failed, self.injected("add"))
        self.assertTrue(60 < failed < 140, failed)

    # Each way to inject with each way to select. By way: the probe and what is said of add(n, 2).
    WAYS = {"--set-arg": (["-j", "add", "--set-arg", "b=40"], lambda n: (f"{n} 40", str(n + 40))),
            "--set-reg": (["-k", "add", "--set-reg", f"{ARGUMENTS[1]}=40"], lambda n: (f"{n} 40", str(n + 40))),
            "--set-ret": (["-r", "add", "--set-ret", "-1"], lambda n: (f"{n} 2", "-1")),
            "--skip": (["-j", "add", "--skip=-1"], lambda n: ("-", "-1"))}
    SELECTIONS = [(["--every", "3"], lambda n: n % 3 == 2), (["--first", "2"], lambda n: n < 2),
                  (["--every", "3", "--first", "1"], lambda n: n == 2), (["--if", "arg0 % 2 == 1"], lambda n: n % 2 == 1),
                  (["--if", "arg0 % 2 == 1", "--every", "2"], lambda n: n % 4 == 3),
                  (["--if", "arg0 > 4", "--every", "2", "--first", "3"], lambda n: n in (6, 8, 10)),
                  (["--inside", "outer", "--every", "5"], lambda n: False)]

    def check_selected(self, way, selected, function, *options):
        probe, effect = self.WAYS[way]
        said = self.told(function, 24, *probe, *options)
        untouched = [(f"{n} 2", str(n + 2)) for n in range(24)]
        if selected is None:
            selected = {n for n in range(24) if said[n] != untouched[n]}.__contains__
        self.assertEqual(said, [effect(n) if selected(n) else untouched[n] for n in range(24)], (way, options))
        chosen = {n for n in range(24) if selected(n)}
        self.assertEqual(self.injected("add"), len(chosen))
        self.assertEqual(self.ran, 24 - (len(chosen) if way == "--skip" else 0))
        return chosen

    def test_every_way_with_every_selection(self):
        for way in self.WAYS:
            for options, selected in self.SELECTIONS:
                with self.subTest(way=way, options=options):
                    self.check_selected(way, selected, "add", *options)
            with self.subTest(way=way, inside="outer"):
                self.check_selected(way, lambda n: n % 5 == 4, "outer", "--inside", "outer", "--every", "5")

    def test_every_way_by_chance(self):
        """The seed decides, not the way; another seed chooses others."""
        chosen = {}
        for seed in ("1", "2"):
            for way in self.WAYS:
                with self.subTest(way=way, seed=seed):
                    these = self.check_selected(way, None, "add", "--chance", "0.5", "--seed", seed)
                    self.assertEqual(chosen.setdefault(seed, these), these)
        self.assertNotEqual(chosen["1"], chosen["2"])

    def test_malloc_fails_inside(self):
        """The third malloc fails, and only below one function."""
        said = self.told("fallible", 5, "-j", "libc:malloc", "--inside", "fallible", "--every", "3", "--first", "1", "--skip=0")
        self.assertEqual([got for _, got in said], ["0", "0", "-1", "0", "0"])
        self.assertEqual(self.run.summary("malloc")["injected"], 1)

    def test_real_program(self):
        """bash says what it says when it is out of memory."""
        done = subprocess.run([KTRACE, "run", "-q", "-o", os.devnull, "-j", "libc:malloc", "--inside", "xmalloc", "--every",
                               "3", "--first", "1", "--skip=0", "--", "/bin/bash", "-c", "true"], capture_output=True,
                              text=True, timeout=LIMIT)
        self.assertEqual(done.returncode, 2, done)
        self.assertRegex(done.stderr, r"xmalloc: cannot allocate \d+ bytes")

    def test_text(self):
        self.told("add", 1, "-j", "add", "--set-arg", "b=5", trace_format="text")
        self.assertEqual(self.run.payloads, ["add(a=0, b=2) [set b=5]"])
        self.assertIn("; 1 injected", self.run.err)
        self.told("add", 1, "-j", "add", "--skip=7", trace_format="text")
        self.assertEqual(self.run.payloads, ["add(a=0, b=2) [skipped: retval=7]"])
        self.told("add", 1, "-r", "add", "--set-ret=7", trace_format="text")
        self.assertRegex(self.run.payloads[0], rf"^add\(.*\) returned 2 and {TOOK} \[set retval=7\]$")

    # What cannot be done.

    def refused(self, *options):
        trace = ktrace("run", *options, "--", program("inject"))
        self.assertNotEqual(trace.status, 0, trace)
        return trace.err

    def test_refused(self):
        self.assertIn("only a return probe can set", self.refused("-j", "add", "--set-ret", "1"))
        self.assertIn("has no parameter number 2", self.refused("-j", "add", "--set-arg", "2=1"))
        self.assertIn("has no parameter `c'", self.refused("-j", "add", "--set-arg", "c=1").replace("`c`", "`c'"))
        self.assertIn("foo=1: this machine has no register `foo`\n        ^~~ ",
                      self.refused("-j", "add", "--set-reg", "foo=1"))
        self.assertIn("struct big", self.refused("-j", "large", "--skip"))
        self.assertIn("void", self.refused("-r", "nothing", "--set-ret", "1"))
        self.assertIn("needs a name and a value", self.refused("-j", "add", "--set-arg", "1"))
        for early in (["--set-arg", "a=1"], ["--set-reg", f"{ARGUMENTS[0]}=1"], ["--skip=1"]):
            for table in ([], ["--count"]):
                self.assertIn("before it is known whether --if holds",
                              self.refused("-r", "add", *early, "--set-ret", "3", "--if", "retval > 1", *table))
        for twice in (["--set-ret=1", "--set-ret=2"], ["--skip", "--skip=1"]):
            self.assertIn("is given twice", self.refused("-r", "add", *twice))
        self.assertIn("--set-arg is given twice for a", self.refused("-j", "add", "--set-arg", "a=1", "--set-arg", "a=2"))
