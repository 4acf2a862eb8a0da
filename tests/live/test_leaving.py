"""The end of a trace where all sleep in a call whose time-out would begin anew: ktrace waits until somebody wakes up, in the
background at last, and hands what it has left there over to a trace that begins meanwhile."""
import errno
import os
import signal
import unittest

from live import (NO_TRIPWIRES, LiveTest, breakpoints_signal, ktrace, program, sleeps_in, state_of, thread_folders,
                  told_of, until, wait_until_let_go)

SEMTIMEDOP = 220  # the number of the system call
WOKE = r"woke (-?\d+) (\d+) (\d+)"  # what it answers, its error, and whether it was made anew


def tracer_of(pid):
    """The process that traces it."""
    tracer = int(told_of(f"/proc/{pid}", "status").split("TracerPid:\t")[1].split()[0])
    return int(told_of(f"/proc/{tracer}", "status").split("Tgid:\t")[1].split()[0]) if tracer else 0


class Patient(LiveTest):
    """Detaching where all sleep in a call whose time-out would begin anew. The target knows whether it did."""
    WAITING = "waiting for up to 10 s until threads wake up"
    LONG = 1_000_000  # milliseconds that nobody waits for

    def asleep_under(self, milliseconds, *arguments, other=(), **options):
        """(target, tracer): attached while it can be stopped, so that pages and registers are to be given back."""
        target = self.start(program("patient"), milliseconds, *other)
        tracer = self.attach(target, *arguments, **options)
        self.send_to_sleep(target)
        return target, tracer

    def send_to_sleep(self, target):
        target.tell("sleep")
        until(lambda: sleeps_in(f"/proc/{target.pid}") == SEMTIMEDOP or target.lines.told("woke"), "it sleeps")
        target.tell("swap")
        target.truth("swapped")

    def check_end(self, target, *woke):
        self.assertEqual(tuple(map(int, target.truth(WOKE).groups())), woke)
        wait_until_let_go(target.pid)
        self.check_untouched(target)
        self.assertEqual(target.end(), 0)

    def test_time_out_within_the_time(self):
        for arguments in (("-k", "do_work"), ("-w", "awake"), ("-k", "do_work", "--duration", "1s")):
            with self.subTest(arguments):
                target, tracer = self.asleep_under(4000, *arguments)
                trace = tracer.finish() if "--duration" in arguments else tracer.stop()
                self.assertEqual(trace.status, 0, trace)
                self.check_end(target, -1, errno.EAGAIN, 0)

    def left_alone(self, *arguments, **options):
        """(target, id of the process that waits): the trace is over, told so, and nobody was interrupted."""
        target, tracer = self.asleep_under(self.LONG, *arguments, **options)
        tracing = tracer.tracing
        self.let_go_of(tracer, target)
        return target, tracing

    def let_go_of(self, tracer, *targets):
        """Its trace is over but for the sleepers."""
        tracing = tracer.tracing
        tracer.process.send_signal(signal.SIGINT)
        tracer.errors.until(self.WAITING)
        trace = tracer.stop(signal.SIGTERM)
        self.assertEqual(trace.status, 0, trace)
        for target in targets:
            self.assertIn(f"process {target.pid} sleeps on: when it wakes up, kt-leaving ({tracing}) takes out the rest",
                          trace.err)

    def check_end_of(self, pid):
        until(lambda: state_of(f"/proc/{pid}") in "XZ", "who has waited for it ends")

    def test_left_to_the_background(self):
        """No other thread stops for that where the kernel has breakpoints that go with ktrace, and a debug register is free
        for one."""
        all_registers = ("-w", "awake", "-w", "semaphores", "-w", "take", "-w", "rounds")
        for probe in (("-k", "do_work"), ("-r", "do_work", "-w", "awake"), all_registers):
            with self.subTest(probe=probe):
                target, waiting = self.left_alone(*probe)
                if breakpoints_signal() and probe != all_registers:
                    self.check_text(target, has_code_without_file=True)
                target.tell("give")
                self.check_end(target, 0, 0, 0)
                self.check_end_of(waiting)

    def test_the_time_is_up(self):
        target, tracer = self.asleep_under(self.LONG, "-k", "do_work")
        waiting = tracer.tracing
        trace = tracer.stop()
        self.assertEqual((trace.status, trace.err.count(self.WAITING)), (0, 1), trace)
        target.tell("give")
        self.check_end(target, 0, 0, 0)
        self.check_end_of(waiting)

    def test_others_run_on_meanwhile(self):
        target, tracer = self.asleep_under(self.LONG, "-w", "awake", other=("busy",))
        tracer.process.send_signal(signal.SIGINT)
        tracer.errors.until(self.WAITING)
        target.tell("run")
        target.truth("ran")
        self.assertIsNone(tracer.process.poll())
        self.assertEqual(tracer.stop().status, 0)
        target.tell("run")
        target.truth("ran")
        target.tell("give")
        self.check_end(target, 0, 0, 0)

    def test_who_waits_is_told_to_end_that(self):
        """By a repair, by a signal and, where there are debug registers, by a trace that begins: the sleeper is interrupted."""
        def repair(target, _):
            self.assertIn(f"let go of process {target.pid}", ktrace("repair", "-p", target.pid).err)

        def another(target, _):
            self.assertEqual(self.attach(target, "-k", "do_work", "--duration", "1ms").finish().status, 0)

        def end(target, waiting):
            os.kill(waiting, signal.SIGTERM)

        code, data = ("-k", "do_work"), ("-w", "awake")
        for how, probe in ((repair, code), (repair, data), (another, data), (end, code), (end, data)):
            with self.subTest(how=how.__name__, probe=probe):
                target, waiting = self.left_alone(*probe)
                how(target, waiting)
                self.check_end_of(waiting)
                if how is not another:
                    self.check_untouched(target)
                self.check_end(target, 0, 0, 1)

    def check_traced(self, target, *probe):
        """A trace that begins is there when the sleeper wakes up, and sees all that it does."""
        tracer = self.attach(target, *probe, "--format", "json")
        target.tell("give")
        woke = target.truth(WOKE).groups()
        trace = tracer.stop()
        self.assertEqual((trace.status, woke, len(trace.events())), (0, ("0", "0", "0"), 1), trace)
        self.check_untouched(target)
        self.assertEqual(target.end(), 0)

    @unittest.skipUnless(breakpoints_signal(), NO_TRIPWIRES)
    def test_handed_over(self):
        """To a trace that begins, again and again: nobody is interrupted, and nothing is left in the end."""
        target, waiting = self.left_alone("-r", "do_work")
        for probe in (("-k", "do_work"), ("-r", "do_work"), ("-k", "do_work", "--post")):
            with self.subTest(probe=probe):
                self.assertNotEqual(ktrace("attach", "-p", target.pid, "-k", "no_such_function").status, 0)
                self.assertEqual(tracer_of(target.pid), waiting)
                self.let_go_of(self.attach(target, *probe), target)
                self.check_end_of(waiting)
                waiting = tracer_of(target.pid)
        self.check_traced(target, "-r", "do_work")
        self.check_end_of(waiting)

    def test_handed_over_with_data_to_watch(self):
        target, waiting = self.left_alone("-r", "do_work")
        self.check_traced(target, "-w", "awake")
        self.check_end_of(waiting)

    @unittest.skipUnless(breakpoints_signal(), NO_TRIPWIRES)
    def test_handed_over_by_who_is_killed(self):
        target, waiting = self.left_alone("-r", "do_work")
        os.kill(waiting, signal.SIGKILL)
        self.check_end_of(waiting)
        self.check_traced(target, "-r", "do_work")

    @unittest.skipUnless(breakpoints_signal(), NO_TRIPWIRES)
    def test_one_of_two_is_handed_over(self):
        """Who has waited for both waits on for the other, whose sleeper is not interrupted either."""
        def repaired(target):
            said = ktrace("repair", "-p", target.pid)
            self.assertIn(f"let go of process {target.pid}", said.err)
            self.assertNotIn(self.WAITING, said.err)
            self.check_end(target, 0, 0, 1)

        def traced(target):
            self.check_traced(target, "-r", "do_work")

        for then in (repaired, traced):
            with self.subTest(then=then.__name__):
                one, other = (self.start(program("patient"), self.LONG) for _ in range(2))
                tracer = self.trace("-p", f"{one.pid},{other.pid}", "-k", "do_work")
                tracer.errors.until("Attached")  # to the second, too
                for target in (one, other):
                    self.send_to_sleep(target)
                waiting = tracer.tracing
                self.let_go_of(tracer, one, other)
                then(one)
                until(lambda: tracer_of(other.pid) == waiting, "the other is waited for")
                other.tell("give")
                self.check_end(other, 0, 0, 0)
                self.check_end_of(waiting)

    @unittest.skipUnless(breakpoints_signal(), NO_TRIPWIRES)
    def test_several_are_asked_for_at_once(self):
        """Each by a ktrace of its own, while another one is waited for on."""
        *targets, other = (self.start(program("patient"), self.LONG) for _ in range(4))
        tracer = self.trace("-p", ",".join(str(target.pid) for target in (*targets, other)), "-k", "do_work")
        tracer.errors.until(f"Attached 1 probe to {other.pid}")
        for target in (*targets, other):
            self.send_to_sleep(target)
        waiting = tracer.tracing
        self.let_go_of(tracer, *targets, other)
        tracers = [self.trace("-p", target.pid, "-k", "do_work", wait=False) for target in targets]
        for tracer in tracers:
            tracer.errors.until("Attached 1 probe")
        until(lambda: tracer_of(other.pid) == waiting, "the other is waited for")
        for target in (*targets, other):
            target.tell("give")
            self.assertEqual(target.truth(WOKE).groups(), ("0", "0", "0"))
        for target, tracer in zip(targets, tracers):
            self.assertEqual(tracer.stop().status, 0)
            self.check_untouched(target)
            self.assertEqual(target.end(), 0)
        self.check_end_of(waiting)

    @unittest.skipUnless(breakpoints_signal(), NO_TRIPWIRES)
    def test_one_of_two_was_let_go(self):
        """Its sleepers stay traced while the other's are waited for, by nothing but name: that is no hindrance."""
        one, other = self.start(program("patient"), self.LONG, "other"), self.start(program("patient"), self.LONG)
        tracer = self.trace("-p", f"{one.pid},{other.pid}", "-k", "do_work")
        tracer.errors.until("Attached")  # to the second, too
        self.send_to_sleep(other)
        waiting = tracer.tracing
        self.let_go_of(tracer, other)
        threads = [int(os.path.basename(folder)) for folder in thread_folders(one.pid)]
        self.assertIn(waiting, map(tracer_of, threads))
        trace = self.attach(one, "-k", "do_work").stop()
        self.assertEqual(trace.status, 0, trace)
        until(lambda: tracer_of(other.pid) == waiting, "the other is waited for")
        self.send_to_sleep(one)
        one.tell("give")
        self.check_end(one, 0, 0, 0)
        other.tell("give")
        self.check_end(other, 0, 0, 0)
        self.check_end_of(waiting)

    def test_who_waits_is_killed(self):
        for probe in (("-k", "do_work"), ("-w", "awake")):
            with self.subTest(probe=probe):
                target, waiting = self.left_alone(*probe)
                os.kill(waiting, signal.SIGKILL)
                self.check_end_of(waiting)
                target.tell("give")
                self.assertEqual(target.truth(WOKE).groups(), ("0", "0", "0"))
                self.assertIn("took out of process", ktrace("repair", "-p", target.pid).err)
                self.check_untouched(target)
                self.assertEqual(target.end(), 0)

    def test_who_waits_is_killed_and_what_is_left_taken_out(self):
        """While the sleeper sleeps on: it is waited for once more, by a trap where no tripwire is to be had."""
        all_registers = (option for data in ("awake", "semaphores", "take", "rounds") for option in ("-w", data))
        for probe in (("-k", "do_work"), tuple(all_registers)):
            with self.subTest(probe=probe):
                target, waiting = self.left_alone(*probe)
                os.kill(waiting, signal.SIGKILL)
                self.check_end_of(waiting)
                repairing = self.trace("-p", target.pid, command="repair", wait=False)
                repairing.errors.until(self.WAITING)
                target.tell("give")
                self.check_end(target, 0, 0, 0)
                repaired = repairing.finish()
                self.assertEqual(repaired.status, 0, repaired)
                self.assertIn("took out of process", repaired.err)

    def test_the_target_ends(self):
        target, waiting = self.left_alone("-k", "do_work")
        target.kill()
        self.check_end_of(waiting)

    def test_nobody_waits_for_who_waits(self):
        """It keeps no descriptor that it was started with."""
        read, write = os.pipe()
        with open(read, "rb") as stream:
            target, waiting = self.left_alone("-k", "do_work", pass_fds=(write,))
            os.close(write)
            self.assertEqual(stream.read(), b"")
        self.assertEqual(os.readlink(f"/proc/{waiting}/cwd"), "/")
        target.tell("give")
        self.check_end(target, 0, 0, 0)

    def test_another_can_be_stopped(self):
        target, tracer = self.asleep_under(self.LONG, "-k", "do_work", other=("other",))
        trace = tracer.stop()
        self.assertEqual(trace.status, 0, trace)
        self.assertNotIn(self.WAITING, trace.err)
        self.check_untouched(target)
        target.tell("give")
        # What it waits for is the kernel's copy of what it was told first.
        self.check_end(target, 0, 0, 0)

    def test_who_wakes_up_again_and_again(self):
        """Looked at while it sleeps, and then while it does not: it is not waited for as if it slept on."""
        target = self.start(program("naps"))
        for _ in range(20):
            trace = self.attach(target, "-k", "do_work", "--count", "--duration", "5ms").finish()
            self.assertEqual(trace.status, 0, trace)
            self.assertNotIn(self.WAITING, trace.err)
            self.check_untouched(target)
        target.tell("on")
        target.truth(r"naps \d+")
        self.assertEqual(target.end(), 0)
