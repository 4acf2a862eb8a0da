"""Memory that a probed call or jump uses is used by the processor, by the rights that the program has there."""
import platform
import unittest

from live import LiveTest, adds_up, program

WAYS = ("closed", "cut", "guard", "late", "steps", "watched")
PROBES = ("table_call", "jump_through", "recurse_call", "stack_call", "stepped_call", "stepped_table_call",
          "stepped_table_jump")


@unittest.skipUnless(platform.machine() == "x86_64", "calls of other machines use no memory")
class Guards(LiveTest):
    ROUNDS = 20

    def truths(self, target):
        """What each way does: faults, bad ones, calls."""
        truths = {}
        for way in WAYS:
            target.tell(f"{way} {self.ROUNDS}")
            truths[way] = tuple(map(int, target.truth(rf"^{way} faults (-?\d+) bad (\d+) calls (\d+)").groups()))
        return truths

    def check(self, *options):
        target = self.start(program("guards"))
        untraced = self.truths(target)
        self.assertEqual([bad for _, bad, _ in untraced.values()], [0] * len(WAYS), untraced)
        probes = [argument for probe in PROBES for argument in ("-k", probe)]
        tracer = self.attach(target, *probes, "-j", "do_work", *options, "--count", "--format", "json")
        self.assertEqual(self.truths(target), untraced)
        trace = tracer.stop()
        self.assertEqual(trace.status, 0, trace)
        for summary in trace.summaries():
            self.assertTrue(adds_up(summary), trace)
        self.assertEqual(trace.summary("do_work")["hits"], sum(calls for _, _, calls in untraced.values()), trace)
        # A call that faults comes again when its handler has returned: it is the same hit.
        jumps = 2 * self.ROUNDS
        self.assertEqual(trace.summary("jump_through")["hits"], jumps, trace)
        self.check_untouched(target)
        self.assertEqual(self.truths(target), untraced)
        self.assertEqual(target.end(), 0)

    def test_before_the_instruction(self):
        self.check()

    def test_after_the_instruction(self):
        self.check("--post")

    def test_what_it_pushes_is_written_once(self):
        for options in (("-k", "stack_call"), ("-k", "stack_call", "--post"), ()):
            with self.subTest(options=options):
                target = self.start(program("guards"))
                tracer = self.attach(target, *options, "-w", "pushed", "--count", "--format", "json")
                target.tell(f"watched {self.ROUNDS}")
                target.truth(rf"^watched faults 0 bad 0 calls {self.ROUNDS}")
                trace = tracer.stop()
                self.assertEqual([s["hits"] for s in trace.summaries()], [self.ROUNDS] * len(trace.summaries()), trace)
                self.check_untouched(target)
                self.assertEqual(target.end(), 0)
