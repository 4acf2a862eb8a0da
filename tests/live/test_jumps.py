"""Jumps in the place of traps, where probes only count: hits == calls, whatever comes and goes; nothing is left behind.

The target (tests/targets/jumper.c) counts its calls and checks their results. The long form of the tests under load is
tests/soak/jumps.
"""
import os
import platform
import re
import signal
import tempfile
import time
import unittest
from types import SimpleNamespace

from live import LiveTest, adds_up, figure, has_own_text, ktrace, program, until, wait_until_let_go
from test_kills import kill_both
from test_libraries import Libraries, library

IS_ARM = platform.machine() == "aarch64"
COUNTED = ("counted", "counted_pushes")  # by their first instruction
OTHERS = ("lea_ret", "pushes", "loads", "called", "calls_last", "goes_on", "recurses", "loops", "flags", "red_zone")
ALL = (*COUNTED, *OTHERS)
# With live flags, with data below the stack pointer, and where the function jumps back to, which is no call.
INSIDE = {"flags": "flags+4", "red_zone": f"red_zone+{4 if IS_ARM else 5}", "loops": "loops"}
SECONDS = float(os.environ.get("KTRACE_JUMP_SECONDS", "0"))
ROUNDS = 6  # at least
JUMP = ("--engine", "auto")


def has_jumps():
    """On arm64 the processor has to have atomic instructions."""
    with open("/proc/cpuinfo") as about:
        return not IS_ARM or "atomics" in about.read()


def has_steady_counter():
    """What stamps the time in the process: on x86-64 the time stamp counter, where the kernel trusts it."""
    with open("/proc/cpuinfo") as about, open("/sys/devices/system/clocksource/clocksource0/available_clocksource") as clocks:
        return IS_ARM or {"constant_tsc", "nonstop_tsc"} <= set(about.read().split()) and "tsc" in clocks.read().split()


HAS_JUMPS = has_jumps()
NO_JUMPS = "ktrace has no jumps for this processor"
HAS_RUNS = HAS_JUMPS and has_steady_counter()  # jumps that do more than count
NO_RUNS = "jumps only count here: the processor's time stamp counter is not steady" if HAS_JUMPS else NO_JUMPS


def probes_of(names):
    return [word for name in names for word in (("-k", INSIDE[name]) if name in INSIDE else ("-j", name))]


def has_time(end, done):
    return done < ROUNDS or time.monotonic() < end


@unittest.skipUnless(HAS_JUMPS, NO_JUMPS)
class Jumps(LiveTest):
    def begin(self, *options, names=ALL, threads=8, words=()):
        self.names = names
        self.target = self.start(program("jumper"), threads, *words)
        self.tracer = self.attach(self.target, *JUMP, *probes_of(names), "--count", "--format", "json", *options)

    def begin_with_jumps(self, *options, **more):
        self.begin(*options, **more)
        self.wait_for_jumps(*self.names)

    def ask(self, *words):
        """An order to ktrace that is carried out: its answer."""
        answer = ktrace("ctl", "-p", self.target.pid, *words)
        self.assertEqual((answer.status, answer.err), (0, ""), (words, answer))
        return answer.out

    def list(self):
        """Of each symbol what is said behind its places."""
        found = {}
        for symbol, text in re.findall(r"(?m)^[0-9a-f]{16} [kjr] (\w+)\+0x[0-9a-f]+ \[[^]]+\] ?(.*)$", self.ask("list", "-v")):
            found.setdefault(symbol, []).append(text)
        return found

    def wait_for_jumps(self, *names):
        def are_there():
            listed = self.list()
            return all(text == "[OPTIMIZED]" for name in names for text in listed[name])

        until(are_there, f"there are jumps: {names}")

    def do(self, order, answer):
        self.target.tell(order)
        return self.target.truth(answer)

    def counts(self, order):
        """By function, after an order that is answered by them: (calls in the process, calls in its children)."""
        return {name: (int(own), int(others))
                for name, own, others in re.findall(r"(\w+) (\d+) (\d+)", self.do(order, r"^did (.*)")[1])}

    def hits(self):
        """By function, from ctl stats."""
        found = {}
        for line in self.ask("stats", "--format", "json").splitlines():
            for name, hits in re.findall(r'"symbol": ?"(\w+)".*"hits": ?(\d+)', line):
                found[name] = found.get(name, 0) + int(hits)
        return found

    def check_exact(self, truth, trace, names=None, with_children=False):
        for name in names or self.names:
            own, others = truth[name]
            number = 1 + self.names.index(name) if name in self.names else None
            summary, = [s for s in trace.summaries() if s["symbol"] == name and number in (None, s["probe"])]
            self.assertEqual(summary["hits"], own + others * with_children, (name, truth, trace))
            self.assertEqual(summary["events"], summary["hits"], (name, trace))

    def finish(self, truth=None, names=None, with_children=False):
        trace = self.tracer.stop()
        self.assertEqual(trace.status, 0, trace)
        for summary in trace.summaries():
            self.assertTrue(adds_up(summary), summary)
        if truth:
            self.check_exact(truth, trace, names, with_children)
        self.check_end()
        return trace

    def check_end(self):
        wait_until_let_go(self.target.pid)
        self.check_untouched(self.target)
        self.assertEqual(self.target.end(), 0, self.target.lines.seen)


