"""Load: what ktrace costs and takes is bounded, and what is not shown is counted."""
import json
import os
import re
import resource
import select
import signal
import subprocess
import tempfile
import unittest

from live import (KTRACE, LIMIT, NUMBERS, LiveTest, Lines, adds_up, children_of, figure, folders_of, has_sanitizers,
                  ktrace, program, sleeps_in, until)
from test_ctl import Ctl

HITS = int(os.environ.get("KTRACE_LOAD_HITS", "100000"))
THREADS, ROUNDS = 64, 5
MIB = 1 << 20
OPENAT = NUMBERS["openat"]


def resident(pid):
    """Bytes of memory that the process has."""
    with open(f"/proc/{pid}/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Threads(LiveTest):
    def test_many_threads_and_probes(self):
        """64 threads, eight probes: every hit is counted, and the memory of ktrace does not grow with them."""
        calls = max(1, HITS // (5 * THREADS * ROUNDS))
        target = self.start(program("calls"), THREADS, calls)
        tracer = self.attach(target, "-k", "do_work", "-k", "do_work+4", "-j", "do_work", "-r", "do_work", "-k",
                             "do_work", "-k", "worker", "-j", "worker", "-r", "worker", "--count", "--format", "json")
        after_first, most = 0, 0
        for _ in range(ROUNDS):
            target.tell()
            while not select.select([target.lines.fd], [], [], 0.05)[0]:
                most = max(most, resident(tracer.tracing))
            self.assertEqual(target.truth(r"do_work (\d+) sum")[1], str(calls * THREADS))
            most = max(most, resident(tracer.tracing))
            if not after_first:
                after_first, most = most, 0
        trace = tracer.stop()
        self.assertEqual(trace.status, 0, trace)
        hits = [summary["hits"] for summary in trace.summaries()]
        self.assertEqual(hits, [calls * THREADS * ROUNDS] * 5 + [THREADS * ROUNDS] * 3)
        for summary in trace.summaries():
            self.assertTrue(adds_up(summary), summary)
            self.assertEqual(summary["events"], summary["hits"])
        # Sanitizers keep what was freed for a while.
        self.assertLess(most - after_first, (64 if has_sanitizers() else 2) * MIB)
        self.check_untouched(target)
        figure(f"{sum(hits)} hits of {THREADS} threads at 8 probes, all counted; resident after a fifth of them "
               f"{after_first / MIB:.1f} MiB, at most {most / MIB:.1f} MiB later")


class ManyThreads(LiveTest):
    def cost(self, threads):
        """Processor time that attach and detach take, in seconds."""
        target = self.start(program("crowd"), threads)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        tracer = self.attach(target, "-k", "do_work", "--count", "--format", "json")
        target.tell()
        target.truth(f"do_work {3 * threads}$")
        trace = tracer.stop()
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.assertEqual(trace.status, 0, trace)
        self.assertEqual(trace.summary("do_work")["hits"], 1)
        self.check_untouched(target)
        self.assertEqual(target.end(), 0)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    def test_each_costs_the_same(self):
        """Not by the square of their number: some files of /proc sum up all threads of a process when they are read."""
        few, many = self.cost(1000), self.cost(4000)
        figure(f"attach and detach: {few:.2f} s of processor time with 1,000 threads that sleep, {many:.2f} s with 4,000")
        self.assertLess(many, 10 * few)


class PipeReader(LiveTest):
    def begin(self, calls, *options):
        target = self.start(program("calls"), 4, calls)
        tracer = subprocess.Popen([KTRACE, "attach", "-p", str(target.pid), "--format", "json", *options],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        self.addCleanup(tracer.stderr.close)
        self.addCleanup(tracer.stdout.close)
        self.addCleanup(tracer.wait)
        self.addCleanup(tracer.kill)
        self.errors = Lines(tracer.stderr, "ktrace")
        self.errors.until("Attached")
        return target, tracer


class SlowReader(PipeReader):
    def test_it_holds_nobody_up(self):
        """There is no reader: the target comes to its end, ktrace's memory is bounded, and the counts show what was dropped."""
        calls = 25000
        target, tracer = self.begin(calls, "-k", "do_work", "--post", "--print", "arg0, buf(arg1, 32), buf(arg1, 31)")
        target.tell()
        self.assertEqual(target.truth(r"do_work (\d+) sum")[1], str(4 * calls))
        with open(f"/proc/{tracer.pid}/task/{tracer.pid}/children") as children:
            self.assertLess(resident(int(children.read().split()[0])), 150 * MIB)
        self.errors.until("Events are dropped: they come faster than the output is read")
        tracer.send_signal(signal.SIGINT)
        out, _ = tracer.communicate(timeout=LIMIT)
        self.assertEqual(tracer.returncode, 0)
        objects = [json.loads(line) for line in out.splitlines()]
        summary = objects[-1]
        self.assertTrue(adds_up(summary), summary)
        self.assertEqual(summary["hits"], 4 * calls)
        self.assertGreater(summary["dropped"], 0)
        self.assertEqual(summary["events"], sum(o["type"] == "pre" for o in objects))
        self.assertEqual(summary["events"], sum(o["type"] == "post" for o in objects))
        self.check_untouched(target)
        self.assertEqual(target.end(), 0)

    def test_a_second_signal_ends_the_wait_for_it(self):
        target, tracer = self.begin(2000, "-k", "do_work")
        target.tell()
        target.truth("do_work 8000 sum")
        tracer.send_signal(signal.SIGINT)
        # It has let go, and waits for its reader.
        target.tell()
        target.truth("do_work 8000 sum")
        while tracer.poll() is None:
            self.assertEqual(target.process.poll(), None)
            tracer.send_signal(signal.SIGINT)
            select.select([], [], [], 0.02)
        self.assertEqual(tracer.returncode, 0)
        self.check_untouched(target)
        self.assertEqual(target.end(), 0)


class LostOutput(PipeReader):
    def counts(self, err):
        """By the summary: hits, events, dropped."""
        found = re.search(r"ktrace: (\d+) hits at 1 of 1 place in .*: (\d+) events, (\d+) lost\n"
                          r"ktrace: do_work \[calls\]: \3 dropped \(not written\)\n", err)
        return [int(n) for n in found.groups()]

    def check_counts(self, target, err, shown):
        hits, events, dropped = self.counts(err)
        self.assertEqual(events, shown, err)
        self.assertEqual(events + dropped, hits, err)
        self.assertGreater(dropped, 0, err)
        self.check_untouched(target)
        self.assertEqual(target.end(), 0)

    def test_full_disk(self):
        """The file takes 20,000 bytes: events count up to the last one that is in it as a whole."""
        target = self.start(program("calls"), 2, 20000)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        file = os.path.join(folder.name, "out")
        tracer = self.attach(target, "-k", "do_work", "--post", "--format", "json", "-o", file)
        resource.prlimit(tracer.tracing, resource.RLIMIT_FSIZE, (20000, 20000))
        target.tell()
        trace = tracer.finish()
        self.assertEqual(trace.status, 1, trace)
        self.assertIn("File too large", trace.err)
        with open(file, "rb") as written:
            whole = written.read().splitlines(keepends=True)
        self.check_counts(target, trace.err, sum(b'"type":"pre"' in line and line.endswith(b"\n") for line in whole))

    def test_nobody_opens_a_fifo(self):
        """Ctrl-C ends the wait for a reader, and is no error."""
        target = self.start(program("calls"), 1, 10)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        fifo = os.path.join(folder.name, "fifo")
        os.mkfifo(fifo)
        tracer = self.attach(target, "-k", "do_work", "-o", fifo, wait=False)
        until(lambda: any(sleeps_in(folder) == OPENAT for pid in children_of(tracer.pid) for folder in folders_of(pid)),
              "ktrace opens the FIFO")
        trace = tracer.stop()
        self.assertEqual(trace.status, 0, trace)
        self.assertEqual(trace.err.strip(), f"ktrace: interrupted before a reader has opened the output file {fifo}")
        self.check_untouched(target)
        self.assertEqual(target.end(), 0)

    def test_nobody_waits_for_the_reader(self):
        """A second signal ends the wait for a reader that does not read: it gets what the pipe holds."""
        target, tracer = self.begin(2000, "-j", "do_work")
        target.tell()
        target.truth("do_work 8000 sum")
        while tracer.poll() is None:
            tracer.send_signal(signal.SIGINT)
            select.select([], [], [], 0.02)
        self.assertEqual(tracer.returncode, 0)
        out, err = tracer.communicate(timeout=LIMIT)
        self.check_counts(target, err.decode(), out.count(b"\n"))


class MaxOverhead(Ctl):
    def test_what_costs_too_much_is_disarmed(self):
        """do_work is called all the time, worker once a thread: one goes, the other stays."""
        self.begin("--engine", "trap", "-k", "do_work", "-r", "worker", "--count", "--max-overhead", "20%", threads=2, calls=3000000)
        calls = self.work()
        notice = self.tracer.errors.until(r"do_work\+0x0 \[calls\] k is disarmed: thread (\d+) \(calls\) spent (\d+)\.\d% of a "
                                          r"second stopped for it, and \d+\.\d% for all probes, more than the 20% of --max-overhead; "
                                          r"ktrace ctl -p (\d+) enable 1 arms it again")
        self.assertGreaterEqual(int(notice[2]), 20)
        self.assertEqual(int(notice[3]), self.target.pid)
        lines = self.ask("list").splitlines()
        self.assertEqual([line.endswith("[DISABLED]") for line in lines], [True, False], lines)
        hits = self.hits()
        self.assertLess(hits[1], calls)
        self.assertEqual(hits[2], 2)
        self.ask("enable", "1")
        self.assertNotIn("DISABLED", self.ask("list"))
        self.work()
        self.tracer.errors.until("is disarmed")
        self.assertGreater(self.hits()[1], hits[1])
        self.assertEqual(self.hits()[2], 4)
        self.finish()

    def test_the_thread_has_ended_meanwhile(self):
        """The notice names a process by which ktrace ctl finds the trace."""
        target = self.start(program("threads"))
        tracer = self.attach(target, "--engine", "trap", "-k", "do_work", "--count", "--max-overhead", "0.001%")
        while not tracer.errors.told("is disarmed"):
            target.tell("short 500")
            target.truth("calls")
        tracer.errors.until(rf"; ktrace ctl -p {target.pid} enable 1 arms it again")
        self.assertEqual(tracer.stop().status, 0)
        self.check_untouched(target)
        self.assertEqual(target.end(), 0)

    def test_run(self):
        trace = ktrace("run", "--engine", "trap", "-k", "do_work", "--count", "--max-overhead", "0.5", "--", program("processes"), "work",
                       "1000000")
        self.assertEqual(trace.status, 1, trace)  # it finds that it is traced
        self.assertIn("more than the 0.5% of --max-overhead", trace.err)

    def test_refused(self):
        for value in ("0", "-1%", "101%", "much", "20%%", ""):
            trace = ktrace("attach", "-p", "1", "-k", "main", "--max-overhead", value)
            self.assertEqual(trace.status, 2, trace)
            self.assertIn("--max-overhead needs a percentage above 0 and up to 100", trace.err)


if __name__ == "__main__":
    unittest.main()
