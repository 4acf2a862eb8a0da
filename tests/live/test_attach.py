"""Attaching: stopped processes, several at once, processes that change meanwhile, threads that are in the middle of something."""
import contextlib
import ctypes
import json
import os
import re
import resource
import select
import shutil
import signal
import subprocess
import tempfile
import unittest

from live import (KTRACE, LIMIT, NO_WATCHES, Lines, LiveTest, adds_up, children_of, debug_registers_trap, folders_of, ktrace,
                  program, state_of, thread_folders, told_of, until)
from workshop import build, copy_of, execute

LEADER_EVERY = int(os.environ.get("KTRACE_LEADER_EVERY", "67"))  # of the tracing process's requests


def wait_until_stopped(pid):
    """All threads on their way into the group stop are there."""
    until(lambda: all(state_of(folder) == "T" for folder in thread_folders(pid)), "all threads are stopped")


class CallsOfOurs(LiveTest):
    """System calls that threads make for ktrace, wherever they are."""

    def test_restartable_sequences(self):
        """A thread that is stopped in one to make a system call for ktrace does not go on in it."""
        target = self.start(program("restartable"), 4, ready="ready|none")
        if "none" in target.lines.seen[-1]:
            raise unittest.SkipTest("no restartable sequences here")
        for i in range(20):
            options = (("-k", "do_work"), ("-r", "do_work"), ("-w", "stop"))[i % 3]
            trace = self.attach(target, *options, "--count").stop()
            self.assertEqual(trace.status, 0, trace)
        self.check_untouched(target)
        target.tell()
        counted, found = target.truth(r"counted (\d+) found (\d+)").groups()
        self.assertEqual(counted, found)
        self.assertEqual(target.end(), 0)

    def parent_in_vfork(self):
        """Nothing stops it before its child is through; ktrace, which waits for it, has said so."""
        target = self.start(program("watch"))
        target.tell("borrow")
        until(lambda: state_of(f"/proc/{target.pid}") == "D", "the parent waits in vfork")
        tracer = self.attach(target, "-k", "bump", "--count", wait=False)
        tracer.errors.until(rf"waiting for process {target.pid}: its thread {target.pid} waits in the kernel")
        return target, tracer

    def test_a_parent_in_vfork_is_waited_for(self):
        target, tracer = self.parent_in_vfork()
        target.tell("enough")
        tracer.errors.until("Attached 1 probe")
        self.assertEqual(target.truth(r"^child \d+ (-?\d+)$")[1], "0")
        self.assertEqual(tracer.stop().status, 0)
        self.check_untouched(target)

    def test_a_tracing_process_killed_before_it_has_attached(self):
        target, tracer = self.parent_in_vfork()
        os.kill(tracer.tracing, signal.SIGKILL)
        trace = tracer.finish()
        self.assertEqual(trace.status, 1, trace)
        self.assertRegex(trace.err, r"(?m)^ktrace: the tracing process was killed by SIGKILL$")
        target.tell("enough")
        self.assertEqual(target.truth(r"^child \d+ (-?\d+)$")[1], "0")
        self.check_untouched(target)
        self.assertEqual(target.end(), 0)

    def test_a_parent_in_vfork_is_not_waited_for_by_who_does_not_want_to(self):
        target, tracer = self.parent_in_vfork()
        trace = tracer.stop()
        self.assertEqual(trace.status, 1, trace)
        self.assertIn("waits in the kernel", trace.err)
        target.tell("enough")
        self.assertEqual(target.truth(r"^child \d+ (-?\d+)$")[1], "0")
        self.check_untouched(target)

    def test_dispatched_system_calls(self):
        """A thread with syscall user dispatch makes injected calls all the same, and gets SIGSYS for its own alone."""
        target = self.start(program("dispatched"), ready="ready|none")
        if "none" in target.lines.seen[-1]:
            raise unittest.SkipTest("no dispatch of system calls here")
        for i in range(20):
            options = (("-k", "do_work"), ("-r", "do_work"), ("-k", "do_work", "--post"))[i % 3]
            trace = self.attach(target, *options, "--count").stop()
            self.assertEqual(trace.status, 0, trace)
            self.check_untouched(target)
        for spec in "call_site", "allowed_site":
            for options in ([], ["--post"]):
                tracer = subprocess.Popen([KTRACE, "attach", "-p", str(target.pid), "-k", spec, *options, "--count"],
                                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
                self.addCleanup(tracer.kill)
                said = Lines(tracer.stderr, "ktrace")
                until(lambda said=said: said.told("PR_SET_SYSCALL_USER_DISPATCH"),
                      "it is refused, or taken out when it is hit")
                tracer.send_signal(signal.SIGINT)
                self.assertEqual(tracer.wait(LIMIT), 1)
                tracer.stderr.close()
                self.check_untouched(target)
        target.tell()
        made, handled, bad = map(int, target.truth(r"made (\d+) handled (\d+) bad (\d+)").groups())
        self.assertEqual((handled, bad), (made, 0))
        self.assertEqual(target.end(), 0)

    def test_system_calls_that_are_dispatched_later(self):
        """The probe of such a call is taken out when it is hit; others stay."""
        if "none" in self.start(program("dispatched"), ready="ready|none").lines.seen[-1]:
            raise unittest.SkipTest("no dispatch of system calls here")
        for options in ([], ["--post"]):
            target = self.start(program("dispatched"), "later")
            tracer = self.attach(target, "-k", "call_site", "-k", "allowed_site", "-k", "do_work", "--count", "--format",
                                 "json", *options)
            target.tell("on")
            target.truth("^on$")
            target.tell()
            made, handled, bad = map(int, target.truth(r"made (\d+) handled (\d+) bad (\d+)").groups())
            self.assertEqual((handled, bad), (made, 0))
            trace = tracer.stop()
            self.assertEqual(trace.status, 1, trace)
            self.assertEqual(trace.err.count("PR_SET_SYSCALL_USER_DISPATCH"), 2, trace)
            self.assertGreater(trace.summary("do_work")["hits"], 0)
            self.check_untouched(target)
            self.assertEqual(target.end(), 0)


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

    def test_verbose(self):
        """It prints at once what `ctl list` does, in each process."""
        targets = [self.start(program("calls"), 1, 1) for _ in range(2)]
        tracer = self.trace("-p", ",".join(str(target.pid) for target in targets), "-v", "-k", "do_work+4", "-r", "do_work")
        listed = ktrace("ctl", "-p", targets[0].pid, "list").out.splitlines()
        self.assertEqual(len(listed), 4)
        err = tracer.stop().err
        told = re.findall(r"(?m)^ktrace: (.* do_work\+.*)$", err)
        self.assertEqual(sorted(told), sorted(listed), err)
        self.assertRegex(err, r"Attached 2 probes[^\n]*\n[^\n]* k do_work\+0x4 \[calls\]\n[^\n]* r do_work\+0x0 \[calls\]\n")
        self.assertNotIn("[symbols]", err)
        apart = copy_of(build("calls", "-O1", "-g", "-pthread"), "apart")  # where its debug information is is told
        execute("objcopy", "--only-keep-debug", apart, apart + ".debug")
        execute("objcopy", "--strip-debug", f"--add-gnu-debuglink={apart}.debug", apart)
        targets.append(self.start(apart, 1, 1))
        twice = ktrace("attach", "-p", targets[-1].pid, "-vv", "-j", "do_work", "--duration", "1ms")
        self.assertRegex(twice.err, rf"(?m)^ktrace\[symbols\]: {re.escape(apart)}: its debug file is {re.escape(apart)}.debug$")
        wrong = ktrace("attach", "-p", targets[0].pid, "-k", "do_work", "--duration", "1ms",
                       env=dict(os.environ, KTRACE_LOG="symbols:loud"))
        self.assertIn("there is no level `loud'", wrong.err)
        for target in targets:
            target.tell()
            target.truth("do_work")
            self.assertEqual(target.end(), 0)

    def test_verbose_tells_of_a_probe_that_is_off(self):
        target = self.start(program("execs"), "alone")
        tracer = self.attach(target, "-v", "-k", "do_work", "-r", "do_work", "--count")
        self.assertEqual(ktrace("ctl", "-p", target.pid, "disable", "1").status, 0)
        tracer.errors.until(r" k do_work\+0x0 \[execs\] \[DISABLED\]$")
        tracer.errors.until(r" r do_work\+0x0 \[execs\]$")
        self.assertEqual(ktrace("ctl", "-p", target.pid, "off").status, 0)
        tracer.errors.until(r"^ktrace: All probes are off: ctl on switches them on$")
        tracer.errors.until(r" r do_work\+0x0 \[execs\]$")
        self.assertEqual(tracer.stop().status, 0)
        target.tell()
        self.assertEqual(target.end(), 0)

    def test_an_odd_name_is_told_as_it_is_in_events(self):
        with tempfile.TemporaryDirectory() as folder:
            odd = os.path.join(folder, "a\\b\x1b\n")
            shutil.copy(program("calls"), odd)
            target = self.start(odd, 1, 1)
            tracer = self.attach(target, "-k", "do_work", "--max-events", "1")
            shown = r"a\\b\x1b\n"
            self.assertIn(f" to {target.pid} ({shown}), 1 thread", tracer.errors.seen[-1])
            target.tell()
            trace = tracer.finish()
            self.assertIn(f" {shown}/{target.pid} do_work", trace.out)
            self.assertNotIn("\x1b", trace.err)
            target.truth("do_work")
            self.assertEqual(target.end(), 0)

    def test_interrupted_while_a_thread_waits_in_exec(self):
        """It waits for the end of another one, which a tracer has to take that does not ask; it cannot be seized then."""
        libc, seize, all_children = ctypes.CDLL(None), 0x4206, 0x40000000  # PTRACE_SEIZE, __WALL
        target = self.start(program("execs"), 3)
        other = 0

        def take_end():  # else the process cannot end
            with contextlib.suppress(ChildProcessError):
                os.waitpid(other, all_children)

        def is_stuck():
            nonlocal other
            state = state_of(f"/proc/{target.pid}/task/{other}") if other else "X"
            if state == "X":  # it was the one that has called exec, and is the leader now, until another one does
                tids = [int(tid) for tid in os.listdir(f"/proc/{target.pid}/task") if int(tid) != target.pid]
                other = next((tid for tid in tids if libc.ptrace(seize, tid, None, None) == 0), 0)
            if state == "Z" and "TracerPid:\t0\n" not in told_of(f"/proc/{target.pid}", "status"):
                take_end()
                other, state = 0, "X"
            return state == "Z"

        until(is_stuck, "a thread waits in exec")
        self.addCleanup(take_end)
        tracer = self.trace("-p", target.pid, "-k", "do_work", wait=False)
        until(lambda: tracer.process.poll() is not None or self.makes_request(tracer, seize), "it seizes")
        tracer.process.send_signal(signal.SIGINT)
        trace = tracer.finish()
        self.assertEqual(trace.status, 1, trace)
        self.assertIn("one of its threads waits in execve", trace.err)
        take_end()
        target.tell("on")
        target.truth("done")
        self.check_untouched(target)
        self.assertEqual(target.end(), 0)

    def makes_request(self, tracer, request):
        """A thread of the tracing process is in a ptrace(2) with it."""
        folders = [folder for pid in children_of(tracer.pid) for folder in folders_of(pid)]
        return any((told_of(folder, "syscall") or "").split()[1:2] == [hex(request)] for folder in folders)

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

    def test_interrupted_while_it_looks_into_the_second_of_two(self):
        """In whose table of 16 MB the search takes seconds. The first one runs on untraced meanwhile."""
        with tempfile.TemporaryDirectory() as folder:
            source, path = os.path.join(folder, "long.s"), os.path.join(folder, "long")
            with open(source, "w") as f:
                f.write(".section .note.GNU-stack\n.text\n")
                for i in range(2048):
                    f.write(f".globl {'a' * 8192}{i}\n{'a' * 8192}{i}: ret\n")
            main = os.path.join(folder, "main.c")
            with open(main, "w") as f:
                f.write('#include <stdio.h>\nint main(void) { puts("ready"); fflush(stdout); return getchar() != EOF; }\n')
            execute("gcc", main, source, "-o", path)
            first, second = self.start(program("calls"), 1, 10), self.start(path)
            spec = f"*{'a' * 800}b*"
            tracer = self.trace("-p", f"{first.pid},{second.pid}", "-k", "do_work", "-k", spec, "--allow-missing", wait=False)
            until(lambda: any(path in told_of(f"/proc/{pid}", "maps") for pid in children_of(tracer.process.pid)),
                  "it looks into the second")
            self.check_untouched(first)
            first.tell()
            first.truth("do_work 10 ")
            trace = tracer.stop()
            self.assertEqual(trace.status, 0, trace)
            self.assertRegex(trace.err, r"(?m)^ktrace: interrupted while (do_work|\*a+b\*) was looked for$")
            self.assertNotIn("Attached", trace.err)
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
    def test_while_it_execs_without_timers(self):
        """Where signals that are queued for others of the user leave no room, as a timer needs it."""
        before = resource.getrlimit(resource.RLIMIT_SIGPENDING)
        self.addCleanup(resource.setrlimit, resource.RLIMIT_SIGPENDING, before)
        resource.setrlimit(resource.RLIMIT_SIGPENDING, (0, before[1]))
        self.test_while_it_execs()

    def test_while_it_execs(self):
        # Each exec ends all threads but one and gives the process another memory, at any moment of an attach.
        target = self.start(program("execs"), 2)
        traced = 0
        while traced < 5:
            trace = ktrace("attach", "-p", target.pid, "-k", "do_work", "--max-events", "20", "--duration", "100ms")
            # One that comes too late finds that its task or process has ended.
            self.assertIn(trace.status, (0, 1), trace)
            traced += trace.status == 0
        target.tell("enough")
        target.truth(r"done")
        self.check_untouched(target)
        self.assertEqual(target.end(), 0)

    def test_while_it_does_nothing_but_exec(self):
        """One that is alone is never reported to have ended: between two memories it is looked at again."""
        target = self.start(program("execs"), "alone")
        for _ in range(60):
            trace = ktrace("attach", "-p", target.pid, "-k", "do_work", "--max-events", "1")
            self.assertEqual((trace.status, len(trace.payloads)), (0, 1), trace)
        target.tell()
        target.truth("done")
        self.check_untouched(target)
        self.assertEqual(target.end(), 0)


class Leader(LiveTest):
    """The first thread of a process ends before one of ktrace's requests, from the first to the last; its others go on."""

    def ends_before(self, request, options):
        """False: there were not that many."""
        target = self.start(program("threads"))
        target.tell("mortal 2")
        target.truth("spinning 2")
        traced = subprocess.run([program("undertaker"), str(request), str(target.pid), KTRACE, "attach", "-p", str(target.pid),
                                 *options, "--count", "--format", "json", "--duration", "20ms"], stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=LIMIT,
                                env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0"})  # which a traced process cannot
        reached = "delivered before" in traced.stdout
        with self.subTest(request=request, options=options):
            self.assertEqual(traced.returncode, 0, traced)
            self.assertNotIn("waiting", traced.stderr)
            lines = [json.loads(line) for line in traced.stdout.splitlines() if line.startswith("{")]
            summaries = [line for line in lines if line["type"] == "summary"]
            self.assertTrue(summaries and all(map(adds_up, summaries)), traced)
            if not reached:
                os.kill(target.pid, signal.SIGUSR1)
            until(lambda: state_of(f"/proc/{target.pid}") == "Z", "its leader has ended")
            self.check_untouched(target)
            target.tell("on")
            self.assertGreater(int(target.truth(r"calls (\d+)")[1]), 0)
            self.assertEqual(target.end(), 0)
        return reached

    def check(self, *options):
        request = 1
        while self.ends_before(request, options):
            request += LEADER_EVERY
        self.assertGreater(request, 1)

    def test_ends_under_probes(self):
        self.check("-r", "do_work", "-k", "leave_here")

    @unittest.skipUnless(debug_registers_trap(), NO_WATCHES)
    def test_ends_under_watchpoints(self):
        self.check("-w", "stop")


class Rehearsal(LiveTest):
    """Before it attaches, ktrace measures its own part in durations on a child of its own."""

    def children_of_all(self, pid):
        """The processes that any thread of a process has started."""
        return [int(child) for folder in folders_of(pid) for child in told_of(folder, "children").split()]

    def test_it_does_not_wait_for_long(self):
        """The child does not come to run: ktrace attaches nevertheless, and says what it does not know."""
        target = self.start(program("calls"), 1, 10)
        tracer = self.attach(target, "-r", "do_work", "-v", wait=False)

        def speaks():
            for tracing in self.children_of_all(tracer.pid):
                for child in self.children_of_all(tracing):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(child, signal.SIGSTOP)
            return select.select([tracer.process.stderr], [], [], 0)[0]

        until(speaks, "ktrace says something")
        tracer.errors.until("Attached 1 probe")
        target.tell()
        target.truth("do_work 10")
        trace = tracer.stop()
        self.assertEqual((trace.status, len(trace.payloads)), (0, 10), trace)
        self.assertRegex(trace.err, r"(?m)^Durations: (\d+ ns of ktrace's own|.* could not be measured)")
        self.check_untouched(target)
        self.assertEqual(target.end(), 0)
