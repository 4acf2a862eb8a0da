"""Threads that begin and end under probes, and processes that end, crash or become another program."""
import collections
import os
import re
import signal

from live import NUMBERS, SLOW, LiveTest, adds_up, ktrace, program, sleeps_in, state_of, thread_folders, until

READ = NUMBERS["read"]


class Threads(LiveTest):
    def count(self, command, symbol, *options):
        target = self.start(program("threads"))
        tracer = self.attach(target, *options, "--count", "--format", "json")
        target.tell(command)
        truth = target.truth(r"calls (\d+)")
        trace = tracer.stop()
        self.assertEqual(trace.status, 0, trace)
        summary = trace.summary(symbol)
        self.assertEqual(summary["hits"], int(truth[1]), trace)
        self.assertTrue(adds_up(summary), summary)
        self.check_untouched(target)
        self.assertEqual(target.end(), 0)
        return summary

    def test_short_lived(self):
        self.count("short 4000", "do_work", "-k", "do_work")

    def test_short_lived_returning(self):
        summary = self.count("short 4000", "do_work", "-r", "do_work")
        self.assertEqual(summary["events"], summary["hits"], summary)

    def test_followed(self):
        """With children in the trace threads are no other."""
        self.count("short 2000", "do_work", "-k", "do_work", "-f")
        self.count("leader 2000", "do_work", "-r", "do_work", "-f")
        self.exec_elsewhere("-f", "-k")

    def renamed(self, times, *options):
        trace = ktrace("run", *options, "--format", "json", "--", program("renames"), times)
        self.assertEqual(trace.status, 0, trace)
        self.assertEqual(len(trace.events()), 2 * times + 2, trace.err)
        return trace.events()

    def test_renamed(self):
        """An event has the name that the thread had at the hit, not when it is printed."""
        for follows in [], ["-f"]:
            events = self.renamed(300, *follows, "-r", "as_named", "--print", "str(next)", "--print", "comm")
            for e in events:
                self.assertEqual((e["comm"], e["values"]["comm"]), (e["values"]["str(next)"],) * 2)
            for e in self.renamed(300, *follows, "-j", "as_named", "--engine", "trap"):
                self.assertEqual(e["comm"], e["args"]["name"])

    def test_renamed_in_the_agent(self):
        """Where no stop tells it, it is one of the thread's own names, and they come in their order."""
        times = 3000
        *events, behind_exec = self.renamed(times, "-j", "as_named")
        names = [f"{word} {i}" for i in range(times) for word in ("before", "after")] + ["last"]
        names_of_other = [f"after {times - 1}"] + [f"other {i}" for i in range(times)]
        for is_other, had in (False, names), (True, names_of_other):
            shown = [had.index(e["comm"]) for e in events if e["args"]["name"].startswith("other") == is_other]
            self.assertEqual(shown, sorted(shown))
        self.assertEqual(behind_exec["comm"], "renames")

    def test_end_inside(self):
        summary = self.count("exit 400", "leave_here", "-r", "leave_here")
        self.assertEqual(summary["unreturned"], 400)

    def test_leader_ends_first(self):
        self.count("leader 5000", "do_work", "-k", "do_work")

    def test_leader_ends_first_returning(self):
        summary = self.count("leader 5000", "do_work", "-r", "do_work")
        self.assertEqual(summary["events"], summary["hits"])

    def test_attach_without_leader(self):
        target = self.start(program("threads"))
        target.tell("leader 10")
        target.truth("calls 40")
        tracer = self.attach(target, "-r", "do_work", "--count", "--format", "json")
        target.tell("short 100")
        target.truth("calls 200")
        trace = tracer.stop()
        summary = trace.summary("do_work")
        self.assertEqual((trace.status, summary["hits"], summary["events"]), (0, 200, 200), trace)
        target.tell("short 10")
        target.truth("calls 20")
        self.assertEqual(target.end(), 0)

    def test_vfork_without_leader(self):
        """The child borrows the memory of a process whose leader has none any more."""
        for options in (("-k", "do_work"), ("-r", "do_work"), ("-k", "do_work", "-f"), ("-k", "do_work", "-w", "stop")):
            for ends_first in (True, False):
                with self.subTest(options, ends_first=ends_first):
                    target = self.start(program("threads"))
                    calls = 0 if ends_first else 40
                    if ends_first:
                        self.end_leader(target)
                    tracer = self.attach(target, *options, "--count", "--format", "json")
                    if not ends_first:
                        self.end_leader(target)
                    target.tell("vfork 2")
                    target.truth("spinning 2")
                    target.tell("on")
                    calls += int(target.truth(r"calls (\d+)")[1])
                    target.tell("short 50")
                    target.truth("calls 100")
                    trace = tracer.stop()
                    self.assertEqual((trace.status, trace.summary("do_work")["hits"]), (0, calls + 100), trace)
                    self.check_untouched(target)
                    self.assertEqual(target.end(), 0)

    def end_leader(self, target):
        target.tell("leader 10")
        target.truth("calls 40")
        until(lambda: state_of(f"/proc/{target.pid}") == "Z", "the leader has ended")

    def test_detach_without_leader(self):
        """Debug registers are cleared in a thread that sleeps in a read: it is not waited for."""
        target = self.start(program("threads"))
        tracer = self.attach(target, "-w", "stop")
        self.end_leader(target)
        until(lambda: any(sleeps_in(folder) == READ for folder in thread_folders(target.pid)), "its heir sleeps")
        trace = tracer.stop()
        self.assertEqual(trace.status, 0, trace)
        self.assertNotIn("waiting", trace.err)
        self.check_untouched(target)
        self.assertEqual(target.end(), 0)

    def exec_elsewhere(self, *options, without_leader=False):
        target = self.start(program("threads"))
        if without_leader:
            self.end_leader(target)
        tracer = self.attach(target, *options, "do_work", "--count", "--format", "json")
        target.tell("exec 8")
        target.truth("ready")
        before = target.pid
        target.tell("short 100")
        target.truth("calls 200")
        trace = tracer.stop()
        self.assertEqual(trace.status, 0, trace)
        summary = trace.summary("do_work")
        self.assertGreaterEqual(summary["hits"], 200, trace)
        self.assertTrue(adds_up(summary), trace)
        self.assertEqual(target.pid, before)
        self.check_untouched(target)
        self.assertEqual(target.end(), 0)

    def test_exec_from_another_thread(self):
        for _ in range(5):
            self.exec_elsewhere("-k")

    def test_exec_without_leader(self):
        """The thread that calls it goes on under the id of a leader that had ended before ktrace came."""
        for probe in ("-k", "-r"):
            self.exec_elsewhere(probe, without_leader=True)

    def test_exec_from_another_thread_returning(self):
        for _ in range(5):
            self.exec_elsewhere("-r")

    def crash(self, how, sig):
        target = self.start(program("threads"))
        tracer = self.attach(target, "-r", "do_work", "-r", "crash_here", "--count", "--format", "json")
        target.tell(f"{how} 100")
        trace = tracer.finish()
        self.assertEqual(trace.status, 0, trace)
        self.assertEqual(target.process.wait(), -sig)
        self.assertEqual(trace.summary("do_work")["events"], 100, trace)
        crashed = trace.summary("crash_here")
        self.assertEqual((crashed["hits"], crashed["unreturned"]), (1, 1), trace)
        self.assertRegex(trace.err, rf"(?m)^ktrace: {target.pid} \(threads\) was killed by {sig.name}$")

    def test_end_is_told(self):
        target = self.start(program("threads"))
        tracer = self.attach(target, "-k", "do_work")
        self.assertEqual(target.end(), 0)
        trace = tracer.finish()
        self.assertEqual(trace.status, 0, trace)
        self.assertRegex(trace.err, rf"(?m)^ktrace: {target.pid} \(threads\) has ended with exit status 0$")

    def test_segv(self):
        self.crash("segv", signal.SIGSEGV)

    def test_abort(self):
        self.crash("abort", signal.SIGABRT)

    def killed(self, command, rounds):
        for _ in range(rounds):
            target = self.start(program("threads"))
            target.tell(command)
            target.truth("spinning")
            tracer = self.attach(target, "-r", "do_work", "--count", "--format", "json")
            os.kill(target.pid, signal.SIGKILL)
            trace = tracer.finish()
            self.assertEqual(trace.status, 0, trace)
            self.assertTrue(adds_up(trace.summary("do_work")), trace)
            self.assertRegex(trace.err, "ktrace: [0-9]+ hits? at ")
            self.assertEqual(target.process.wait(), -signal.SIGKILL)

    def test_killed(self):
        self.killed("spin 8", 10)

    def test_killed_in_a_call_for_us(self):
        """The first thread, with SIGTRAP blocked, has the process's action put back at each hit. Its end is reported after
        those of all others, which wait to be taken."""
        self.killed("blocked 3", 40)