class Counts(Jumps):
    def count(self, threads, rounds, words=(), names=ALL):
        self.begin_with_jumps(threads=threads, words=words, names=names)
        truth = self.counts(f"work {rounds}")
        self.assertEqual(self.hits(), {name: truth[name][0] for name in names})
        self.wait_for_jumps(*names)
        self.finish(truth)

    def test_jumps_one_thread(self):
        self.count(1, 50000)

    def test_jumps_eight_threads(self):
        self.count(8, 20000)

    def test_jumps_that_come_meanwhile(self):
        """Hits are counted by traps, then by jumps, and none is lost in between."""
        self.begin()
        truth = self.counts("work 1000")
        self.wait_for_jumps(*ALL)
        truth = self.counts("work 1000")
        self.finish(truth)

    def test_jumps_of_a_program_that_ktrace_starts(self):
        """From its first call to its end."""
        with tempfile.TemporaryFile() as orders:
            orders.write(b"work 3000\nwork 3000\n")
            orders.seek(0)
            trace = ktrace("run", *JUMP, *probes_of(ALL), "-v", "--count", "--", program("jumper"), 8, stdin=orders)
        self.assertEqual(trace.status, 0, trace)
        truth = dict(re.findall(r"(\w+) (\d+) \d+", re.findall(r"(?m)^did .*", trace.out)[-1]))
        hits = dict(re.findall(r"(?m)^(\w+)\+0x\d \[jumper\] [kj]: (\d+) hits", trace.err))
        self.assertEqual(hits, {name: truth[name] for name in ALL}, trace)

    def test_why_there_is_no_jump(self):
        self.begin_with_jumps(names=("counted",), threads=2)
        self.ask("add", "-r", "called", "--count", "--maxactive", "100")
        self.ask("add", "-j", "pushes", "--every", "3")
        self.ask("add", "-r", "recurses", "--every", "3")
        self.ask("add", "-j", "loads", "--count", "--if", "*arg0 == 3")
        self.ask("add", "-j", "flags", "--print", "stack")
        self.ask("add", "-j", "counted_locked", "--count")
        self.ask("add", "-j", "loop_inside", "--count")
        why = {"counted": r"\[OPTIMIZED\]", "called": r"\(a trap: calls in flight are counted \(--maxactive\)\)",
               "pushes": r"\[OPTIMIZED\]", "recurses": r"\(a trap: --every, --chance or --first is asked for\)",
               "loads": r"\[OPTIMIZED\]", "flags": r"\(a trap: a stack is asked for\)",
               "counted_locked": r"\(a trap: an instruction with a lock prefix is there\)", "loop_inside": r"\[OPTIMIZED\]"}
        if IS_ARM:  # of one instruction
            why["counted_locked"] = r"\[OPTIMIZED\]"
        if not HAS_RUNS:
            why["pushes"] = why["loads"] = r"\(a trap: the processor's time stamp counter is not steady\)"
        until(lambda: "under way" not in str(self.list()), "all is decided")
        listed = self.list()
        for name, pattern in why.items():
            self.assertRegex(listed[name][0], f"^{pattern}$", name)
        truth = self.counts("work 1000")
        trace = self.finish(truth, names=("counted", "called", "loop_inside"))
        self.assertEqual(trace.summary("pushes")["hits"], truth["pushes"][0])

    @unittest.skipIf(IS_ARM, "a jump has no inner boundaries")
    def test_branches_into_a_jump(self):
        """The jump stays where none is taken, and gives way to the trap where they stop the thread more than that."""
        self.begin_with_jumps(names=("goes_back",), threads=1)
        self.counts("back 0 100000")
        self.assertEqual(self.list()["goes_back"], ["[OPTIMIZED]"])
        why = ["(a trap: the function often comes back into the jump)"]
        until(lambda: self.counts("back 8 300") and self.list()["goes_back"] == why, "it is a trap again")
        truth = self.counts("back 1 100")
        self.finish(truth)

    def test_places_that_are_refused(self):
        """With --engine jump a place that stays a trap is an error that ends the trace, and the target is as it was."""
        self.target = self.start(program("jumper"), 2)
        refused = ktrace("attach", "-p", self.target.pid, "--engine", "jump", "-j", "counted --count", "-j", "loads --print stack")
        self.assertEqual(refused.status, 1, refused)
        self.assertIn("loads+0x0 [jumper] cannot have a jump: a stack is asked for; --engine auto leaves a trap there", refused.err)
        self.assertNotIn("counted+0x0 [jumper] cannot", refused.err)
        allowed = ktrace("attach", "-p", self.target.pid, "--engine", "jump", "-j", "counted", "--count", "--duration", "300ms")
        self.assertEqual((allowed.status, "cannot" in allowed.err), (0, False), allowed)
        self.check_end()

    def test_a_program_that_is_refused(self):
        """ktrace fails, and lets the program go on to its end."""
        refused = ktrace("run", "--engine", "jump", "-j", "libc:clock_nanosleep", "--print", "stack", "--", "sleep", "1")
        self.assertEqual(refused.status, 125, refused)
        self.assertIn("cannot have a jump: a stack is asked for", refused.err)

    def test_no_jump_without_asking(self):
        self.target = self.start(program("jumper"), 2)
        self.tracer = self.attach(self.target, "-j", "counted", "--count", "--format", "json", "--engine", "trap")
        truth = self.counts("work 1000")
        self.assertEqual(self.list(), {"counted": [""]})
        self.names = ("counted",)
        self.finish(truth)


