"""Signals that arrive while a task is at a trap, in a slot, or in a step: delivered, at the program's own addresses."""
import itertools
import os
import platform
import signal
import tempfile
import threading
import time
import unittest

from live import NO_WATCHES, SLOW, LiveTest, adds_up, debug_registers_trap, fewer, ktrace, program

CLOCK_MONOTONIC_COARSE = 6  # clock_gettime(2)


class Signals(LiveTest):
    def check(self, *options, calls=60000, clock="real"):
        """The target's figures of its timer's clock: (ticks, milliseconds without a signal, milliseconds)."""
        target = self.start(program("signals"), fewer(calls), clock)
        tracer = self.attach(target, *options, "--format", "json")
        target.tell()
        truth = target.truth(r"hot (\d+) ticks (\d+) bad (\d+) early (\d+) late (-?\d+) of (\d+)")
        trace = tracer.stop()
        self.assertEqual(trace.status, 0, trace)
        self.assertEqual(int(truth[3]), 0, "a handler saw an address that is not the program's")
        self.assertGreater(int(truth[2]), 0)
        self.assertEqual(int(truth[4]), 0, "a handler was called before its time")
        for summary in trace.summaries():
            self.assertEqual(summary["hits"], int(truth[1]), trace)
            self.assertTrue(adds_up(summary), summary)
        self.check_untouched(target)
        self.assertEqual(target.end(), 0)
        return int(truth[2]), int(truth[5]), int(truth[6])

    PROFILED = (("-k", "work_hot"), ("-r", "work_hot"), ("-k", "work_hot", "--post"))

    def test_profiling_timer(self):
        """setitimer(ITIMER_PROF): a SIGPROF whenever the kernel's own tick finds the program running."""
        tick_ms = time.clock_getres(CLOCK_MONOTONIC_COARSE) * 1000
        for options in self.PROFILED:
            with self.subTest(options):
                ticks, _, milliseconds = self.check(*options, "--count", calls=20000, clock="prof")
                self.assertGreater(ticks, milliseconds / max(tick_ms, 1) / 4)

    def test_timers_of_processor_time(self):
        """timer_create(CLOCK_PROCESS_CPUTIME_ID), and of a thread: each expiration is delivered, one way or the other."""
        for clock in ("process", "thread"):
            for options in self.PROFILED:
                with self.subTest(clock=clock, options=options):
                    _, late, _ = self.check(*options, "--count", calls=20000, clock=clock)
                    self.assertLessEqual(late, 1)

    def test_boosted(self):
        self.check("-k", "work_hot", "--count")

    def test_returning(self):
        self.check("-r", "work_hot", "--count")

    def test_stepped(self):
        self.check("-k", "work_hot", "--post", "--count", calls=30000)


