"""Threads that sleep in system calls, of every kind: attaching, probes elsewhere and detaching do not disturb them."""
import os
import re
import signal
import subprocess
import time
import types
import unittest

from live import (LIMIT, WRITE, LiveTest, ktrace, program, sleeps_in, thread_folders, told_of, until,
                  wait_until_asleep, wait_until_let_go)

# What the sleeper's call answers: when it was woken; when its time was up.
WOKEN = {"poll", "select", "epoll_wait", "futex", "read", "accept", "sigwait", "pause", "sigsuspend", "wait4", "waitid",
         "msgrcv", "semop", "eventfd", "signalfd", "robust"}
TIMED = {"nanosleep_timeout": (0, 0), "clock_nanosleep_timeout": (0, 0), "poll_timeout": (0, 0),
         "nanosleep_same_timeout": (0, 0), "clock_nanosleep_same_timeout": (0, 0), "ppoll_constant_timeout": (0, 0),
         "ppoll_sticky_timeout": (0, 0),
         "preadv2_timeout": (-1, 11), "terminal_timeout": (0, 0),
         "select_timeout": (0, 0), "epoll_wait_timeout": (0, 0), "epoll_pwait2_timeout": (0, 0),
         "futex_timeout": (-1, 110), "recv_timeout": (-1, 11), "sigtimedwait_timeout": (-1, 11),
         "semtimedop_timeout": (-1, 11), "io_getevents_timeout": (0, 0), "ppoll_timeout": (0, 0),
         "accept_timeout": (-1, 11), "timerfd_timeout": (1, 0), "timerfd_poll_timeout": (1, 0), "robust_timeout": (110, 0)}
TIMEOUT_MS = 4500  # and twice as much for those that are awake before ktrace is there
TOGETHER = 4  # one is attached to after the other
LONGEST_MS = 24000  # a third of it is less than what ktrace waits for sleepers when it leaves
BY_INT80 = {"int80_epoll_wait_timeout": (0, 0), "int80_nanosleep_timeout": (0, 0)}
PARTLY = {"write": 1, "writev": 20, "send": 44, "sendmsg": 46, "recv": 45, "recvmmsg": 299,
          "pwritev2": 328, "terminal": 0, "socket": 0, "close": 3}  # numbers of the system calls