class Changes(Jumps):
    """Jumps are lifted and planted while all threads run through them."""

    words = ()

    def begin_busy(self, names=ALL):
        self.begin_with_jumps(names=names, words=self.words)
        self.do("begin", "^running")

    def numbers(self, names):
        return [str(1 + self.names.index(name)) for name in names]

    def change(self, names, steps):
        """Takes these steps over and over; `names` stay on: the truth at the end is theirs."""
        end, done = time.monotonic() + SECONDS, 0
        while has_time(end, done):
            for step in steps:
                step()
                self.do("check 5", "^right")
            done += 1
        truth = self.counts("end")
        self.finish(truth, names=names)
        figure(f"{done} rounds of changes under 8 threads, {sum(truth[name][0] for name in names)} hits exact")

    def test_jumps_while_others_are_disabled(self):
        self.begin_busy()
        others = self.numbers(OTHERS)
        self.change(COUNTED, (lambda: self.ask("disable", *others), lambda: self.ask("enable", *others)))

    def test_jumps_while_others_come_to_be(self):
        """Each time until they are there again."""
        self.begin_busy()
        others = self.numbers(OTHERS)
        self.change(COUNTED, (lambda: self.ask("disable", *others), lambda: self.ask("enable", *others),
                              lambda: self.wait_for_jumps(*ALL)))

    def add_and_remove(self, *probe):
        number = self.ask("add", *probe, "--count").split()[0]
        self.do("check 5", "^right")
        self.ask("remove", number)

    def test_jumps_lifted_by_a_condition(self):
        """At the same place: the probe that only counts is on all the time."""
        self.begin_busy()
        self.change(ALL, (lambda: self.add_and_remove("-k", "counted", "--if", "0"),
                          lambda: self.add_and_remove("-j", "counted_pushes", "--if", "0"),
                          lambda: self.add_and_remove("-j", "pushes", "--if", "0")))

    def test_jumps_lifted_by_a_condition_and_planted(self):
        self.begin_busy()
        self.change(ALL, (lambda: self.add_and_remove("-k", "counted", "--if", "0"), lambda: self.wait_for_jumps("counted")))

    def test_jumps_lifted_by_a_return_probe(self):
        self.begin_busy()
        self.change(ALL, (lambda: self.add_and_remove("-r", "counted_pushes"), lambda: self.add_and_remove("-r", "called"),
                          lambda: self.wait_for_jumps("counted_pushes")))

    def test_jumps_lifted_by_a_probe_in_their_window(self):
        """On arm64: behind it."""
        self.begin_busy()
        places = ("counted_pushes+4", "pushes+4", "calls_last+4") if IS_ARM else ("counted_pushes+3", "pushes+1", "calls_last+4")
        self.change(ALL, (*(lambda place=place: self.add_and_remove("-k", place) for place in places),
                          lambda: self.wait_for_jumps("pushes")))

    def test_jumps_at_rest_after_each_order(self):
        """What is on counts all, what is off nothing; a jump is there again."""
        self.begin_with_jumps()
        numbers = self.numbers(ALL)
        for off, on in ((("disable", *numbers), ("enable", *numbers)), (("off",), ("on",))):
            for _ in range(3):
                before = self.hits()
                self.ask(*off)
                until(lambda: has_own_text(self.target.pid), "nothing is left in the program's code")
                self.counts("work 500")
                self.assertEqual(self.hits(), before)
                self.ask(*on)
                start = self.counts("work 0")
                self.counts("work 100")
                self.wait_for_jumps(*ALL)
                truth = self.counts("work 500")
                hits = self.hits()
                for name in ALL:
                    self.assertEqual(hits[name] - before[name], truth[name][0] - start[name][0], name)
        self.finish()

    def test_jumps_that_are_removed(self):
        self.begin_with_jumps()
        truth = self.counts("work 500")
        self.ask("remove", *self.numbers(ALL)[1:])
        self.wait_for_jumps("counted")
        last = self.counts("work 500")
        trace = self.finish()
        for name in ALL:
            self.assertEqual(trace.summary(name)["hits"], (last if name == "counted" else truth)[name][0], name)


