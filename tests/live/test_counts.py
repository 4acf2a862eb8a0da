"""Exact counts: hits == calls, whatever the number of threads."""
from live import LiveTest, adds_up, fewer, program


class Counts(LiveTest):
    def count(self, threads, calls, option):
        target = self.start(program("calls"), threads, fewer(calls))
        tracer = self.attach(target, option, "do_work", "--count", "--format", "json")
        target.tell()
        truth = target.truth(r"do_work (\d+) sum (-?\d+)")
        trace = tracer.stop()
        self.assertEqual(trace.status, 0, trace)
        summary = trace.summary("do_work")
        self.assertEqual(summary["hits"], int(truth[1]), trace)
        self.assertEqual(summary["events"], int(truth[1]), trace)
        self.assertTrue(adds_up(summary), summary)
        self.check_untouched(target)
        target.tell()
        again = target.truth(r"do_work (\d+) sum (-?\d+)")
        self.assertEqual(again[2], truth[2])
        self.assertEqual(target.end(), 0)

    def test_one_thread(self):
        self.count(1, 20000, "-k")

    def test_four_threads(self):
        self.count(4, 100000, "-k")

    def test_sixteen_threads(self):
        self.count(16, 25000, "-k")

    def test_four_threads_returning(self):
        self.count(4, 100000, "-r")

    def test_sixteen_threads_returning(self):
        self.count(16, 25000, "-r")
