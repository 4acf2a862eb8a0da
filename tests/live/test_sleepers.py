"""Threads that sleep in system calls, of every kind: ktrace ends none of these calls, and shortens no time-out, by attaching,
by probes elsewhere, or by detaching."""
import os
import re
import signal
import subprocess
import time
import unittest

from live import (LIMIT, MACHINE, NUMBERS, WRITE, LiveTest, debug_registers_trap, program, sleeps_in, thread_folders, told_of, until,
                  wait_until_asleep)

# What the sleeper's call answers: when it was woken; when its time was up.
WOKEN = {"poll", "select", "epoll_wait", "futex", "read", "accept", "sigwait", "pause", "sigsuspend", "wait4", "waitid",
         "msgrcv", "semop", "eventfd", "signalfd", "robust"}
TIMED = {"nanosleep_timeout": (0, 0), "clock_nanosleep_timeout": (0, 0), "poll_timeout": (0, 0),
         "ppoll_constant_timeout": (0, 0), "ppoll_sticky_timeout": (0, 0),
         "preadv2_timeout": (-1, 11), "terminal_timeout": (0, 0),
         "select_timeout": (0, 0), "epoll_wait_timeout": (0, 0), "epoll_pwait2_timeout": (0, 0),
         "futex_timeout": (-1, 110), "recv_timeout": (-1, 11), "sigtimedwait_timeout": (-1, 11),
         "semtimedop_timeout": (-1, 11), "io_getevents_timeout": (0, 0), "ppoll_timeout": (0, 0),
         "accept_timeout": (-1, 11), "timerfd_timeout": (1, 0), "timerfd_poll_timeout": (1, 0), "robust_timeout": (110, 0)}
BY_INT80 = {"int80_epoll_wait_timeout": (0, 0)}
TIMEOUT_MS = 3000  # and twice as much for those that are over before ktrace has left
LONGEST_MS = 48000
TOGETHER = 6  # one is attached to after the other
PARTLY = {"write": 1, "writev": 20, "send": 44, "sendmsg": 46, "recv": 45, "recvmmsg": 299,
          "pwritev2": 328, "close": 3}  # numbers of the system calls
IS_ARM = MACHINE == "aarch64"
LOST = "a call that has failed with EINTR has lost its first argument on this machine"
FAILS = {"epoll_wait", "semop"} if IS_ARM else set()  # with EINTR at a signal that is ignored
SEMTIMEDOP = NUMBERS["semtimedop"]
SIGNALS = int(os.environ.get("KTRACE_SIGNALS", "2000"))


