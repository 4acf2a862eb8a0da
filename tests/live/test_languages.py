"""What languages do with calls beyond C: stacks that move under them, coroutines."""
import os
import re
import shutil
import tempfile
import unittest

import workshop
from live import MACHINE, LiveTest, adds_up, program, wait_until_let_go

SOAK = os.path.join(os.path.dirname(workshop.SOURCES), "soak")
NODE = """
console.log('ready');
const crypto = require('crypto');
require('readline').createInterface({input: process.stdin}).on('line', () => {
    let s = 0;
    for (let i = 0; i < 500; i++) s += crypto.createHash('sha1').update('x' + i).digest()[0];
    console.log('sum', s);
});
"""
JAVA = """
import java.util.*;
public class Work {
    public static void main(String[] arguments) throws Exception {
        System.out.println("ready");
        Scanner in = new Scanner(System.in);
        while (in.hasNextLine()) {
            in.nextLine();
            long[] sums = new long[4];
            Thread[] threads = new Thread[4];
            for (int t = 0; t < 4; t++) {
                final int n = t;
                threads[t] = new Thread(() -> {
                    for (int i = 0; i < 100; i++)
                        try {
                            throw new IllegalStateException("x" + i);
                        } catch (IllegalStateException e) { sums[n] += e.getMessage().length() + e.getStackTrace().length; }
                });
                threads[t].start();
            }
            for (Thread thread : threads) thread.join();
            System.out.println("sum " + Arrays.stream(sums).sum());
        }
    }
}
"""

NIL = "nil"
GO_PARAMETERS = {
    "many": {"e": NIL, "n": "3", "yes": "true", "s": "[]", "x": "11", "y": "12", "z": "13",
             "w": "14"},
    "stacked": {"b": "{.a=[1, 2, 3]}", "e": NIL, "a": "[4, 5]"},
    "replaced": {"e": NIL, "n": "6"},
}

GONE = "<optimized out>|<not known>"
# Of each function the values of its parameters and of its result; with ? those that need not be shown of code that is not
# optimized, either: which way they are passed is not known, or comes behind such a one.
RUST_CALLS = {
    "scalars": ({"a": "-3", "b": "true", "c": "'x'", "d": "3.5", "e": "200", "f": "7"}, "-600"),
    "texts": ({"s": '"hello"', "t": r"\[1, 2\]", "n": "7"}, "70"),
    "split": ({"a": "7", "b": '"abcdefg"', "c": '"c"', "d": '?"dd"', "e": "?4"}, '"abcdefg"'),
    "unused": ({"_a": "7", "s": '"abc"', "n": "8"}, "8"),
    "words": ({"w": r"{\.a=7, \.b=2}", "n": "7"}, r"{\.a=2, \.b=14}"),
    "halves": ({"h": r"?{\.a=1\.5, \.b=7}", "n": "?7"}, r"?{\.a=7, \.b=1\.5}"),
    "packed": ({"h": r"?{\.a=1\.5, \.b=7}", "n": "?7"}, r"?{\.a=7, \.b=1\.5}"),
    "maybe": ({"o": r"?Some\(7\)", "n": "?7"}, r"?Some\(14\)"),
    "reference": ({"o": r"Some\(0x7f[0-9a-f]+\)", "(m|arg1)": "?", "n": "7"}, r"Some\(0x7f[0-9a-f]+\)"),
    "large": ({"l": r"{\.a=\[1, 2, 7, 4\]}", "n": "7"}, "14"),
    "constant": ({"n": "5", "f": "2.5"}, "5"),
    "applied": ({"f": "?", "n": "?7"}, "-7"),
    "made": ({"n": "7"}, r"?{\.a=\[7, 7, 7, 7\]}"),
}


def told(value, optimized):
    """What may be shown: nothing else than the truth."""
    return f"({value.lstrip('?')}|{GONE})" if optimized or value.startswith("?") else value


