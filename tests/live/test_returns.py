"""Return probes: every way in which a call can end. The target counts its entries and returns itself."""
import os
import re

import workshop
from live import LiveTest, adds_up, ktrace, program, wait_until_let_go


class Counting(LiveTest):
    target = ""

    def check(self, case, *functions):
        target = self.start(program(self.target), case)
        options = [o for f in functions for o in ("--ret", f)]
        tracer = self.attach(target, *options, "--format", "json")
        target.tell()
        target.truth(r"^done$")
        trace = tracer.stop()
        self.assertEqual(trace.status, 0, trace)
        truth = {}
        for line in target.lines.seen:
            found = re.match(r"(\w+) entered (\d+) returned (\d+)", line)
            if found:
                truth[found[1]] = (int(found[2]), int(found[3]))
        for function in functions:
            summary = trace.summary(function, "r")
            entered, returned = truth[function]
            self.assertEqual((summary["hits"], summary["events"]), (entered, returned), f"{function} {summary}\n{trace.err}")
            self.assertEqual(summary["unreturned"], entered - returned, summary)
            self.assertTrue(adds_up(summary), summary)
        self.check_untouched(target)
        self.assertEqual(target.end(), 0)
        return trace


class Returns(Counting):
    target = "returns"

    def test_recursion(self):
        trace = self.check("recursion", "factorial", "is_even", "is_odd")
        values = [e["retval"] for e in trace.events("return") if e["symbol"] == "factorial"]
        expected = []
        product = 1
        for n in range(1, 11):
            product *= n
            expected.append(product)
        self.assertEqual(values[:10], expected)

    def test_tail_calls(self):
        trace = self.check("tail", "first", "middle", "last", "ping", "pong")
        order = [e["symbol"] for e in trace.events("return")][:3]
        self.assertEqual(order, ["last", "middle", "first"])
        self.assertEqual({e["retval"] for e in trace.events("return")[:3]}, {3})

    def test_longjmp(self):
        self.check("longjmp", "leaps")

    def test_exceptions(self):
        self.check("exception", "throws", "passes_through")

    def test_thread_ends_inside(self):
        self.check("thread", "ends_thread")

    def test_signal_handlers(self):
        self.check("signal", "interrupted", "in_handler")

    def test_fibers(self):
        self.check("fiber", "fiber_step")

    def test_fibers_that_change_threads(self):
        self.check("hand", "fiber_hand")

    def test_exceptions_thrown_on(self):
        self.check("rethrow", "catches", "throws_on", "passes_through", "throws")

    def test_jumps_away_from_generated_code(self):
        """A call that leaves by a jump is not seen to return; it is not reported with the next one's result and time."""
        trace = self.check("generated", "leaves")
        told = [(e["args"]["n"], e["retval"]) for e in trace.events("return")]
        self.assertEqual(told, [(n, 2 * n) for n in range(1, 1000, 2)])
        self.assertIn("500 unreturned (left by a jump to another function)", trace.err)

    def test_calls_that_a_filter_leaves_out(self):
        """What they return is not taken for the result of one that was left before from there."""
        target = self.start(program("returns"), "longjmp")
        tracer = self.attach(target, "--ret", "leaps", "--if", "n % 2 == 1", "--format", "json")
        target.tell()
        target.truth(r"^leaps entered 200 returned 100$")
        summary = tracer.stop().summary("leaps", "r")
        self.assertEqual([summary[name] for name in ("hits", "filtered", "events", "unreturned")], [200, 100, 0, 100],
                         summary)
        self.check_untouched(target)
        self.assertEqual(target.end(), 0)


