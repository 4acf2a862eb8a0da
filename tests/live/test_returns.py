"""Return probes: every way in which a call can end. The target counts its entries and returns itself."""
import re

from live import LiveTest, adds_up, program


class Returns(LiveTest):
    def check(self, case, *functions):
        target = self.start(program("returns"), case)
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
        """A call that leaves by a jump is not seen to return; it is not told with what the next one returns, and when."""
        trace = self.check("generated", "leaves")
        told = [(e["args"]["n"], e["retval"]) for e in trace.events("return")]
        self.assertEqual(told, [(n, 2 * n) for n in range(1, 1000, 2)])
