"""Attaching: idle processes in every kind of system call, busy ones again and again, stopped ones, several at once."""
import os
import select
import signal

from live import LiveTest, adds_up, ktrace, program, state_of, thread_folders, until

# What the sleeper's call answers: when it was woken; when its time was up.
WOKEN = {"poll", "select", "epoll_wait", "futex", "read", "accept", "sigwait", "pause", "sigsuspend", "wait4", "waitid",
         "msgrcv", "semop"}
TIMED = {"nanosleep_timeout": (0, 0), "clock_nanosleep_timeout": (0, 0), "poll_timeout": (0, 0),
         "select_timeout": (0, 0), "epoll_wait_timeout": (0, 0), "epoll_pwait2_timeout": (0, 0),
         "futex_timeout": (-1, 110), "recv_timeout": (-1, 11), "sigtimedwait_timeout": (-1, 11),
         "semtimedop_timeout": (-1, 11), "io_getevents_timeout": (0, 0), "ppoll_timeout": (0, 0),
         "accept_timeout": (-1, 11)}
TIMEOUT_MS = 900
LATE_MS = 250  # for a busy machine: much less than what is over at the first moment, so no time-out begins anew
ROUNDS = int(os.environ.get("KTRACE_ROUNDS", "50"))  # attach and detach, again and again


def is_asleep(pid):
    with open(f"/proc/{pid}/syscall") as f:
        place = f.read().split()
    return place[0] not in ("running", "-1", "1") and state_of(f"/proc/{pid}") == "S"


def wait_until_asleep(pid):
    """The process has said that it is ready, and goes to sleep next."""
    until(lambda: is_asleep(pid), "the process sleeps")


def wait_until_stopped(pid):
    """All threads on their way into the group stop are there."""
    until(lambda: all(state_of(folder) == "T" for folder in thread_folders(pid)), "all threads are stopped")


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

    def check_timed(self, target, call, threads):
        for _ in range(threads):
            woke = target.truth(r"woke (-?\d+) (\d+) (\d+)")
            self.assertEqual((int(woke[1]), int(woke[2])), TIMED[call], call)
            self.assertGreaterEqual(int(woke[3]), TIMEOUT_MS - 1, call)
            self.assertLess(int(woke[3]), TIMEOUT_MS + LATE_MS, call)
        target.truth("done")

    def each_timed(self, visit, threads):
        """Attached when a third of the time-out is over: visit(target, call)."""
        for count in threads:
            for call in sorted(TIMED):
                with self.subTest(call=call, threads=count):
                    target = self.start(program("sleeper"), call, count)
                    if call == "nanosleep_timeout":
                        self.restarted(target)
                    target.truth("moment 1")
                    trace = visit(target)
                    self.check_timed(target, call, count)
                    self.assertEqual(trace().status, 0)
                    self.check_untouched(target)
                    self.assertEqual(target.end(), 0)

    def test_time_runs_out_under_probes(self):
        def visit(target):
            tracer = self.attach(target, "-k", "do_work", "--format", "json")

            def end():
                trace = tracer.stop()
                self.assertIn(trace.summary("do_work")["hits"], (1, 3))
                return trace

            return end

        self.each_timed(visit, (1,))

    def test_time_runs_out_behind_detach(self):
        def visit(target):
            tracer = self.attach(target, "-r", "do_work", "--format", "json")
            target.truth("moment 2")
            added = ktrace("ctl", "-p", target.pid, "add", "-k", "milliseconds")
            self.assertEqual(added.status, 0, added)
            trace = tracer.stop()
            self.check_untouched(target)
            return lambda: trace

        self.each_timed(visit, (1, 3))

    def test_time_runs_out_under_watchpoints(self):
        def visit(target):
            tracer = self.attach(target, "-w", "awake", "--format", "json")

            def end():
                trace = tracer.stop()
                self.assertIn(len(trace.events("watch")), (1, 3), trace)
                return trace

            return end

        self.each_timed(visit, (3,))

    def test_time_runs_out_behind_watchpoints(self):
        def visit(target):
            tracer = self.attach(target, "-w", "awake", "--format", "json")
            target.truth("moment 2")
            trace = tracer.stop()
            self.check_untouched(target)
            return lambda: trace

        self.each_timed(visit, (1,))