def has_int80():
    """The kernel lets 64-bit programs make the system calls of 32-bit ones."""
    ended = subprocess.run([program("sleeper"), "int80_getpid"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           check=False)
    return ended.returncode == 0 and b"woke 1 0" in ended.stdout


def all_asleep(target, threads):
    """So many threads, in a system call each; none has reported that it was woken."""
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
        # The kernel discards these without a tracer, and no call ends.
        for call in sorted(WOKEN - FAILS):
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
        """No process of ktrace's stays behind: the sleeper is not traced when ktrace has ended."""
        for call in sorted(WOKEN):
            with self.subTest(call=call):
                target = self.sleeper(call)
                trace = self.attach(target, "-k", "do_work").stop()
                self.check_untouched(target)
                self.assertEqual(trace.status, 0, trace)
                wait_until_asleep(target.pid)
                self.check_woken(target, call)
                self.assertEqual(target.end(), 0)

    def restarted(self, target):
        """Stopped and continued, it sleeps on in restart_syscall."""
        os.kill(target.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, target.pid, os.WSTOPPED)
        os.kill(target.pid, signal.SIGCONT)
        wait_until_asleep(target.pid)

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
        """How much later than at the end of the calls' time-out an untraced process ran, in milliseconds."""
        said = re.search(r"^moment 3 late (\d+)$", "\n".join(target.lines.seen), re.MULTILINE)
        return int((said or target.truth(r"^moment 3 late (\d+)"))[1])

    def each_timed(self, options, threads):
        """Some calls side by side: ktrace comes and goes while they sleep. Those that were over before it had left are done
        again, fewer at a time."""
        calls, timeout, together = sorted(TIMED | (BY_INT80 if has_int80() else {})), TIMEOUT_MS, TOGETHER
        while calls:
            groups = [calls[i:i + together] for i in range(0, len(calls), together)]
            calls = [call for group in groups for call in self.too_late(group, timeout, options, threads)]
            self.assertLessEqual(timeout, LONGEST_MS, calls)
            timeout, together = 2 * timeout, max(1, together // 2)

    def too_late(self, calls, timeout, options, threads):
        """Those of the calls that were over before ktrace had left."""
        targets = [(call, self.start(program("sleeper"), call, threads, timeout)) for call in calls]
        for call, target in targets:
            if sleep_on(target, threads) and call == "nanosleep_timeout":
                self.restarted(target)
        left, late = {}, []
        for call, target in targets:
            trace = self.attach(target, *options).stop()
            left[call] = time.monotonic_ns() // 1000000
            self.assertEqual(trace.status, 0, trace)
            self.check_untouched(target)
            if not sleep_on(target, threads):
                late.append(call)
        for call, target in targets:  # when ktrace has left all of them: a call takes as long as ktrace does for many
            with self.subTest(call=call, threads=threads):
                over = self.check_timed(target, call, threads, timeout)
                # It has begun anew when ktrace left, at the latest. The kernel's timers for sockets err by an eighth.
                self.assertLess(over, left[call] + timeout + timeout // 4 + self.late(target))
                self.assertEqual(target.end(), 0)
        return late

    def test_time_outs(self):
        self.each_timed(("-k", "do_work"), 1)

    def test_time_outs_under_watchpoints(self):
        """For which every thread is stopped, when they are armed and when they go."""
        self.each_timed(("-w", "awake"), 3)


class Outcomes(LiveTest):
    """Calls that are made again by hand while signals are sent: as many have failed with EINTR as handlers have run."""

    def check(self, target, trace):
        self.assertEqual(trace.status, 0, trace)
        self.check_untouched(target)
        target.process.stdin.close()
        handled, failed, over = map(int, target.truth(r"^handled (\d+) failed (\d+) over (\d+)").groups())
        self.assertEqual((failed, over), (handled, 0))
        self.assertEqual(target.process.wait(LIMIT), 0)
        return handled

    @unittest.skipIf(IS_ARM, LOST)
    def test_beside_signals_that_are_ignored(self):
        target = self.start(program("outcomes"))
        tracer = self.attach(target, "-k", "do_work", "--count")
        target.tell(f"send {SIGNALS}")
        target.truth("sent")
        self.assertEqual(self.check(target, tracer.stop()), SIGNALS + 1)

    @unittest.skipIf(IS_ARM, LOST)
    def test_beside_attaching_and_detaching(self):
        """With a watchpoint, for which the thread is stopped when ktrace comes and when it goes."""
        target = self.start(program("outcomes"))
        probe = ("-w", "awake") if debug_registers_trap() else ("-k", "do_work")
        trace, rounds, sent = None, 0, 0
        while rounds < 3:
            target.tell(f"send {SIGNALS}")
            sent += SIGNALS
            while not target.lines.told("sent"):
                trace = self.attach(target, *probe, "--count").stop()
                self.assertEqual(trace.status, 0, trace)
                rounds += 1
            target.truth("sent")
        self.assertEqual(self.check(target, trace), sent + 1)


class MadeAgain(LiveTest):
    """The target knows whether its call was made again (patient.c)."""
    LONG = 1_000_000  # milliseconds that are not waited for

    def check(self, other, made_again):
        target = self.start(program("patient"), self.LONG, *other)
        target.tell("sleep")
        until(lambda: sleeps_in(f"/proc/{target.pid}") == SEMTIMEDOP, "it sleeps")
        target.tell("swap")
        target.truth("swapped")
        trace = self.attach(target, "-k", "do_work").stop()
        self.assertEqual(trace.status, 0, trace)
        self.check_untouched(target)
        target.tell("give")
        self.assertEqual(target.truth(r"woke (-?\d+) (\d+) (\d+)").groups(), ("0", "0", "1" if made_again else "0"))
        self.assertEqual(target.end(), 0)

    def test_where_no_other_task_is_there(self):
        self.check((), True)

    def test_where_the_kernel_restarts_the_call_of_another(self):
        self.check(("other",), False)

    def test_where_another_runs(self):
        self.check(("busy",), False)

    @unittest.skipIf(IS_ARM, LOST)
    def test_who_wakes_up_again_and_again(self):
        """It ends itself where its call answers anything but that its time is up."""
        target = self.start(program("naps"))
        for _ in range(20):
            trace = self.attach(target, "-k", "do_work", "--count", "--duration", "5ms").finish()
            self.assertEqual(trace.status, 0, trace)
            self.check_untouched(target)
        target.tell("on")
        target.truth(r"naps \d+")
        self.assertEqual(target.end(), 0)

    def test_fork_right_behind_the_call(self):
        for options in ((), ("-f",)):
            with self.subTest(options):
                target = self.start(program("patient"), self.LONG, "forks")
                target.tell("sleep")
                until(lambda: sleeps_in(f"/proc/{target.pid}") == SEMTIMEDOP, "it sleeps")
                tracer = self.attach(target, "-k", "do_work", "--count", "--format", "json", *options)
                target.tell("give")
                self.assertEqual(target.truth(r"child (\d+)")[1], "0")
                target.truth("woke 0 0 0")
                trace = tracer.stop()
                self.assertEqual((trace.status, trace.summary("do_work")["hits"]), (0, 11 if options else 1), trace)
                self.check_untouched(target)
                self.assertEqual(target.end(), 0)


@unittest.skipUnless(os.uname().machine == "x86_64", "numbers of system calls")
class HalfDone(LiveTest):
    """Calls that have done a part of what they are to do, and answer with that part if they are interrupted."""

    def begin(self, call, number, *arguments):
        target = self.start(program("whole"), call, *arguments)
        until(lambda: sleeps_in(f"/proc/{target.pid}") == number, "it sleeps")
        return target

    def test_where_another_can_be_stopped(self):
        for call, number in PARTLY.items():
            with self.subTest(call=call):
                target = self.begin(call, number, "other")
                for _ in range(3):
                    trace = self.attach(target, "-k", "do_work").stop()
                    self.assertEqual(trace.status, 0, trace)
                    self.check_untouched(target)
                target.tell()
                did, wanted = target.truth(r"did (-?\d+) of (\d+)").groups()
                self.assertEqual(did, wanted)
                self.assertEqual(target.end(), 0)

    def test_where_no_other_can(self):
        for call in ("write", "recv"):
            with self.subTest(call=call):
                target = self.begin(call, PARTLY[call])
                tracer = self.attach(target, "-k", "do_work", "--format", "json")
                did, wanted = map(int, target.truth(r"did (-?\d+) of (\d+)").groups())
                self.assertTrue(0 < did < wanted, did)
                trace = tracer.stop()
                self.assertEqual((trace.status, trace.summary("do_work")["hits"]), (0, 1), trace)
                self.check_untouched(target)
                self.assertEqual(target.end(), 0)


class Answered(LiveTest):
    """A call that another process answers: interrupted, it would be asked for twice, and may be done twice. Another thread can
    be stopped."""

    def check(self, name, sleeps_in_function, result):
        target = self.start(program(name), ready="^asked|^none")
        if "none" in target.lines.seen:
            self.skipTest("no other process can be asked here")
        until(lambda: told_of(f"/proc/{target.pid}", "wchan").startswith(sleeps_in_function), "it waits")
        for _ in range(3):
            trace = self.attach(target, "-k", "do_work").stop()
            self.assertEqual(trace.status, 0, trace)
            self.check_untouched(target)
        tracer = self.attach(target, "-k", "do_work", "--format", "json")
        target.tell("answer")
        self.assertEqual(target.truth(r"^made (-?\d+) (\d+) asked (\d+)").groups(), (result, "0", "1"))
        trace = tracer.stop()
        self.assertEqual((trace.status, trace.summaries()[0]["hits"]), (0, 1), trace)
        self.check_untouched(target)
        self.assertEqual(target.end(), 0)

    def test_supervised(self):
        self.check("supervised", "seccomp_do_user_notification", "0")

    def test_fetched(self):
        self.check("fetches", "request_wait_answer", "5")


class AwaitedPages(LiveTest):
    """A thread that waits in the middle of a system call for a page from userfaultfd: no interrupt stops it before it has that."""

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
                    # For a watchpoint it has an interrupt before it, and uses up a processor.
                    self.assertEqual(self.awaiting(target), 0 if "-w" in options else 1)
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
        """With a signal before it the thread that waits uses up a processor, and stops when the page is there; the one that
        fills it in must not stand still for as long."""
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