class Deliveries(LiveTest):
    """Signals that must come, each once, and what handlers do."""

    def run_traced(self, order, pattern, *options, before=()):
        target = self.start(program("deliveries"))
        for line, answer in before:
            target.tell(line)
            target.truth(answer)
        tracer = self.attach(target, *options, "--count", "--format", "json")
        target.tell(order)
        truth = [int(n) for n in target.truth(pattern).groups()]
        trace = tracer.stop()
        self.assertEqual(trace.status, 0, trace)
        self.assertTrue(adds_up(trace.summaries()[0]), trace)
        self.check_untouched(target)
        self.assertEqual(target.end(), 0)
        return truth, trace.summaries()[0]

    def check_queue(self, target, last="enough"):
        if last:
            target.tell(last)
        sent, got, bad, calls = (int(n) for n in target.truth(r"queue sent (\d+) got (\d+) bad (\d+) calls (\d+)").groups())
        self.assertEqual((got, bad), (sent, 0), "signals were lost, doubled, out of order, or had another value")
        return calls

    @unittest.skipIf(SLOW, "signals that come without pause leave no time for anything else on one slow processor")
    def test_values_and_order(self):
        """Real-time signals that are queued without pause, handled on an alternate stack."""
        for options in (("-k", "hot"), ("-r", "hot"), ("-k", "hot", "--post")):
            with self.subTest(options):
                target = self.start(program("deliveries"))
                tracer = self.attach(target, *options, "--count", "--format", "json")
                target.tell("queue")
                target.truth("queue on")
                calls = self.check_queue(target)
                trace = tracer.stop()
                self.assertEqual(trace.summary("hot")["hits"], calls, trace)
                self.check_untouched(target)
                self.assertEqual(target.end(), 0)

    def test_order_of_those_that_come_in_one_step(self):
        """What comes behind a signal that waits for a step's end is sent again: not behind what has come meanwhile."""
        target = self.start(program("deliveries"))
        tracer = self.attach(target, "-k", "tap", "--post", "--count", "--format", "json")
        target.tell(f"bursts {fewer(4000)}")
        calls = self.check_queue(target, last=None)
        trace = tracer.stop()
        self.assertEqual(trace.summary("tap")["hits"], calls, trace)
        self.check_untouched(target)
        self.assertEqual(target.end(), 0)

    def test_attach_and_detach_amid_queued_signals(self):
        target = self.start(program("deliveries"))
        target.tell("queue")
        for i in range(8):
            options = (("-r", "hot"), ("-k", "hot", "--post"), ("-k", "on_queued"), ("-k", "hot"))[i % 4]
            self.assertEqual(self.attach(target, *options, "--count").stop().status, 0)
        self.check_queue(target)
        self.check_untouched(target)
        self.assertEqual(target.end(), 0)

    def test_handler_that_jumps_away(self):
        (jumps, calls), summary = self.run_traced("jump 100", r"jump (\d+) calls (\d+)", "-r", "hot")
        self.assertEqual((summary["hits"], summary["unreturned"]), (calls, jumps))

    def test_restarted_and_interrupted_reads(self):
        for options in (("-k", "read"), ("-r", "read"), ("-k", "hot")):
            truth, _ = self.run_traced("read 100", r"read restarted (\d+) interrupted (\d+)", *options)
            self.assertEqual(truth, [100, 100], options)