class Languages(LiveTest):
    def counts(self, target, *functions):
        """What the target says of each: entered, returned."""
        found = {}
        for function in functions:
            truth = target.truth(rf"^{function} entered (\d+) returned (\d+)$")
            found[function] = (int(truth[1]), int(truth[2]))
        return found

    def check(self, trace, truth):
        self.assertEqual(trace.status, 0, trace)
        for summary in trace.summaries():
            entered, returned = truth[summary["symbol"]]
            self.assertEqual(summary["hits"], entered, trace)
            if summary["kind"] == "r":
                self.assertEqual((summary["events"], summary["unreturned"]), (returned, entered - returned), trace)
            self.assertTrue(adds_up(summary), summary)

    @unittest.skipUnless(MACHINE == "x86_64", "the target does as Go does there")
    def test_stacks_that_move(self):
        target = self.start(program("goroutines"))
        probes = [o for f in ("climb", "ride") for o in ("-r", f, "-j", f, "-k", f)]
        tracer = self.attach(target, *probes, "--count", "--format", "json")
        target.tell("4 20")
        truth = self.counts(target, "climb", "ride")
        self.assertEqual(truth["ride"], (80, 80))
        self.assertGreaterEqual(int(target.truth(r"^moves (\d+)$")[1]), 80)
        trace = tracer.stop()
        self.assertEqual(len(trace.summaries()), 6, trace)
        self.check(trace, truth)
        self.check_untouched(target)
        self.assertEqual(target.end(), 0)

    @unittest.skipUnless(MACHINE == "x86_64", "the target does as Go does there")
    def test_stacks_that_another_thread_goes_on_with(self):
        """A goroutine that is preempted where it starts over is the same call on another thread."""
        for options in (("-k", "climb"), ("-r", "climb", "-j", "climb")):
            with self.subTest(options):
                target = self.start(program("goroutines"))
                tracer = self.attach(target, *options, "--count", "--format", "json")
                target.tell("hop 20")
                truth = self.counts(target, "climb", "ride")
                trace = tracer.stop()
                self.check(trace, truth)
                self.check_untouched(target)
                self.assertEqual(target.end(), 0)

    def test_coroutines(self):
        source = os.path.join(workshop.SOURCES, "languages", "coroutines.cc")
        target = self.start(workshop.build("coroutines", "-std=c++20", "-O2", "-g", "-pthread", sources=[source],
                                           compiler="g++"))
        tracer = self.attach(target, "-r", "computed", "-r", "resumed", "--count", "--format", "json")
        target.tell()
        truth = self.counts(target, "computed", "resumed")
        trace = tracer.stop()
        self.check(trace, truth)
        self.check_untouched(target)
        self.assertEqual(target.end(), 0)


    def test_parts_of_coroutines(self):
        """The compiler makes functions of one, which the name of the whole does not mean."""
        source = os.path.join(workshop.SOURCES, "languages", "coroutines.cc")
        for compiler, part in (("g++", "actor"), ("clang++", "resume")):
            with self.subTest(compiler):
                target = self.start(workshop.build("coroutines", "-std=c++20", "-O0", "-g", "-pthread", sources=[source],
                                                   compiler=compiler))
                tracer = self.attach(target, "-j", "squares", "-j", f"squares.{part}")
                target.tell()
                resumed = self.counts(target, "computed", "resumed")["resumed"][0]
                trace = tracer.stop()
                shown = re.findall(r"squares(\S*)\((\w+)=(.*)\)$", trace.out, re.M)
                self.assertEqual([each for each in shown if not each[0]], [("", "count", "50")] * 10)
                parts = [each for each in shown if each[0] == f".{part}"]
                self.assertGreaterEqual(len(parts), resumed)
                for _, parameter, value in parts:
                    self.assertIn((parameter, value[:2]), (("frame_ptr", "0x"), ("count", "<n")))
                self.assertEqual(target.end(), 0)


