"""Threads that block SIGTRAP and little else: what the kernel does to that at each trap is undone before they see it."""
from live import LiveTest, adds_up, program

CHILDREN, HITS_OF_CHILD = 4 * 10, 3  # of "set 100"


class Masks(LiveTest):
    def check(self, options, hits_of_children):
        target = self.start(program("masks"))
        tracer = self.attach(target, "-k", "hit", "--count", "--format", "json", *options)
        target.tell("set 100")
        hits, bad = (int(n) for n in target.truth(r"set 100 hits (\d+) bad (\d+)").groups())
        self.assertEqual(bad, 0)
        trace = tracer.stop()
        self.assertEqual(trace.status, 0, trace)
        summary = trace.summary("hit")
        self.assertTrue(adds_up(summary), trace)
        self.assertEqual(summary["hits"], hits + hits_of_children)
        self.check_untouched(target)
        self.assertEqual(target.end(), 0)

    def test_of_threads(self):
        self.check((), 0)

    def test_of_children(self):
        self.check(("-f",), CHILDREN * HITS_OF_CHILD)

    def test_with_steps(self):
        self.check(("--post",), 0)

    def test_that_are_set_all_the_time(self):
        """A program that locks by blocking signals is not slowed down."""
        target = self.start(program("masks"))
        tracer = self.attach(target, "-k", "hit", "--count")
        target.tell("often")
        target.truth(r"often \d+")
        self.assertEqual(tracer.stop().status, 0)
        self.check_untouched(target)
        self.assertEqual(target.end(), 0)