class Masks(LiveTest):
    """What ktrace's own traps do to masks and actions is never seen."""

    def run_traced(self, order, pattern, *options):
        target = self.start(program("blocked"))
        tracer = self.attach(target, *options, "--count", "--format", "json")
        target.tell(order)
        truth = [int(n) for n in target.truth(pattern).groups()]
        trace = tracer.stop()
        self.assertEqual(trace.status, 0, trace)
        for summary in trace.summaries():
            self.assertTrue(adds_up(summary), trace)
        self.check_untouched(target)
        self.assertEqual(target.end(), 0)
        return truth, trace

    def test_fault_that_is_blocked(self):
        """One that no instruction has raised waits for as long as it is blocked; ktrace does not."""
        target = self.start(program("blocked"))
        target.tell("memory 1")
        target.truth("waiting 1")
        trace = self.attach(target, "-r", "in_handler", "-w", "faults", "--count").stop()
        self.assertEqual(trace.status, 0, trace)
        self.check_untouched(target)
        target.tell()
        target.truth("memory 1 handled 1")
        self.assertEqual(target.end(), 0)

    def test_faults_that_are_mended(self):
        """The load runs again when its handler has returned: no new hit, and SIGTRAP is blocked as before."""
        for options in (("-k", "fault_load"), ("-k", "fault_load", "--post")):
            with self.subTest(options):
                (loads, faults, bad), trace = self.run_traced(
                    "retry 50", r"retry loads (\d+) faults (\d+) bad (\d+)", *options)
                self.assertEqual((faults, bad), (50, 0))
                self.assertEqual(trace.summary("fault_load")["hits"], loads, trace)

    def test_signals_before_faults(self):
        """A signal that comes before a stepped load that faults: as it was sent, and the fault at its own address."""
        sent = fewer(3000)
        for options in (("-k", "fault_load"), ("-k", "fault_load", "--post")):
            with self.subTest(options):
                (loads, faults, signals, bad), trace = self.run_traced(
                    f"fault {sent}", r"fault loads (\d+) faults (\d+) signals (\d+) bad (\d+)", *options)
                self.assertEqual((faults, signals, bad), (loads, sent, 0))
                self.assertEqual(trace.summary("fault_load")["hits"], loads, trace)

    def test_handlers_that_do_not_come_back(self):
        """A load whose handler goes on elsewhere is not what the next one at the same stack pointer begins again with."""
        for options in (("-k", "fault_load"), ("-k", "fault_load", "--post")):
            with self.subTest(options):
                (loads, faults, bad), trace = self.run_traced("leave 300", r"leave loads (\d+) faults (\d+) bad (\d+)", *options)
                self.assertEqual((loads, faults, bad), (300, 300, 0))
                self.assertEqual(trace.summary("fault_load")["hits"], loads, trace)

    def test_actions_that_are_set_meanwhile(self):
        """A trap in a thread that blocks SIGTRAP takes the process's action: what it gets back is what it has set last, and
        has in the end."""
        ways = {("handler",): (1, "handler"), ("handler", "other"): (2, "other"), ("ignore",): (0, "ignored"),
                ("ignore", "handler"): (1, "handler"), ("handler", "ignore"): (1, "ignored"), ("handler", "back"): (1, "default")}
        for (way, (handled, action)), options in itertools.product(ways.items(), (("-k", "do_work"), ("-r", "do_work"))):
            with self.subTest(way, options=options):
                target = self.start(program("actions"))
                tracer = self.attach(target, *options, "--count", "--format", "json")
                for line in way:
                    target.tell(line)
                    answer = target.truth(rf"{line} handled (\d+) bad (\d+)")
                    self.assertEqual(answer[2], "0")
                self.assertEqual(int(answer[1]), handled)
                trace = tracer.stop()
                self.assertEqual(trace.status, 0, trace)
                target.tell("which")
                target.truth(f"action {action}")
                # Who has replaced ktrace's handler may have kept it.
                self.check_untouched(target, generates_code="handler" in way)
                self.assertEqual(target.end(), 0)

    def test_actions_of_a_program_that_is_run(self):
        with tempfile.TemporaryFile() as orders:
            orders.write(b"handler\nother\nignore\nhandler\n")
            orders.seek(0)
            trace = ktrace("run", "-v", "-k", "do_work", "--count", "--", program("actions"), stdin=orders)
        self.assertEqual(trace.status, 0, trace)
        self.assertIn("handler handled 3 bad 0", trace.out, trace)
        self.assertIn(f"do_work+0x0 [actions] k: {4 * 40} hits", trace.err)

    def test_an_ignored_signal_without_a_hit_before(self):
        for orders in ("ignore", "handler ignore", "ignore handler ignore"):
            with self.subTest(orders), tempfile.TemporaryFile() as file:
                file.write(orders.replace(" ", "\n").encode() + b"\n")
                file.seek(0)
                trace = ktrace("run", "-k", "on_trap_otherwise", "--count", "--", program("actions"), stdin=file)
                self.assertEqual(trace.status, 0, trace)
                self.assertIn(f"ignore handled {orders.count('handler')} bad 0", trace.out, trace)

    def test_probes_in_a_handler_for_traps(self):
        """SIGTRAP is blocked in there, and a probe takes the handler from the process: it is there again for the next trap."""
        for options in (("-r", "in_handler"), ("-k", "in_handler", "-k", "handler_byte"),
                        ("-k", "in_handler", "--post")):
            with self.subTest(options):
                (times, handled, calls, bad), trace = self.run_traced(
                    "traps 300", r"traps (\d+) handled (\d+) calls (\d+) bad (\d+)", *options)
                self.assertEqual((times, handled, calls, bad), (300, 300, 900, 0))
                for summary in trace.summaries():
                    self.assertEqual(summary["hits"], calls, trace)