class Fairness(LiveTest):
    """No thread is starved by the others. A wait for any of them prefers the first of the kernel's list: left to that,
    the last of eight gets hundreds of times what the first one gets."""

    def share(self, *placed):
        target = self.start(*placed, program("threads"))
        target.tell("spin 8")
        target.truth("spinning")
        trace = ktrace("attach", "-p", target.pid, "-k", "do_work", "--max-events", 40000)
        self.assertEqual(trace.status, 0, trace.err)
        hits = collections.Counter(re.findall(r"(?m)^\S+ threads/(\d+) do_work\+0x0$", trace.out))
        self.assertEqual(sum(hits.values()), 40000)
        self.assertEqual(len(hits), 8, hits)
        self.assertGreater(min(hits.values()), 40000 / 8 / 10, hits)
        self.check_untouched(target)
        target.tell("on")
        target.truth("calls")
        self.assertEqual(target.end(), 0)

    def test_of_eight_threads(self):
        self.share()

    def test_of_eight_threads_on_one_processor(self):
        self.share("taskset", "-c", str(min(os.sched_getaffinity(0))))


class Workers(LiveTest):
    """Threads of the kernel's in the process (io_uring): they cannot be traced and are none of the program's."""

    def test_are_left_alone(self):
        target = self.start(program("ring"), ready=None)
        if target.truth(r"^(ready|none.*)")[1] != "ready":
            self.skipTest(target.lines.seen[-1])
        workers = 1 if SLOW else 3  # the kernel makes four in all for each processor, and three more come
        target.tell(f"work {workers}")
        target.truth(f"workers {workers}")
        for options in (("-r", "do_work"), ("-k", "do_work", "--post"), ("-k", "do_work", "-w", "watched")):
            with self.subTest(options):
                tracer = self.attach(target, *options, "--count", "--format", "json")
                self.assertRegex(tracer.errors.seen[-1], r"\(ring\), 1 thread$")
                target.tell("work 1")  # one more, while it is traced
                target.truth(r"workers \d")
                workers += 1
                target.tell("call 100")
                target.truth("calls 100")
                trace = tracer.stop()
                self.assertEqual(trace.status, 0, trace)
                self.assertEqual(trace.summary("do_work")["hits"], 100, trace)
                if "-w" in options:
                    self.assertEqual(trace.summary("watched")["hits"], 100, trace)
                self.check_untouched(target)
        target.tell("open")
        self.assertEqual(target.truth(r"opened (\d+)")[1], str(workers))
        self.assertEqual(target.end(), 0)