class Attach(LiveTest):
    def test_by_id_of_a_thread(self):
        target = self.start(program("threads"))
        target.tell("spin 3")
        target.truth("spinning 3")
        tids = sorted(int(t) for t in os.listdir(f"/proc/{target.pid}/task"))
        tracer = self.trace("-p", tids[-1], "-k", "do_work", "--max-events", "20")
        self.assertIn(f"to {target.pid} (threads), 4 threads", tracer.errors.seen[-1])
        trace = tracer.finish()
        self.assertEqual(len(trace.payloads), 20, trace)
        self.check_untouched(target)
        target.tell("on")
        target.truth("calls")
        self.assertEqual(target.end(), 0)

    def test_two_processes(self):
        first, second = self.start(program("calls"), 2, 500), self.start(program("calls"), 1, 300)
        tracer = self.trace("-p", f"{first.pid},{second.pid}", "-r", "do_work", "--format", "json")
        tracer.errors.until(r"Attached \d+ probe")
        first.tell()
        second.tell()
        for target in (first, second):
            target.truth("do_work")
        trace = tracer.stop()
        by_pid = {pid: sum(e["pid"] == pid for e in trace.events("return")) for pid in (first.pid, second.pid)}
        self.assertEqual(by_pid, {first.pid: 1000, second.pid: 300})
        self.assertEqual(trace.summary("do_work")["hits"], 1300, trace.err)
        for target in (first, second):
            self.check_untouched(target)
            self.assertEqual(target.end(), 0)

    def test_one_of_two_ends(self):
        first, second = self.start(program("calls"), 1, 10), self.start(program("calls"), 1, 20)
        tracer = self.trace("-p", f"{first.pid},{second.pid}", "-k", "do_work", "--format", "json")
        tracer.errors.until(r"Attached \d+ probe")
        first.tell()
        first.truth("do_work")
        self.assertEqual(first.end(), 0)
        second.tell()
        second.truth("do_work")
        self.assertEqual(second.end(), 0)
        trace = tracer.finish()
        self.assertEqual((trace.status, trace.summary("do_work")["hits"]), (0, 30), trace)

    def test_second_of_two_refuses(self):
        """Where one of the processes cannot be traced, the other is as if nothing had been tried."""
        target = self.start(program("calls"), 1, 10)
        tracer = self.trace("-p", f"{target.pid},999999999", "-k", "do_work", wait=False)
        trace = tracer.finish()
        self.assertEqual(trace.status, 1, trace)
        self.check_untouched(target)
        target.tell()
        target.truth("do_work 10")
        self.assertEqual(target.end(), 0)

    def test_again_and_again_under_load(self):
        target = self.start(program("threads"))
        target.tell("spin 16")
        target.truth("spinning 16")
        for i in range(ROUNDS):
            tracer = self.attach(target, "-r" if i % 2 else "-k", "do_work", "--count", "--format", "json")
            trace = tracer.stop()
            self.assertEqual(trace.status, 0, trace)
            self.assertTrue(adds_up(trace.summary("do_work")), trace)
            self.check_untouched(target)
        target.tell("on")
        target.truth("calls")
        self.assertEqual(target.end(), 0)

    def test_again_and_again_single_threaded(self):
        target = self.start(program("threads"))
        target.tell("spin 1")
        target.truth("spinning 1")
        for _ in range(ROUNDS):
            trace = self.attach(target, "-r", "do_work", "--max-events", "3").finish()
            self.assertEqual((trace.status, len(trace.payloads)), (0, 3), trace)
            self.check_untouched(target)
        target.tell("on")
        target.truth("calls")
        self.assertEqual(target.end(), 0)

    def stop(self, target):
        os.kill(target.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, target.pid, os.WSTOPPED | os.WNOWAIT)

    def test_stopped_process(self):
        """One that job control has stopped stays stopped under ktrace, and behind it."""
        for threads in (1, 4):
            with self.subTest(threads=threads):
                target = self.start(program("threads"))
                target.tell(f"spin {threads}")
                target.truth("spinning")
                self.stop(target)
                tracer = self.attach(target, "-k", "do_work", "--count", "--format", "json")
                self.assertIn(state_of(f"/proc/{target.pid}"), "Tt")
                trace = tracer.stop()
                self.assertEqual((trace.status, trace.summary("do_work")["hits"]), (0, 0), trace)
                self.check_untouched(target)
                wait_until_stopped(target.pid)
                os.kill(target.pid, signal.SIGCONT)
                target.tell("on")
                self.assertGreater(int(target.truth(r"calls (\d+)")[1]), 0)
                self.assertEqual(target.end(), 0)

    def test_continued_under_probes(self):
        target = self.start(program("threads"))
        self.stop(target)
        tracer = self.attach(target, "-k", "do_work", "--count", "--format", "json")
        os.kill(target.pid, signal.SIGCONT)
        target.tell("short 50")
        target.truth("calls 100")
        trace = tracer.stop()
        self.assertEqual(trace.summary("do_work")["hits"], 100, trace)
        self.check_untouched(target)
        self.assertEqual(target.end(), 0)

    def test_stop_and_continue_while_traced(self):
        target = self.start(program("threads"))
        tracer = self.attach(target, "-r", "do_work", "--count", "--format", "json")
        target.tell("spin 4")
        target.truth("spinning")
        for _ in range(10):
            self.stop(target)
            os.kill(target.pid, signal.SIGCONT)
            os.waitid(os.P_PID, target.pid, os.WCONTINUED)
        target.tell("on")
        truth = target.truth(r"calls (\d+)")
        trace = tracer.stop()
        self.assertEqual(trace.summary("do_work")["hits"], int(truth[1]), trace)
        self.assertTrue(adds_up(trace.summary("do_work")), trace)
        self.check_untouched(target)
        self.assertEqual(target.end(), 0)

    def test_detach_leaves_it_stopped(self):
        target = self.start(program("threads"))
        target.tell("spin 4")
        target.truth("spinning")
        tracer = self.attach(target, "-r", "do_work", "--count", "--format", "json")
        self.stop(target)
        trace = tracer.stop()
        self.assertEqual(trace.status, 0, trace)
        self.check_untouched(target)
        wait_until_stopped(target.pid)
        os.kill(target.pid, signal.SIGCONT)
        target.tell("on")
        target.truth("calls")
        self.assertEqual(target.end(), 0)


class Changing(LiveTest):
    def test_while_it_execs(self):
        # Each exec ends all threads but one and gives the process another memory, at any moment of an attach.
        target = self.start(program("execs"), 2, 100)
        traced = 0
        while not select.select([target.process.stdout], [], [], 0)[0]:
            trace = ktrace("attach", "-p", target.pid, "-k", "do_work", "--max-events", "20", "--duration", "100ms")
            # One that comes too late is told that its task or process has ended.
            self.assertIn(trace.status, (0, 1), trace)
            traced += trace.status == 0
        self.assertGreater(traced, 0)
        target.truth(r"done")
        self.check_untouched(target)
        self.assertEqual(target.end(), 0)