def has_int80():
    """The kernel lets 64-bit programs make the system calls of 32-bit ones."""
    ended = subprocess.run([program("sleeper"), "int80_getpid"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           check=False)
    return ended.returncode == 0 and b"woke 1 0" in ended.stdout


def all_asleep(target, threads):
    """So many threads, in a system call each; none has told that it was woken."""
    folders = thread_folders(target.pid)
    return len(folders) == threads and all(sleeps_in(folder) not in (None, WRITE) for folder in folders) and \
        not target.lines.told("woke")


def sleep_on(target, threads):
    """Whether all of them do, once those that were interrupted are asleep again."""
    until(lambda: all_asleep(target, threads) or target.lines.told("woke"), "all threads sleep")
    return all_asleep(target, threads)


class Asleep(LiveTest):
    def sleeper(self, call):
        target = self.start(program("sleeper"), call)
        wait_until_asleep(target.pid)
        return target

    def check_woken(self, target, call):
        target.tell("wake")
        self.assertEqual(target.truth(r"woke (-?\d+) (\d+) ").groups(), ("1", "0"), call)
        target.truth("done")

    def test_woken_under_probes(self):
        for call in sorted(WOKEN):
            with self.subTest(call=call):
                target = self.sleeper(call)
                tracer = self.attach(target, "-r", "do_work", "--format", "json")
                self.check_woken(target, call)
                trace = tracer.stop()
                self.assertEqual((trace.status, trace.summary("do_work")["events"]), (0, 1), trace)
                self.check_untouched(target)
                self.assertEqual(target.end(), 0)

    def test_signals_that_are_ignored(self):
        # The kernel discards these when nobody traces, and no call ends.
        for call in sorted(WOKEN):
            with self.subTest(call=call):
                target = self.sleeper(call)
                tracer = self.attach(target, "-r", "do_work", "--format", "json")
                for sig in (signal.SIGWINCH, signal.SIGURG, signal.SIGCHLD, signal.SIGCONT):
                    os.kill(target.pid, sig)
                    wait_until_asleep(target.pid)
                self.check_woken(target, call)
                self.assertEqual(tracer.stop().status, 0)
                self.check_untouched(target)
                self.assertEqual(target.end(), 0)

    def test_detached_asleep(self):
        for call in sorted(WOKEN):
            with self.subTest(call=call):
                target = self.sleeper(call)
                tracer = self.attach(target, "-k", "do_work")
                trace = tracer.stop()
                self.assertEqual(trace.status, 0, trace)
                self.check_untouched(target)
                wait_until_asleep(target.pid)
                self.check_woken(target, call)
                self.assertEqual(target.end(), 0)

    def restarted(self, target):
        """Stopped and continued, it sleeps on in restart_syscall."""
        os.kill(target.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, target.pid, os.WSTOPPED)
        os.kill(target.pid, signal.SIGCONT)
        wait_until_asleep(target.pid)

    def timed_sleepers(self, calls, threads, timeout):
        """Asleep all of them, each with so many threads: (call, target), by call."""
        started = [(call, self.start(program("sleeper"), call, threads, timeout)) for call in calls]
        for call, target in started:
            if sleep_on(target, threads) and call == "nanosleep_timeout":
                self.restarted(target)
        return started

    def check_timed(self, target, call, threads, timeout):
        """The calls have answered what they should, and not too early; when the last was over, in milliseconds."""
        if "done" not in target.lines.seen:  # it is where a moment was waited for on a machine that stood still
            target.truth("^done")
        woke = [[int(number) for number in found] for found in
                re.findall(r"^woke (-?\d+) (\d+) (\d+) at (\d+)$", "\n".join(target.lines.seen), re.MULTILINE)]
        self.assertEqual([(result, error) for result, error, _, _ in woke], [(TIMED | BY_INT80)[call]] * threads, call)
        self.assertGreaterEqual(min(slept for _, _, slept, _ in woke), timeout - 1, call)
        return max(over for _, _, _, over in woke)

    def late(self, target):
        """How much later than at the end of the calls' time-out a process ran that nobody traces, in milliseconds."""
        said = re.search(r"^moment 3 late (\d+)$", "\n".join(target.lines.seen), re.MULTILINE)
        return int((said or target.truth(r"^moment 3 late (\d+)"))[1])

    def each_timed(self, options, threads, before_leaving=None):
        """Some calls side by side: ktrace comes when a third of a time-out is over, and leaves when two thirds are, or at the
        end. Those that were awake too early are done again, fewer at a time."""
        calls, timeout, together = sorted(TIMED | (BY_INT80 if has_int80() else {})), TIMEOUT_MS, TOGETHER
        while calls:
            groups = [calls[i:i + together] for i in range(0, len(calls), together)]
            calls = [call for group in groups for call in self.too_late(group, timeout, options, threads, before_leaving)]
            timeout, together = min(2 * timeout, LONGEST_MS), max(1, together // 2)

    def too_late(self, calls, timeout, options, threads, before_leaving):
        """Those of the calls that were over before ktrace was there."""
        visits = [self.visit(call, target, threads, options)
                  for call, target in self.timed_sleepers(calls, threads, timeout)]
        for visit in visits if before_leaving else ():
            visit.target.truth("moment 2")
            before_leaving(visit)
            visit.in_time = visit.in_time and sleep_on(visit.target, threads)
            visit.tracer.process.send_signal(signal.SIGINT)  # it may wait until they wake up
        for visit in visits:
            if before_leaving:
                visit.trace = visit.tracer.finish()
                self.check_untouched(visit.target)
            with self.subTest(call=visit.call, threads=threads):
                self.check_visit(visit, threads, timeout)
        return [visit.call for visit in visits if not visit.in_time]

    def visit(self, call, target, threads, options):
        target.truth("moment 1")
        asleep = sleep_on(target, threads)
        came = time.monotonic_ns() // 1000000
        tracer = self.attach(target, *options, "--format", "json")
        return types.SimpleNamespace(call=call, target=target, tracer=tracer, trace=None, came=came,
                                     in_time=asleep and sleep_on(target, threads))

    def check_visit(self, visit, threads, timeout):
        over = self.check_timed(visit.target, visit.call, threads, timeout)
        late = self.late(visit.target)
        if not visit.trace:
            visit.trace = visit.tracer.stop()
            if visit.in_time:
                self.assertEqual(visit.trace.summaries()[0]["hits"], threads, visit.trace)
        self.assertEqual(visit.trace.status, 0, visit.trace)
        self.check_untouched(visit.target)
        self.assertEqual(visit.target.end(), 0)
        if visit.in_time:  # a time-out that had begun anew when ktrace came, or later, would have ended later
            self.assertLess(over, visit.came + timeout + late)

    def test_time_runs_out_under_probes(self):
        self.each_timed(("-k", "do_work"), 1)

    def add_more(self, visit):
        added = ktrace("ctl", "-p", visit.target.pid, "add", "-k", "milliseconds")
        self.assertEqual(added.status, 0, added)

    def test_time_runs_out_behind_detach(self):
        self.each_timed(("-r", "do_work"), 1, self.add_more)

    def test_time_runs_out_for_several_behind_detach(self):
        self.each_timed(("-r", "do_work"), 3, self.add_more)

    def test_time_runs_out_under_watchpoints(self):
        self.each_timed(("-w", "awake"), 3)

    def test_time_runs_out_behind_watchpoints(self):
        self.each_timed(("-w", "awake"), 1, lambda _: None)


@unittest.skipUnless(os.uname().machine == "x86_64", "numbers of system calls")


class Dozing(LiveTest):
    def test_who_wakes_up_while_all_are_asked(self):
        """One thread cannot have a tripwire, so nobody has one in the end; others have come to theirs meanwhile."""
        target = self.start(program("dozers"), 100, 20)
        for _ in range(12):
            trace = self.attach(target, "-j", "do_work", "--count", "--duration", "20ms").finish()
            self.assertEqual(trace.status, 0, trace)
            target.tell("on")
            target.truth("awake")
        wait_until_let_go(target.pid)
        self.check_untouched(target)
        self.assertEqual(target.end(), 0)


    def test_fork_right_behind_the_call(self):
        """All sleep, and there is no room yet for what gets them over the traps: a child has a copy of these."""
        semtimedop = 220  # the number of the system call
        for options in ((), ("-f",)):
            with self.subTest(options):
                target = self.start(program("patient"), 1_000_000, "forks")
                target.tell("sleep")
                until(lambda: sleeps_in(f"/proc/{target.pid}") == semtimedop, "it sleeps")
                tracer = self.attach(target, "-k", "do_work", "--count", "--format", "json", *options)
                target.tell("give")
                self.assertEqual(target.truth(r"child (\d+)")[1], "0")
                target.truth("woke 0 0 0")
                trace = tracer.stop()
                self.assertEqual((trace.status, trace.summary("do_work")["hits"]), (0, 11 if options else 1), trace)
                self.check_untouched(target)
                self.assertEqual(target.end(), 0)


class HalfDone(LiveTest):
    """Calls that have done a part of what they are to do, and would answer with that part if they were interrupted."""

    def check(self, *options):
        for call, number in PARTLY.items():
            with self.subTest(call=call):
                target = self.start(program("whole"), call)
                until(lambda: sleeps_in(f"/proc/{target.pid}") == number, "it sleeps")
                for _ in range(3):
                    trace = self.attach(target, *options).stop()
                    self.assertEqual(trace.status, 0, trace)
                    self.check_untouched(target)
                tracer = self.attach(target, *options, "--format", "json")
                added = ktrace("ctl", "-p", target.pid, "add", "-k", "main")
                self.assertEqual(added.status, 0, added)
                target.tell()
                did, wanted = target.truth(r"did (-?\d+) of (\d+)").groups()
                self.assertEqual(did, wanted)
                trace = tracer.stop()
                self.assertEqual((trace.status, trace.summaries()[0]["hits"]), (0, 1), trace)
                self.check_untouched(target)
                self.assertEqual(target.end(), 0)

    def test_under_probes(self):
        self.check("-k", "do_work")

    def test_under_watchpoints(self):
        self.check("-w", "awake")


class Answered(LiveTest):
    """A call that another process answers: interrupted, it would be asked for twice, and may be done twice."""

    def check(self, name, sleeps_in_function, result, *options):
        target = self.start(program(name), ready="^asked|^none")
        if "none" in target.lines.seen:
            self.skipTest("no other process can be asked here")
        until(lambda: told_of(f"/proc/{target.pid}", "wchan").startswith(sleeps_in_function), "it waits")
        for _ in range(3):
            trace = self.attach(target, *options).stop()
            self.assertEqual(trace.status, 0, trace)
            self.check_untouched(target)
        tracer = self.attach(target, *options, "--format", "json")
        target.tell("answer")
        self.assertEqual(target.truth(r"^made (-?\d+) (\d+) asked (\d+)").groups(), (result, "0", "1"))
        trace = tracer.stop()
        self.assertEqual((trace.status, trace.summaries()[0]["hits"]), (0, 1), trace)
        self.check_untouched(target)
        self.assertEqual(target.end(), 0)

    def check_supervisor(self, *options):
        self.check("supervised", "seccomp_do_user_notification", "0", *options)

    def check_file_system(self, *options):
        self.check("fetches", "request_wait_answer", "5", *options)

    def test_supervised_under_probes(self):
        self.check_supervisor("-k", "do_work")

    def test_supervised_under_watchpoints(self):
        self.check_supervisor("-w", "awake")

    def test_fetched_under_probes(self):
        self.check_file_system("-k", "do_work")

    def test_fetched_under_watchpoints(self):
        self.check_file_system("-w", "awake")


class AwaitedPages(LiveTest):
    """A thread that waits in the middle of a system call for a page from userfaultfd: no interrupt stops it."""

    def begin(self, *arguments):
        target = self.start(program("awaits"), *arguments, ready="^ready|^none")
        if "none" in target.lines.seen:
            self.skipTest("there is no userfaultfd here")
        return target

    def awaiting(self, target):
        """How many of its threads wait for a page, and sleep meanwhile."""
        return [told_of(folder, "wchan") for folder in thread_folders(target.pid)].count("handle_userfault")

    def check_end(self, target, trace, counted):
        """`counted`: all calls were made while it was traced."""
        self.check_untouched(target)
        target.process.stdin.close()
        calls = int(target.truth(r"^calls (\d+)")[1])
        self.assertEqual(target.process.wait(LIMIT), 0)
        self.assertEqual(trace.status, 0, trace)
        if counted:
            self.assertEqual(trace.summaries()[0]["hits"], calls, trace)

    def test_filled_in_under_probes(self):
        for options in (("-k", "do_work"), ("-r", "do_work"), ("-w", "calls")):
            for arguments in ((), ("busy",)):
                with self.subTest(options=options, arguments=arguments):
                    target = self.begin(*arguments)
                    tracer = self.attach(target, *options, "--count", "--format", "json")
                    self.assertEqual(self.awaiting(target), 1)
                    target.tell()
                    target.truth("^read 6 hello")
                    self.check_end(target, tracer.stop(), counted=not arguments)

    def has_its_own_code(self, target):
        """Its program's, as in the file."""
        line = next(line for line in told_of(f"/proc/{target.pid}", "maps").splitlines()
                    if "x" in line.split()[1] and line.endswith("/awaits"))
        start, end = (int(address, 16) for address in line.split()[0].split("-"))
        with open(f"/proc/{target.pid}/mem", "rb") as memory, open(program("awaits"), "rb") as file:
            memory.seek(start)
            file.seek(int(line.split()[2], 16))
            now, before = memory.read(end - start), file.read(end - start)
            return now[:len(before)] == before

    def test_detached_from_who_fills_it_in(self):
        """With a signal before it the thread that waits uses up a processor, and stops when the page is there; who is to
        fill it in must not stand still for as long."""
        target = self.begin("busy")
        tracer = self.attach(target, "-k", "do_work", "--count", "--format", "json")
        target.tell("signal")
        until(lambda: self.awaiting(target) == 0, "it runs in the kernel")
        tracer.process.send_signal(signal.SIGINT)
        until(lambda: self.has_its_own_code(target), "the traps are out")
        target.tell()
        target.truth("^read 6 hello")
        self.check_end(target, tracer.finish(), counted=False)

    def test_filled_in_afterwards(self):
        for options in (("-k", "do_work"), ("-r", "do_work")):
            for arguments in ((), ("busy",)):
                with self.subTest(options=options, arguments=arguments):
                    target = self.begin(*arguments)
                    trace = self.attach(target, *options, "--count", "--format", "json").stop()
                    self.assertEqual(self.awaiting(target), 1)
                    target.tell()
                    target.truth("^read 6 hello")
                    self.check_end(target, trace, counted=False)
