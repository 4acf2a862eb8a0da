"""System calls that are probed, or made beside probes: they answer what they do untraced, as often, with the same errno."""
import os
import signal
import unittest

from live import (NO_WATCHES, LiveTest, adds_up, debug_registers_trap, ktrace, program, sleeps_in, thread_folders,
                  until)

RESTART_SYSCALL = 219  # the number of the system call


@unittest.skipUnless(os.uname().machine == "x86_64", "numbers of system calls")
class Interrupted(LiveTest):
    """Calls that a signal, or a stop, interrupts: EINTR, or made again, as untraced. The truth is the same target untraced."""
    PROBES = (("-k", "call_site"), ("-k", "call_site", "--post"), ("-r", "make_call", "-k", "call_site+2"),
              ("-k", "call_site", "-r", "on_tick"))
    TIMES = 4

    def answers(self, target, order):
        """A line for each call, and how many were made."""
        target.tell(order)
        lines = []
        while not lines or not lines[-1].startswith("made"):
            lines.append(target.lines.next())
        made, bad = map(int, target.lines.seen[-1].split()[1::2])
        self.assertEqual(bad, 0, "registers are not what they are untraced")
        return lines, made

    def check_handled(self, way):
        order = f"{way} {self.TIMES}"
        target = self.start(program("interrupted"))
        truth, _ = self.answers(target, order)
        self.assertEqual(target.end(), 0)
        for line in truth[:-1]:
            self.assertRegex(line, rf"interrupted {self.TIMES} restarts (0|{3 * self.TIMES if way == 'restart' else 0})$")
        for options in self.PROBES:
            with self.subTest(options):
                target = self.start(program("interrupted"))
                tracer = self.attach(target, *options, "--count", "--format", "json")
                lines, made = self.answers(target, order)
                trace = tracer.stop()
                self.assertEqual((trace.status, lines), (0, truth), trace)
                hits = {(s["symbol"], s["offset"]): s["hits"] for s in trace.summaries()}
                self.assertEqual(hits.get(("call_site", 0), made), made, trace)  # one that is made again is hit again
                self.assertEqual(hits.get(("call_site", 2), self.TIMES * len(truth[:-1])), self.TIMES * len(truth[:-1]))
                self.assertTrue(all(map(adds_up, trace.summaries())), trace)
                self.check_untouched(target)
                self.assertEqual(target.end(), 0)

    def test_by_a_handler(self):
        self.check_handled("plain")

    def test_by_a_handler_that_restarts(self):
        self.check_handled("restart")

    def interrupt(self, target, index, meanwhile):
        """What a call answers that `meanwhile` is done to, and whether that took SIGALRM; None: there is no such call."""
        target.tell(f"call {index}")
        called = target.truth(r"^none$|^calling \S+ (\d+)")
        if called[0] == "none":
            return None

        self.sleeping_in = {int(called[1]), RESTART_SYSCALL}
        self.assertTrue(self.sleeps_on(target))
        meanwhile(target)
        if self.sleeps_on(target):
            os.kill(target.pid, signal.SIGALRM)
        return target.truth(r".* result .*")[0]

    def sleeps_on(self, target):
        """Whether the call is asleep again, once it is that or over."""
        folders = thread_folders(target.pid)
        calling = next((f for f in folders if not f.endswith(f"/{target.pid}")), folders[0])

        def sleeps():
            return sleeps_in(calling) in self.sleeping_in

        until(lambda: sleeps() or target.lines.told("result"), f"it sleeps: {target.lines.seen[-1]}")
        return not target.lines.told("result")

    def all_interrupted(self, target, meanwhile):
        answers = []
        while True:
            answer = self.interrupt(target, len(answers), meanwhile)
            if answer is None:
                return answers
            answers.append(answer)

    def wait_for_rest(self, target):
        """ktrace interrupts its tasks once more when it maps memory for jumps: a call that a stop of the program's own has
        interrupted at that moment is made again."""
        until(lambda: "under way" not in ktrace("ctl", "-p", target.pid, "list", "-v").out, "all is decided")

    def check_each(self, meanwhile, probes, *arguments, hit_once=False):
        """Every call under probes that are there all the time. hit_once: it does not come back to its instruction."""
        target = self.start(program("interrupted"), *arguments)
        truth = self.all_interrupted(target, meanwhile)
        self.assertGreater(len(truth), 30)
        self.assertEqual(target.end(), 0)
        for options in probes:
            with self.subTest(options):
                target = self.start(program("interrupted"), *arguments)
                tracer = self.attach(target, *options, "--count", "--format", "json")
                self.wait_for_rest(target)
                self.assertEqual(self.all_interrupted(target, meanwhile), truth)
                trace = tracer.stop()
                self.assertEqual(trace.status, 0, trace)
                if hit_once:
                    self.assertEqual(trace.summary("call_site")["hits"], len(truth), trace)
                self.check_untouched(target)
                self.assertEqual(target.end(), 0)
        return truth

    def stop(self, target):
        os.kill(target.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, target.pid, os.WSTOPPED)

    def go_on(self, target):
        os.kill(target.pid, signal.SIGCONT)
        os.waitid(os.P_PID, target.pid, os.WCONTINUED)

    def stop_for_a_moment(self, target):
        self.stop(target)
        self.go_on(target)

    def test_by_a_stop(self):
        """Some of them fail with EINTR when their process is continued (signal(7)): under a tracer, too."""
        for arguments in ((), ("thread",)):
            truth = self.check_each(self.stop_for_a_moment, (("-k", "make_one"), *self.PROBES), *arguments)
            self.assertIn("epoll_wait result -4 handled 0", truth)
            self.assertIn("poll result -4 handled 1", truth)

    def test_by_what_is_ignored(self):
        for sig in (signal.SIGWINCH, signal.SIGCHLD, signal.SIGCONT):
            truth = self.check_each(lambda target, sent=sig: os.kill(target.pid, sent), self.PROBES[:2], hit_once=True)
            self.assertTrue(all(line.endswith(" handled 1") for line in truth), truth)

    @unittest.skipUnless(debug_registers_trap(), NO_WATCHES)
    def test_by_a_probe_that_is_added(self):
        """Debug registers are set in a task while it is stopped; not in the target untraced."""
        def add_and_remove(target):
            if ktrace("ctl", "-p", target.pid, "list").status == 0:
                added = ktrace("ctl", "-p", target.pid, "add", "-w", "bad")
                self.assertEqual(added.status, 0, added)
                removed = ktrace("ctl", "-p", target.pid, "remove", added.out.split()[0])
                self.assertEqual(removed.status, 0, removed)

        self.check_each(add_and_remove, self.PROBES[:1], hit_once=True)
        self.check_each(add_and_remove, self.PROBES[1:])

    def attach_and_leave(self, target, *between):
        """ktrace comes and goes; what is done `between` is done while it is there."""
        tracer = self.attach(target, "-k", "make_one")
        for do in between:
            do(target)
        self.assertEqual(tracer.stop().status, 0)

    def test_by_a_stop_that_ktrace_comes_in(self):
        """It comes, or goes, between the stop and the continuation, or both."""
        def comes(target):
            self.stop(target)
            self.attach_and_leave(target, self.go_on)

        def goes(target):
            self.attach_and_leave(target, self.sleeps_on, self.stop)
            self.go_on(target)

        def comes_and_goes(target):
            self.stop(target)
            self.attach_and_leave(target)
            self.go_on(target)

        target = self.start(program("interrupted"))
        truth = self.all_interrupted(target, self.stop_for_a_moment)
        for meanwhile in (comes, goes, comes_and_goes):
            with self.subTest(meanwhile.__name__):
                self.assertEqual(self.all_interrupted(target, meanwhile), truth)
                self.check_untouched(target)
        self.assertEqual(target.end(), 0)


