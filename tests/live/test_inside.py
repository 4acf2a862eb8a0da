"""--inside: only under calls of a function."""
import unittest

from live import LiveTest, adds_up, ktrace, program, until
from test_jumps import HAS_RUNS, NO_RUNS


class Inside(LiveTest):
    def seen(self, function, *lines, options=("-j", "place"), before=(), by_jumps=False):
        """The arguments of place() under a function."""
        target = self.start(program("stacks"))
        for line, answer in before:
            target.tell(line)
            target.truth(answer)
        engine = ("--engine", "auto") if by_jumps else ()
        tracer = self.attach(target, *engine, "--format", "json", "--inside", function, *options)
        if by_jumps:
            until(lambda: "[OPTIMIZED]" in ktrace("ctl", "-p", target.pid, "list").out, "there is a jump")
        for line in lines:
            target.tell(line)
            target.truth("^done$")
        trace = tracer.stop()
        self.assertEqual(trace.status, 0, trace)
        for summary in trace.summaries():
            self.assertTrue(adds_up(summary), summary)
            self.assertNotEqual(summary["symbol"], function)
        self.check_untouched(target)
        self.assertEqual(target.end(), 0)
        self.trace_of = trace
        return [event["args"]["n"] for event in trace.events() if "args" in event]

    def test_inside_a_call(self):
        self.assertEqual(self.seen("outer", "once"), [2, 6])  # once itself, and in a thread
        self.assertEqual(self.trace_of.summary("place")["filtered"], 14 - 2)

    def test_recursion(self):
        self.assertEqual(self.seen("recurse", "once", "once"), [0, 0])

    def test_callback(self):
        through_libc = self.seen("libc:qsort_r", "once")
        self.assertEqual(len(through_libc), 3)
        self.assertEqual(self.seen("sort", "once"), through_libc)

    def test_signal_handler(self):
        self.assertEqual(self.seen("interrupted", "once"), [10])

    def test_longjmp(self):
        self.assertEqual(self.seen("leave", "once", "once"), [1, 1])

    def test_tail_call(self):
        self.assertEqual(self.seen("tail", "once"), [11])

    def test_other_stack(self):
        """A coroutine is on a stack of its own: not inside of the function that has switched to it."""
        self.assertEqual(self.seen("switching", "once", "once"), [2, 2])

    def test_began_before(self):
        """A call that was in flight when ktrace came."""
        self.assertEqual(self.seen("holding", "go", "once", before=[("hold", "^holding$")]),
                         [7])

    def test_returns(self):
        self.assertEqual(self.seen("outer", "work 50", options=["-r", "place"]), [n + 1 for n in range(50)])
        summary = self.trace_of.summary("place")
        self.assertEqual((summary["hits"], summary["events"], summary["filtered"]), (100, 50, 50))

    def test_with_the_other_filters(self):
        """Filters first, then every, then first."""
        seen = self.seen("outer", "work 50", options=["-j", "place", "--if", "args.n % 2 == 0", "--every", "3", "--first", "4"])
        self.assertEqual(seen, [6, 12, 18, 24])

    @unittest.skipUnless(HAS_RUNS, NO_RUNS)
    def test_in_the_agent(self):
        """Once there are jumps a hit outside costs no stop."""
        for function, lines, wanted in (("outer", ("work 40", "once") * 20, [*range(1, 41), 2, 6] * 20),
                                        ("recurse", ("once",) * 9, [0] * 9), ("interrupted", ("once",) * 9, [10] * 9),
                                        ("leave", ("once",) * 9, [1] * 9), ("tail", ("once",) * 9, [11] * 9),
                                        ("switching", ("once",) * 9, [2] * 9)):
            with self.subTest(function):
                self.assertEqual(self.seen(function, *lines, by_jumps=True), wanted)
        self.assertEqual(self.seen("holding", "go", "once", before=[("hold", "^holding$")], by_jumps=True), [7])

    def test_added_and_switched_while_calls_are_in_flight(self):
        """ctl add, off and on: calls that began meanwhile are found, too; and nothing is left armed when all is off."""
        target = self.start(program("stacks"))
        tracer = self.attach(target, "--format", "json", "-j", "place")

        def ctl(*words):
            answer = ktrace("ctl", "-p", target.pid, *words)
            self.assertEqual(answer.status, 0, answer)

        target.tell("hold")
        target.truth("^holding$")
        ctl("add", "-j", "place", "--inside", "holding")
        target.tell("go")
        target.tell("once")
        target.truth("^done$")
        ctl("off")
        target.tell("hold")
        target.truth("^holding$")
        ctl("on")
        target.tell("go")
        target.tell("once")
        target.truth("^done$")
        ctl("off")
        self.assertTrue(self.text_is_untouched(target))
        ctl("remove", "2")
        ctl("on")
        trace = tracer.stop()
        self.assertEqual([e["args"]["n"] for e in trace.events() if e["probe"] == 2], [7, 7], trace)
        self.check_untouched(target)

    def text_is_untouched(self, target):
        path = program("stacks")
        with open(f"/proc/{target.pid}/maps") as maps, open(f"/proc/{target.pid}/mem", "rb") as memory:
            for line in maps:
                fields = line.split()
                if "x" not in fields[1] or fields[-1] != path:
                    continue
                start, end = (int(a, 16) for a in fields[0].split("-"))
                memory.seek(start)
                with open(path, "rb") as file:
                    file.seek(int(fields[2], 16))
                    before = file.read(end - start)
                return memory.read(end - start)[:len(before)] == before
        return False

    def test_numbers(self):
        """Probes count from 1 as their SPECs were given: what follows FUNC takes no number, here or in `ctl add`."""
        target = self.start(program("stacks"))
        tracer = self.attach(target, "--format", "json", "-j", "place", "--inside", "outer")
        for number, function in ((2, "outer"), (3, "recurse")):
            added = ktrace("ctl", "-p", target.pid, "add", "-j", "place", "--inside", function)
            self.assertEqual((added.status, added.out.split()[0]), (0, str(number)), added)
            refused = ktrace("ctl", "-p", target.pid, "add", "-j", "no_such", "--inside", function)
            self.assertEqual(refused.status, 1, refused)
        target.tell("once")
        target.truth("^done$")
        trace = tracer.stop()
        seen = {n: [e["args"]["n"] for e in trace.events() if e["probe"] == n] for n in (1, 2, 3)}
        self.assertEqual(seen, {1: [2, 6], 2: [2, 6], 3: [0]}, trace)
        self.assertEqual([s["probe"] for s in trace.summaries()], [1, 2, 3])

    def test_unknown_function(self):
        target = self.start(program("stacks"))
        tracer = self.trace("-p", target.pid, "-j", "place", "--inside", "no_such_function", wait=False)
        trace = tracer.finish()
        self.assertEqual(trace.status, 1, trace)
        self.assertIn("no_such_function", trace.err)
        self.check_untouched(target)