class Unwound(Counting):
    """Calls that are left, and of which the call instruction leads to another function next."""
    target = "unwound"

    def check(self, case, *functions):
        trace = super().check(case, *functions)
        results = {e["retval"] for e in trace.events("return") if e["symbol"] == "divide"}
        self.assertLessEqual(results, {50, 100}, "what others return is not what a division returns")
        return trace

    def test_by_longjmp(self):
        self.check("longjmp", "divide")

    def test_by_longjmp_to_where_they_return(self):
        self.check("merged", "divide")

    def test_by_longjmp_of_a_handler(self):
        self.check("signal", "divide")

    def test_by_exceptions(self):
        self.check("exception", "divide")

    def test_by_exceptions_that_their_caller_catches(self):
        self.check("caught", "divide")

    def test_in_recursions(self):
        """Calls above the one that catches return as they always do."""
        self.check("recursion", "divide", "nested")

    def test_in_many_threads(self):
        self.check("threads", "divide")

    def held(self, *options):
        """A target in a call that is in doubt, whose children have made calls from the same place, and its tracer."""
        target = self.start(program("unwound"), "held")
        tracer = self.attach(target, "-r", "divide", "-r", "held", "--format", "json", *options)
        target.tell()
        target.truth("^held$")
        return target, tracer

    def go_on(self, target):
        target.tell()
        target.truth("^done$")
        self.check_untouched(target)
        self.assertEqual(target.end(), 0)

    def test_in_doubt_until_they_return(self):
        for options, divisions in (([], (1, 0, 1)), (["--follow"], (21, 20, 1))):
            with self.subTest(options):
                target, tracer = self.held(*options)
                target.tell()
                target.truth("^done$")
                trace = tracer.stop()
                for function, expected in (("divide", divisions), ("held", (1, 1, 0))):
                    summary = trace.summary(function, "r")
                    self.assertEqual(tuple(summary[name] for name in ("hits", "events", "unreturned")), expected, trace)
                self.check_untouched(target)
                self.assertEqual(target.end(), 0)

    def test_in_doubt_at_detach(self):
        target, tracer = self.held()
        self.assertEqual(tracer.stop().summary("held", "r")["unreturned"], 1)
        self.check_untouched(target)
        self.go_on(target)

    def test_in_doubt_when_ktrace_is_killed(self):
        target, tracer = self.held()
        tracer.process.kill()
        tracer.finish()
        wait_until_let_go(target.pid)
        self.go_on(target)

    def test_by_setcontext(self):
        self.check("context", "divide")

    def test_by_exceptions_on_another_thread(self):
        self.check("handed", "handed")


class JumpsBack(LiveTest):
    """Functions that jump to their own first instruction: the same call, a new hit of the instruction."""
    FUNCTIONS = ("tail_of", "count_down", "depth", "pthread_spin_lock")

    def run_it(self, compiler, *options):
        path = workshop.build("jumps_back", "-O2", "-g", "-pthread", compiler=compiler,
                              sources=[os.path.join(workshop.SOURCES, "languages", "jumps_back.c")])
        trace = ktrace("run", *options, "--format", "json", "--", path)
        self.assertEqual(trace.status, 0, trace)
        truth = re.findall(r"^(\w+) called (\d+) turns (\d+)$", trace.out, re.M)
        trace.out = "\n".join(line for line in trace.lines if line.startswith("{"))
        return trace, {name: (int(called), int(turns)) for name, called, turns in truth}

    def check_calls(self, *engine):
        for compiler in ("gcc", "clang"):
            with self.subTest(compiler):
                probes = [o for f in self.FUNCTIONS for o in ("-j", f, "-r", f)]
                trace, truth = self.run_it(compiler, *probes, *engine, "--count")
                for function in self.FUNCTIONS:
                    entries, returns = trace.summary(function, "j"), trace.summary(function, "r")
                    self.assertEqual((entries["hits"], returns["hits"]), (truth[function][0],) * 2, trace)
                    self.assertEqual((returns["events"], returns["unreturned"]), (truth[function][0], 0), trace)

    def test_calls(self):
        self.check_calls()

    def test_calls_by_jumps(self):
        self.check_calls("--engine", "auto")

    def test_entries_alone(self):
        trace, truth = self.run_it("gcc", "-j", "tail_of", "--count", "--engine", "auto")
        self.assertEqual(trace.summary("tail_of")["events"], truth["tail_of"][0], trace)

    def test_instructions(self):
        """A probe on the first instruction sees each execution, beside one of calls."""
        for beside in ((), ("-j", "tail_of", "-r", "count_down")):
            trace, truth = self.run_it("gcc", "-k", "tail_of", "-k", "count_down", *beside, "--count")
            for function in ("tail_of", "count_down"):
                self.assertEqual(trace.summary(function, "k")["hits"], truth[function][1], trace)

    def test_values(self):
        """Arguments of the call, result of the whole walk."""
        trace, _ = self.run_it("gcc", "-r", "tail_of", "--if", "args.n->v == 4", "--print", "args.n->v,retval->v")
        self.assertEqual([e["values"] for e in trace.events()], [{"args.n->v": 4, "retval->v": 0}] * 3, trace)