class Signals(Changes):
    """The same with SIGALRM at 1 kHz, whose handler comes through a jump, too."""

    words = ("tick",)

    def test_jumps_under_signals(self):
        self.begin_with_jumps(words=self.words)
        self.do("begin", "^running")
        self.do("check 50000", "^right")
        self.finish(self.counts("end"))


class Leaps(Changes):
    """The same with a handler that is left by siglongjmp, anywhere in what is called."""

    words = ("leap",)

    def test_jumps_under_leaps(self):
        self.begin_busy()
        self.do("check 100000", "^right")
        self.finish(self.counts("end"))

    @unittest.skipUnless(HAS_RUNS, NO_RUNS)
    def test_jumps_that_count_in_rows_under_leaps(self):
        self.begin_with_jumps("--if", "tid > 0", words=self.words)
        self.do("begin", "^running")
        self.do("check 100000", "^right")
        self.finish(self.counts("end"))


class Processes(Jumps):
    """Children, whose memory has the jumps of their parent; and programs that take another one's place."""

    def fork(self, rounds, *options):
        """A child of a process whose threads run on."""
        self.begin_with_jumps(*options)
        self.do("begin", "^running")
        child = int(self.do("fork", r"^child (\d+)")[1])
        if not options:
            self.check_untouched(SimpleNamespace(pid=child))
        self.assertEqual(self.do(f"release {rounds}", r"^left (\d+)")[1], "0")
        truth = self.counts("end")
        self.assertGreater(truth["counted"][1], 0)
        self.finish(truth, with_children=bool(options))

    def test_jumps_and_a_child(self):
        """Nothing is left in it, and its calls are not counted."""
        self.fork(1000)

    def test_jumps_and_a_followed_child(self):
        self.fork(1000, "-f")

    def test_jumps_and_children_one_after_the_other(self):
        for options in ((), ("-f",)):
            with self.subTest(options):
                self.begin_with_jumps(*options)
                self.do("begin", "^running")
                for _ in range(20):
                    self.do("fork", r"^child (\d+)")
                    self.assertEqual(self.do("release 50", r"^left (\d+)")[1], "0")
                self.finish(self.counts("end"), with_children=bool(options))

    def test_jumps_and_vfork(self):
        for options in ((), ("-f",)):
            with self.subTest(options):
                self.begin_with_jumps(*options)
                self.do("begin", "^running")
                for _ in range(3):
                    self.assertEqual(self.do("vfork 100", r"^left (\d+)")[1], "0")
                self.finish(self.counts("end"), with_children=bool(options))

    def test_jumps_and_children_in_the_same_memory(self):
        """What they call there is not counted: the jumps are lifted before they run."""
        for how in ("vfork", "clone"):
            with self.subTest(how):
                self.target = self.start(program("borrowers"))
                self.tracer = self.attach(self.target, *JUMP, "-k", "do_work", "--count", "--format", "json")
                self.wait_for_jumps("do_work")
                self.do(how, "^borrowing")
                self.target.tell()
                status, calls, own = map(int, self.target.truth(r"^ended (\d+) calls (\d+) own (\d+)").groups())
                self.assertEqual((status, own), (0, 0))
                self.assertGreater(calls, 0)
                self.assertIn("a child that is not followed", self.list()["do_work"][0])
                self.assertEqual(self.finish().summary("do_work")["hits"], 0)

    def test_jumps_and_exec(self):
        """The counts of the old program stay, the new one gets jumps of its own."""
        self.begin_with_jumps()
        self.counts("work 500")
        self.do("exec", r"^ready (\d+)")
        self.counts("work 500")
        self.wait_for_jumps(*ALL)
        self.finish(self.counts("work 500"))

    def test_jumps_and_threads_that_come_and_go(self):
        self.begin_with_jumps()
        self.do("begin", "^running")
        self.do("churn 400", r"^churned (\d+)")
        self.finish(self.counts("end"))