@unittest.skipUnless(os.uname().machine == "x86_64", "the place of the system calls")
class Wakeups(LiveTest):
    """Events of descriptors (eventfd, signalfd, timerfd), and mutexes whose owners die (robust futexes)."""
    WAYS = {"eventfd": 100000, "signalfd": 50000, "timerfd": 500, "poll": 500, "robust": 3000, "inherit": 3000,
            "process": 500}  # rounds that last while ktrace comes and goes
    ROUNDS = 60

    def check(self, target, way):
        """The system calls that it made."""
        target.tell(f"{way} {self.ROUNDS}")
        good, made = map(int, target.truth(rf"^{way} good (-?\d+) made (\d+)").groups())
        self.assertEqual(good, self.ROUNDS, way)
        return made

    def check_all(self, *options):
        for way in self.WAYS:
            with self.subTest(way):
                target = self.start(program("wakeups"))
                tracer = self.attach(target, *options, "--count", "--format", "json")
                made = self.check(target, way)
                trace = tracer.stop()
                self.assertEqual(trace.status, 0, trace)
                if way == "process" and "-f" in options:
                    made = self.ROUNDS  # by the children
                hits = {s["symbol"]: s["hits"] for s in trace.summaries()}
                self.assertEqual(hits.get("call_site", made), made, trace)
                self.assertEqual(hits.get("make_call", made), made, trace)
                self.assertTrue(all(map(adds_up, trace.summaries())), trace)
                self.check_untouched(target)
                self.assertEqual(target.end(), 0)

    def test_under_probes_of_the_calls(self):
        self.check_all("-k", "call_site")

    def test_under_post_handlers(self):
        self.check_all("-k", "call_site", "-k", "die_here", "--post")

    def test_under_return_probes(self):
        """Of functions that never return in the end, too."""
        self.check_all("-r", "make_call", "-r", "die_here", "-r", "libc:pthread_*", "-f")

    def test_while_ktrace_comes_and_goes(self):
        target = self.start(program("wakeups"))
        for way, rounds in self.WAYS.items():
            target.tell(f"{way} {rounds}")
            for options in (("-k", "call_site"), ("-r", "die_here", "-w", "mutex"), ("-k", "make_call", "-f")):
                self.assertEqual(self.attach(target, *options, "--count").stop().status, 0)
            self.assertEqual(target.truth(rf"^{way} good (-?\d+)")[1], str(rounds), way)
            self.check_untouched(target)
        self.assertEqual(target.end(), 0)
