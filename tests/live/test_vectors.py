"""Registers that ktrace has no business with: x87, SSE, AVX and AVX-512, as wide as the processor has them."""
import os
import signal

from live import LiveTest, adds_up, figure, ktrace, program, until, wait_until_let_go
from test_jumps import HAS_RUNS
from test_kills import ROUNDS, kill_both

PLACES = ("nop", "load", "push", "branch", "popf", "syscall")


class Vectors(LiveTest):
    def begin(self, *arguments):
        """The probes of its places."""
        self.target = self.start(program("vectors"), *arguments, ready=None)
        width = int(self.target.truth(r"^ready \d+ (\d+)$")[1])
        if width == 0:
            self.skipTest("not the registers of this machine")
        return [option for place in PLACES for option in ("-k", f"at_{place}_{width}")]

    def go_on(self, rounds=20, line="check"):
        """Every thread compares all of its registers so many times."""
        self.target.tell(f"{line} {rounds}")
        self.target.truth(r"^right \d+$")

    def end(self, may_have_mappings=False):
        self.check_untouched(self.target, generates_code=may_have_mappings)
        self.go_on()
        self.assertEqual(self.target.end(), 0, self.target.lines.seen[-1])

    def check(self, probes):
        for options in ((), ("--post",), ("-w", "ticks")):
            tracer = self.attach(self.target, *probes, *options, "--count", "--format", "json")
            self.go_on()
            trace = tracer.stop()
            self.assertEqual(trace.status, 0, trace)
            for summary in trace.summaries():
                self.assertTrue(adds_up(summary) and (summary["hits"] > 0 or summary["kind"] == "w"), summary)

    def test_under_probes(self):
        probes = self.begin("2")
        self.check(probes)
        self.check(("-r", "do_work", "-j", "do_work"))
        self.end()

    def test_under_a_timer(self):
        """Handlers begin while a thread is in a copy of an instruction."""
        probes = self.begin("2")
        self.go_on(line="signal")
        self.check((*probes, "-r", "do_work", "-k", "on_tick"))
        self.end()

    def test_under_jumps(self):
        """The agent computes with some of them, and keeps all."""
        self.begin("2")
        self.go_on(line="signal")
        tracer = self.attach(self.target, "--engine", "auto", "-j", "do_work --if number * 2 > -1e9 --count",
                             "-r", "do_work --stats=retval", "--format", "json")
        if HAS_RUNS:
            until(lambda: ktrace("ctl", "-p", self.target.pid, "list").out.count("[OPTIMIZED]") == 2, "there are jumps")
        self.go_on(200)
        trace = tracer.stop()
        for summary in trace.summaries():
            self.assertTrue(adds_up(summary) and summary["events"] > 0, summary)
        self.end()

    def test_one_that_is_set(self):
        """A floating-point result is put into its register, and into no other part of that."""
        for kind in ("-r", "-j"):
            with self.subTest(kind):
                self.begin("2", "2.5")
                how = ("--set-ret", "2.5") if kind == "-r" else ("--set-arg", "number=2.5")
                tracer = self.attach(self.target, kind, "do_work", *how, "--count", "--format", "json")
                self.go_on()
                trace = tracer.stop()
                self.assertGreater(trace.summary("do_work")["injected"], 0, trace)
                self.end()

    def test_while_ktrace_comes_and_goes(self):
        """Threads make system calls for it."""
        probes = self.begin("4")
        self.go_on(line="signal")
        for i in range(10):
            options = (probes, ("-r", "do_work"), ("-w", "ticks"))[i % 3]
            self.assertEqual(self.attach(self.target, *options, "--count").stop().status, 0)
            self.go_on()
        self.end()

    def test_when_ktrace_is_killed(self):
        """What each of them is then lies in the frame of a signal."""
        for engine in ("trap", "auto"):
            probes = self.begin("4")
            for i in range(ROUNDS):
                tracer = self.attach(self.target, "--engine", engine, *probes, "-r", "do_work", "--count")
                self.go_on()
                (kill_both if i % 2 else lambda it: os.kill(it.tracing, signal.SIGKILL))(tracer)
                tracer.finish()
                wait_until_let_go(self.target.pid)
                self.go_on()
            self.assertEqual(ktrace("repair", "-p", self.target.pid).status, 0)
            # Killed while it maps memory for jumps, ktrace leaves that mapping.
            self.end(may_have_mappings=engine == "auto")
            figure(f"{ROUNDS} kills survived by vector registers, --engine {engine}")