@unittest.skipUnless(HAS_JUMPS, NO_JUMPS)
class Unloaded(Libraries):
    def is_jump(self, symbol):
        answer = ktrace("ctl", "-p", self.target.pid, "list")
        return any(f" {symbol}+0x0 " in line and line.endswith("[OPTIMIZED]") for line in answer.out.splitlines())

    def test_jumps_of_a_library_that_comes_and_goes(self):
        """Its code is gone with the jump in it, and is there again, or something else is."""
        self.begin(*JUMP, "-j", "libpart.so:part_work", "-j", "do_work", "--count", threads=2)
        rounds = 6
        for n in range(rounds):
            self.tell("open", 0, library())
            until(lambda: self.is_jump("part_work"), "there is a jump")
            self.tell("call", 0, "part_work", 1000)
            self.tell("close" if n % 2 else "block", 0)
        trace = self.finish()
        self.assertEqual(self.counts(trace)["part_work"], rounds * 1000, trace)

    def test_jumps_of_a_library_that_goes_at_once(self):
        """While its jump is being made."""
        self.begin(*JUMP, "-j", "libpart.so:part_work", "--count")
        rounds = 20
        for _ in range(rounds):
            self.tell("open", 0, library())
            self.tell("call", 0, "part_work", 100)
            self.tell("close", 0)
        trace = self.finish()
        self.assertEqual(self.counts(trace)["part_work"], rounds * 100, trace)