class OwnTraps(LiveTest):
    """Trap instructions, single steps and hardware breakpoints of the program's own: each comes once, at its own place."""
    PROBES = (("-k", "do_work"), ("-k", "do_work", "--post"), ("-r", "do_work"), ("-r", "do_work", "-w", "handled"),
              ("-k", "do_work", "-k", "in_handler", "-w", "seen_in_handler"),
              ("-k", "do_work", "-k", "handler_byte"))

    def check(self, way, times=40, probes=PROBES):
        for options in probes:
            with self.subTest(options):
                target = self.start(program("traps"))
                tracer = self.attach(target, *options, "--count", "--format", "json")
                target.tell(f"{way} {times}")
                wanted, handled, bad = map(int, target.truth(rf"{way} (-?\d+) handled (\d+) bad (\d+)").groups())
                trace = tracer.stop()
                if wanted < 0:
                    raise unittest.SkipTest("no such traps here")
                self.assertEqual((handled, bad), (wanted, 0))
                self.assertEqual(trace.summary("do_work")["hits"], times, trace)
                self.check_untouched(target)
                self.assertEqual(target.end(), 0)

    def test_trap_instructions(self):
        self.check("break")

    def test_single_steps(self):
        self.check("step")

    def test_sent_in_the_handler_of_another(self):
        """It waits until that has returned, as the program has blocked it: for a probe in there SIGTRAP is opened."""
        self.check("again", probes=[each for each in self.PROBES if not any("handle" in option for option in each)])

    def test_sent_in_the_midst_of_hits(self):
        """Each is a hit still, once, and none of those that arrive is taken for one."""
        for options in (("-k", "do_work"), ("-k", "do_work", "--post"), ("-r", "do_work")):
            with self.subTest(options):
                target = self.start(program("traps"))
                tracer = self.attach(target, *options, "--count", "--format", "json")
                target.tell("send 100000")
                handled, bad, calls = map(int, target.truth(r"^send \d+ handled (\d+) bad (\d+) calls (\d+)").groups())
                trace = tracer.stop()
                self.assertEqual((bad, trace.summary("do_work")["hits"]), (0, calls), trace)
                self.assertGreater(handled, 0)
                self.check_untouched(target)
                self.assertEqual(target.end(), 0)

    # What a walk of the program "steps" comes by; where nothing is said, once. rep: each of its traps would come while
    # its post handler waits.
    STEPS = {name: 1 for name in ("nop", "push", "pop", "store", "jump", "jump_back", "taken", "not_taken",
                                  "jump_register", "call", "call_register", "pushf", "popf_before", "popf", "syscall",
                                  "behind", "off", "untold")} | {"loop": 3, "callee": 2, "return": 2, "back": 0}

    def check_steps(self, names, *options, walks=20, how=""):
        with self.subTest(names=names, options=options, how=how):
            target = self.start(program("steps"))
            probes = [option for name in names for option in ("-k", f"step_{name}")]
            tracer = self.attach(target, *probes, *options, "--format", "json")
            target.tell(f"{walks} {how}")
            self.assertEqual(target.truth("walked (.*)")[1], f"{walks} unlike 0")
            trace = tracer.stop()
            for name in names:
                self.assertEqual(trace.summary(f"step_{name}", "k")["hits"], walks * (self.STEPS | {"rep": 1})[name],
                                 name)
            self.check_untouched(target)
            self.assertEqual(target.end(), 0)

    @unittest.skipUnless(platform.machine() == "x86_64", "only x86 lets a program step itself")
    def test_own_steps_of_probed_instructions(self):
        """Each instruction ends in the program's own trap, whatever ktrace does in its place."""
        for name in (*self.STEPS, "rep"):
            self.check_steps((name,), "--count")
        for name in self.STEPS:
            self.check_steps((name,), "--post")

    @unittest.skipUnless(platform.machine() == "x86_64", "only x86 lets a program step itself")
    def test_own_steps_with_signals_and_watchpoints(self):
        every = tuple(self.STEPS)
        for how in "", "timer":
            self.check_steps(every, "--count", walks=200, how=how)
            self.check_steps(every, "--post", walks=200, how=how)
            self.check_steps(("store", "pop"), "-w", "step_data", walks=200, how=how)
            self.check_steps(("store", "pop"), "-w", "step_data", "--post", walks=200, how=how)

    @unittest.skipUnless(debug_registers_trap(), NO_WATCHES)
    def test_hardware_breakpoints(self):
        self.check("watch")


