"""What languages do with calls beyond C: stacks that move under them, coroutines."""
import os

import workshop
from live import LiveTest, adds_up, program


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