class Ends(Jumps):
    """ktrace ends, or is killed, while all threads run through jumps; nothing of them is left."""

    words = ()

    def start_busy(self):
        self.target = self.start(program("jumper"), 8, *self.words)
        self.do("begin", "^running")
        self.names = COUNTED if "leap" in self.words else ALL

    def attach_with_jumps(self):
        self.tracer = self.attach(self.target, *JUMP, *probes_of(self.names), "--count", "--format", "json")
        self.wait_for_jumps(*self.names)
        self.do("check 20", "^right")

    def check_right(self):
        """It lives, and what it computes is right; then its end."""
        self.do("check 200", "^right")
        self.counts("end")
        super().check_end()

    def test_jumps_left_by_detaching(self):
        self.start_busy()
        for _ in range(ROUNDS):
            self.attach_with_jumps()
            trace = self.tracer.stop()
            self.assertEqual(trace.status, 0, trace)
            self.check_untouched(self.target)
            self.do("check 20", "^right")
        self.check_right()

    def test_jumps_left_by_detaching_while_they_are_made(self):
        self.start_busy()
        for _ in range(ROUNDS):
            self.tracer = self.attach(self.target, *JUMP, *probes_of(self.names), "--count", "--format", "json")
            self.do("check 1", "^right")
            trace = self.tracer.stop()
            self.assertEqual(trace.status, 0, trace)
            self.check_untouched(self.target)
        self.check_right()

    def test_jumps_left_by_a_killed_tracing_process(self):
        """The guardian takes them out."""
        self.start_busy()
        for _ in range(ROUNDS):
            self.attach_with_jumps()
            os.kill(self.tracer.tracing, signal.SIGKILL)
            trace = self.tracer.finish()
            self.assertRegex(trace.err, rf"took out of process {self.target.pid} ")
            self.do("check 20", "^right")
            wait_until_let_go(self.target.pid)
            self.check_untouched(self.target)
        self.check_right()

    def test_jumps_left_by_a_killed_ktrace(self):
        """Its tracing process takes them out."""
        self.start_busy()
        for _ in range(ROUNDS):
            self.attach_with_jumps()
            os.kill(self.tracer.pid, signal.SIGKILL)
            self.tracer.finish()
            wait_until_let_go(self.target.pid)
            self.check_untouched(self.target)
            self.do("check 20", "^right")
        self.check_right()

    def kill_both(self):
        self.attach_with_jumps()
        kill_both(self.tracer)
        self.tracer.finish()
        self.do("check 200", "^right")

    def test_jumps_left_by_both(self):
        """The target runs through them, which lead to no process any more, until they are taken out."""
        self.start_busy()
        for _ in range(ROUNDS):
            self.kill_both()
            repaired = ktrace("repair", "-p", self.target.pid)
            self.assertEqual(repaired.status, 0, repaired)
            self.assertRegex(repaired.err, rf"took out of process {self.target.pid} ")
            self.check_untouched(self.target)
            self.do("check 20", "^right")
        self.check_right()

    def test_jumps_left_by_both_are_taken_out_by_the_next(self):
        self.start_busy()
        for _ in range(ROUNDS):
            self.kill_both()
        self.attach_with_jumps()
        self.assertEqual(self.tracer.stop().status, 0)
        self.check_right()


class EndsUnderSignals(Ends):
    words = ("tick",)


if __name__ == "__main__":
    unittest.main()