class Parent(LiveTest):
    """What a parent sees of its traced child is what it would have seen."""

    def check_stops(self, *probe):
        """A SIGSTOP stops the process, whatever the threads are in the middle of with the SIGCONTs that came before."""
        target = self.start(program("threads"))
        tracer = self.attach(target, *probe, "--count", "--format", "json")
        target.tell("spin 4")
        target.truth("spinning")
        for _ in range(4000):
            for sig in 4 * (signal.SIGSTOP, signal.SIGCONT):
                os.kill(target.pid, sig)
            os.kill(target.pid, signal.SIGSTOP)
            self.assertEqual(os.waitid(os.P_PID, target.pid, os.WSTOPPED).si_status, signal.SIGSTOP)
            os.kill(target.pid, signal.SIGCONT)
        target.tell("on")
        truth = target.truth(r"calls (\d+)")
        trace = tracer.stop()
        self.assertEqual(trace.summary("do_work")["hits"], int(truth[1]), trace)
        self.check_untouched(target)
        self.assertEqual(target.end(), 0)

    def test_a_stop_behind_continuations(self):
        self.check_stops("-k", "do_work")

    def test_a_stop_behind_continuations_with_returns(self):
        self.check_stops("-r", "do_work")

    def test_a_continuation_behind_a_stop_while_attaching(self):
        """SIGCONT takes back a stop that is delivered to a thread in the middle of an injected call."""
        target = self.start(program("threads"))
        for _ in range(20):
            target.tell("spin 1")
            target.truth("spinning")
            over = threading.Event()

            def storm():
                while not over.is_set():
                    os.kill(target.pid, signal.SIGSTOP)
                    os.kill(target.pid, signal.SIGCONT)

            sender = threading.Thread(target=storm)
            sender.start()
            try:
                self.attach(target, "-k", "crash_here", "--count", "--format", "json").stop()
            finally:
                over.set()
                sender.join()
            target.tell("on")
            target.truth("calls")
        self.check_untouched(target)
        self.assertEqual(target.end(), 0)

    def test_stops_continuations_and_ends(self):
        # In a group that has no parent in its session (the test's, without job control) SIGTSTP stops no process.
        target = self.start(program("threads"), process_group=0)
        tracer = self.attach(target, "-k", "do_work", "--count", "--format", "json")
        for sig in (signal.SIGSTOP, signal.SIGTSTP):
            os.kill(target.pid, sig)
            pid, status = os.waitpid(target.pid, os.WUNTRACED)
            self.assertTrue(os.WIFSTOPPED(status) and os.WSTOPSIG(status) == sig, status)
            os.kill(target.pid, signal.SIGCONT)
            pid, status = os.waitpid(target.pid, os.WCONTINUED)
            self.assertTrue(os.WIFCONTINUED(status), status)
            self.assertEqual(os.waitpid(target.pid, os.WNOHANG | os.WUNTRACED | os.WCONTINUED), (0, 0))
        target.tell("short 5")
        target.truth("calls 10")
        os.kill(target.pid, signal.SIGABRT)
        info = os.waitid(os.P_PID, target.pid, os.WEXITED | os.WNOWAIT)
        self.assertIn(info.si_code, (os.CLD_KILLED, os.CLD_DUMPED))
        self.assertEqual(info.si_status, signal.SIGABRT)
        self.assertEqual(tracer.finish().status, 0)

    def test_stops_by_the_terminal(self):
        """A job reads its terminal in the background, sets it there, and is stopped from it: SIGTTIN, SIGTTOU, SIGTSTP."""
        for options in (("-k", "do_work"), ("-r", "do_work"), ("-k", "do_work", "--post"), ("-k", "read", "-w", "phase"),
                        ("-r", "tcsetattr", "-k", "ioctl", "--post")):
            with self.subTest(options):
                target = self.start(program("jobs"), ready=None)
                job = target.truth(r"^job (\d+)")[1]
                target.truth("^ready")
                tracer = self.trace("-p", job, *options, "--count", "--format", "json")
                target.tell()
                seen, calls = target.truth(r"^seen (.*) calls (\d+)").groups()
                self.assertEqual(seen, "TTIN continued TTOU continued TSTP continued exited 0")
                trace = tracer.finish()
                self.assertEqual(trace.status, 0, trace)
                for summary in trace.summaries():
                    self.assertTrue(adds_up(summary), trace)
                    if summary["symbol"] == "do_work":
                        self.assertEqual(summary["hits"], int(calls), trace)
                self.assertEqual(target.end(), 0)
