"""How long a call took is the program's own time, whatever else the processors have to do."""
import ctypes
import os
import pathlib
import platform
import re
import statistics
import struct
import unittest

from live import LiveTest, program, thread_folders

RECORDED = 256  # tasks whose context switches are recorded at once
PERF_EVENT_OPEN = {"x86_64": 298, "aarch64": 241}


def switches_are_refused():
    """By the kernel's setting, a filter around this container, or a kernel without them: a counter of nothing is asked for,
    with what a context switch's record needs (perf_event_open(2))."""
    software, dummy, exclude_kernel_and_hypervisor = 1, 9, 3 << 5
    attributes = struct.pack("<IIQQQQQ", software, 64, dummy, 0, 0, 0, exclude_kernel_and_hypervisor).ljust(64, b"\0")
    event = ctypes.CDLL(None).syscall(PERF_EVENT_OPEN[platform.machine()], attributes, 0, -1, -1, 0)
    if event >= 0:
        os.close(event)
    return event < 0


def calls_by(clock, trace):
    """Of the whole trace, as the summary has it."""
    return sum(map(int, re.findall(rf"(?m)^Durations\b.*; (\d+) calls? by {clock}$", trace.err)))


@unittest.skipIf(switches_are_refused(), "context switches are not recorded here")
class Timing(LiveTest):
    def traced(self, busy, command, *options):
        target = self.start(program("timed"), busy)
        tracer = self.attach(target, "--engine", "trap", *options, "-v", "--format", "json")
        target.tell(command)
        calls = int(target.truth(r"calls (\d+)")[1])
        trace = tracer.stop()
        self.assertEqual(trace.status, 0, trace)
        self.check_untouched(target)
        self.assertEqual(target.end(), 0)
        return trace, calls

    def check_agrees(self, *inside):
        """Beside threads that want the same processor, each stop of the call's has it wait for its turn, some milliseconds:
        many times what the call takes. A call that is preempted knows that as well as ktrace does, but for one that is so
        in the moment between the stop and its own look at the clock: so the usual call is looked at."""
        trace, calls = self.traced(6, "work 25", "-r", "work", *inside)
        events = [e for e in trace.events("return") if e["symbol"] == "work"]
        self.assertEqual(len(events), calls, trace)
        ratio = statistics.median(e["duration_ns"] / e["retval"] for e in events)
        self.assertGreater(ratio, 0.95, trace)
        self.assertLess(ratio, 1.1, trace)
        self.assertEqual(calls_by("ktrace's own clock", trace), 0, trace)

    def test_beside_busy_threads(self):
        self.check_agrees()

    def test_beside_busy_threads_with_probes_inside(self):
        self.check_agrees("-j", "tick")

    def test_beside_busy_threads_with_calls_inside(self):
        self.check_agrees("-r", "tick")

    def test_beside_busy_threads_with_steps_inside(self):
        self.check_agrees("-k", "tick", "--post")

    def test_more_threads_than_are_recorded(self):
        """The others' calls are timed by ktrace's own clock, and the summary has their number."""
        trace, calls = self.traced(0, f"all {RECORDED + 44}", "-r", "touch")
        self.assertEqual(trace.summary("touch")["events"], calls, trace)
        recorded = calls_by("the kernel's records of context switches", trace)
        if os.geteuid() == 0:
            self.assertEqual(recorded, RECORDED, trace)
        self.assertIn(recorded, range(1, RECORDED + 1), trace)  # what a user may lock may be less
        self.assertEqual(calls_by("ktrace's own clock", trace), calls - recorded, trace)

    def test_threads_that_have_ended_leave_room(self):
        trace, calls = self.traced(0, f"short {2 * RECORDED}", "-r", "touch")
        self.assertEqual(calls_by("the kernel's records of context switches", trace), calls, trace)

    @unittest.skipIf(len(os.sched_getaffinity(0)) < 2, "there is one processor")
    def test_on_another_processor(self):
        """Each call is counted once: by where ktrace knew its thread to be."""
        calls = 2000
        allowed = os.sched_getaffinity(0)
        self.addCleanup(os.sched_setaffinity, 0, allowed)
        target = self.start(program("calls"), 1, calls)
        for folder in thread_folders(target.pid):
            os.sched_setaffinity(int(os.path.basename(folder)), {max(allowed)})
        os.sched_setaffinity(0, {min(allowed)})
        tracer = self.attach(target, "--engine", "trap", "-v", "-r", "do_work", "--stats")
        target.tell()
        target.truth(rf"do_work {calls} ")
        trace = tracer.stop()
        of = dict(re.findall(r"(?m)^(Durations.*?): .*; (\d+) calls? by ", trace.err))
        apart = int(of.pop("Durations on another processor than ktrace's"))
        self.assertEqual(apart + int(of.get("Durations", 0)), calls, trace)
        self.assertGreater(apart, calls / 2, trace)
        self.assertEqual(target.end(), 0)

    def test_a_call_that_sleeps_often(self):
        """More switches than there is room to record them: ktrace's own clock times this call, but the next one is recorded
        again."""
        target = self.start(program("timed"), 0)
        tracer = self.attach(target, "--engine", "trap", "-v", "-r", "pass", "--format", "json")
        for times in 20, 1000, 20, 20:
            target.tell(f"pass {times}")
            target.truth("calls")
        trace = tracer.stop()
        self.assertEqual([e["retval"] for e in trace.events("return")], [20, 1000, 20, 20], trace)
        self.assertEqual(calls_by("the kernel's records of context switches", trace), 3, trace)
        self.assertEqual(calls_by("ktrace's own clock", trace), 1, trace)
        self.assertEqual(target.end(), 0)

    def test_nobody_asks(self):
        """Where calls are only counted, nothing is recorded."""
        target = self.start(program("timed"), 0)
        tracer = self.attach(target, "--engine", "trap", "-v", "-r", "touch", "--count")
        target.tell("short 10")
        target.truth("calls 10")
        maps = pathlib.Path(f"/proc/{tracer.tracing}/maps").read_text()
        self.assertNotIn("perf_event", maps)
        trace = tracer.stop()
        self.assertEqual(calls_by("the kernel's records of context switches", trace), 0, trace)