class Runtimes(LiveTest):
    """Compilers and virtual machines that not every machine has; tests/soak/programs is the long form."""

    def room(self):
        folder = tempfile.mkdtemp(prefix="ktrace-languages-")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        return folder

    def made(self, name, source):
        """A file of this name."""
        path = os.path.join(self.room(), name)
        with open(path, "w") as f:
            f.write(source)
        return path

    def sum(self, target):
        target.tell()
        return target.truth(r"^sum .*")[0]

    def check(self, command, expected, generates_code=False):
        """It works as before under return probes, which are hit as often as given: {function: (calls, unreturned)} in a round;
        and when ktrace has been killed."""
        target = self.start(*command)
        truth = self.sum(target)
        probes = [option for function in expected for option in ("-r", function)]
        tracer = self.attach(target, *probes, "--count", "--format", "json")
        self.assertEqual(self.sum(target), truth)
        trace = tracer.stop()
        self.assertEqual(trace.status, 0, trace)
        self.assertEqual(len(trace.summaries()), len(expected), trace)
        for summary, (calls, unreturned) in zip(trace.summaries(), expected.values()):
            self.assertEqual((summary["hits"], summary["unreturned"]), (calls, unreturned), summary)
            self.assertTrue(adds_up(summary), summary)
        self.check_untouched(target, generates_code)
        tracer = self.attach(target, *probes, "--count")
        tracer.process.kill()
        tracer.finish()
        self.assertEqual(self.sum(target), truth)
        wait_until_let_go(target.pid)
        self.check_untouched(target, generates_code)
        self.assertEqual(target.end(), 0)

    def test_goroutines(self):
        workshop.require("go")
        room = self.room()
        workshop.execute("env", f"GOCACHE={room}/cache", "GO111MODULE=off", "go", "build", "-o", f"{room}/goroutines",
                         os.path.join(SOAK, "goroutines.go"))
        self.check([f"{room}/goroutines"], {"main.outer": (1000, 0), "main.climb": (51000, 0), "main.leaf": (1000, 0),
                                            "main.guarded": (1000, 0), "main.panics": (1000, 600)})

    def test_stacks_that_become_smaller(self):
        """Their calls are those of the goroutine that has them, and no other's."""
        workshop.require("go")
        room = self.room()
        workshop.execute("env", f"GOCACHE={room}/cache", "GO111MODULE=off", "go", "build", "-o", f"{room}/shrinking",
                         os.path.join(workshop.SOURCES, "languages", "shrinking.go"))
        self.check([f"{room}/shrinking"], {"main.held": (1280, 0)})

    def test_panics_of_go(self):
        """They leave calls whose call instruction leads to another function next, on whichever thread."""
        workshop.require("go")
        room = self.room()
        workshop.execute("env", f"GOCACHE={room}/cache", "GO111MODULE=off", "go", "build", "-o", f"{room}/unwound",
                         os.path.join(workshop.SOURCES, "languages", "unwound.go"))
        target = self.start(f"{room}/unwound")
        tracer = self.attach(target, "-r", "main.divide", "--format", "json")
        target.tell()
        target.truth("^divide entered 800 returned 400$")
        trace = tracer.stop()
        summary = trace.summary("main.divide", "r")
        self.assertEqual([summary[name] for name in ("hits", "events", "unreturned")], [800, 400, 400], summary)
        self.check_untouched(target)
        self.assertEqual(target.end(), 0)

    def test_parameters_of_go(self):
        """Where nothing says where one is, it is not guessed from the calling convention of C."""
        workshop.require("go")
        room = self.room()
        for label, flags in (("optimized", ""), ("plain", "-N -l")):
            with self.subTest(label):
                made = f"{room}/{label}"
                workshop.execute("env", f"GOCACHE={room}/cache", "GO111MODULE=off", "go", "build", f"-gcflags={flags}", "-o",
                                 made, os.path.join(workshop.SOURCES, "languages", "parameters.go"))
                target = self.start(made)
                tracer = self.attach(target, "-j", "main.many", "-j", "main.stacked", "-j", "main.replaced")
                self.assertEqual(self.sum(target), "sum 24")
                trace = tracer.stop()
                shown = re.findall(r"main\.(\w+)\((.*)\)$", trace.out, re.M)
                self.assertEqual([name for name, _ in shown], ["many", "stacked", "replaced"], trace)
                for function, arguments in shown:
                    expected = ", ".join(f"{name}=({re.escape(value)}|{GONE})"
                                         for name, value in GO_PARAMETERS[function].items())
                    self.assertRegex(arguments, f"^{expected}$")
                    self.assertTrue(label == "optimized" or "optimized out" not in arguments, arguments)
                self.assertNotIn("optimized out", shown[1][1])  # of a value on the stack the place is always known
                self.check_untouched(target)
                self.assertEqual(target.end(), 0)

    def test_calls_of_rust(self):
        """Its compiler has a calling convention of its own, which in part is that of C."""
        workshop.require("rustc")
        room = self.room()
        for label, options in (("optimized", ["-O"]), ("slightly", ["-C", "opt-level=1"]), ("plain", [])):
            with self.subTest(label):
                made = f"{room}/{label}"
                workshop.execute("rustc", *options, "-g", "-o", made,
                                 os.path.join(workshop.SOURCES, "languages", "parameters.rs"))
                target = self.start(made)
                specs = [f"parameters::{name}" for name in RUST_CALLS]
                tracer = self.attach(target, *(o for spec in specs for o in ("-j", spec, "-r", spec)))
                self.assertEqual(self.sum(target), "sum -336.75")
                trace = tracer.stop()
                for function, (parameters, result) in RUST_CALLS.items():
                    shown = ", ".join(f"{name}={told(value, options)}" for name, value in parameters.items())
                    self.assertRegex(trace.out, rf"(?m)parameters::{function}\({shown}\)$")
                    self.assertRegex(trace.out, rf"parameters::{function}\(.*\) returned {told(result, options)} and took")
                if options:
                    self.assertRegex(trace.out, r"(?m)::large\(l={.*, n=7\)$", "places that are told are trusted")
                self.check_untouched(target)
                self.assertEqual(target.end(), 0)

    def test_panics(self):
        workshop.require("rustc")
        made = os.path.join(self.room(), "panics")
        workshop.execute("rustc", "-O", "-g", "-o", made, os.path.join(SOAK, "panics.rs"))
        self.check([made], {"risky": (20000, 8000), "passes": (12000, 8000), "caught": (12000, 0), "dropped": (20000, 0)})

    def test_generated_by_node(self):
        """Its C++ functions are called by code that is made while it runs: their return instructions are trapped."""
        workshop.require("node")
        script = self.made("work.js", NODE)
        self.check(["node", script], {"node::crypto::Hash::New": (500, 0), "node::crypto::Hash::HashDigest": (500, 0)}, True)

    def test_generated_by_java(self):
        workshop.require("java")
        workshop.require("javac")
        source = self.made("Work.java", JAVA)
        workshop.execute("javac", "-d", os.path.dirname(source), source)
        self.check(["java", "-cp", os.path.dirname(source), "Work"],
                   {"JVM_FillInStackTrace": (400, 0), "JVM_StartThread": (4, 0)}, True)

