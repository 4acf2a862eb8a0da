"""Signals that arrive while a task is at a trap, in a slot, or in a step: delivered, at the program's own addresses."""
from live import LiveTest, adds_up, program


class Signals(LiveTest):
    def check(self, *options, calls=60000):
        target = self.start(program("signals"), calls)
        tracer = self.attach(target, *options, "--format", "json")
        target.tell()
        truth = target.truth(r"hot (\d+) ticks (\d+) bad (\d+)")
        trace = tracer.stop()
        self.assertEqual(trace.status, 0, trace)
        self.assertEqual(int(truth[3]), 0, "a handler saw an address that is not the program's")
        self.assertGreater(int(truth[2]), 0)
        for summary in trace.summaries():
            self.assertEqual(summary["hits"], int(truth[1]), trace)
            self.assertTrue(adds_up(summary), summary)
        self.check_untouched(target)
        self.assertEqual(target.end(), 0)

    def test_boosted(self):
        self.check("-k", "work_hot", "--count")

    def test_returning(self):
        self.check("-r", "work_hot", "--count")

    def test_stepped(self):
        self.check("-k", "work_hot", "--post", "--count", calls=30000)
