"""The end of a trace: by signals, by time, by number, by output that fails; and the target afterwards."""
import errno
import os
import re
import signal
import subprocess
import tempfile

from live import (KTRACE, LIMIT, Ktrace, LiveTest, adds_up, figure, ktrace, program, sleeps_in, state_of,
                  thread_folders, told_of, until, wait_until_let_go)
from survivor import PROBES, Survivor
from test_jumps import HAS_JUMPS

ROUNDS = int(os.environ.get("KTRACE_ROUNDS", "20"))  # attach and detach, again and again


class Detach(LiveTest):
    def busy(self, threads=4):
        target = self.start(program("threads"))
        target.tell(f"spin {threads}")
        target.truth("spinning")
        return target

    def check_runs_on(self, target):
        self.check_untouched(target)
        target.tell("on")
        self.assertGreater(int(target.truth(r"calls (\d+)")[1]), 0)
        self.assertEqual(target.end(), 0)

    def test_signals(self):
        for sig in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(sig=sig):
                target = self.busy()
                trace = self.attach(target, "-r", "do_work", "--count", "--format", "json").stop(sig)
                self.assertEqual(trace.status, 0, trace)
                self.assertTrue(adds_up(trace.summary("do_work")), trace)
                self.check_runs_on(target)

    def test_signals_idle(self):
        for sig in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(sig=sig):
                target = self.start(program("threads"))
                trace = self.attach(target, "-k", "do_work", "--duration", "1000s").stop(sig)
                self.assertEqual(trace.status, 0, trace)
                self.check_untouched(target)
                self.assertEqual(target.end(), 0)

    def test_signals_to_the_tracing_process(self):
        """It lets go before it ends by what would kill it; that of the limit of its processor time comes to it alone."""
        for sig in (signal.SIGXCPU, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGVTALRM, signal.SIGPROF,
                    signal.SIGPWR):
            with self.subTest(sig=sig):
                target = self.busy()
                tracer = self.attach(target, "-r", "do_work", "--count", "--format", "json")
                os.kill(tracer.tracing, sig)
                trace = tracer.finish()
                self.assertEqual(trace.status, 0, trace)
                self.assertTrue(adds_up(trace.summary("do_work")), trace)
                self.check_runs_on(target)

    def test_duration(self):
        target = self.busy()
        trace = self.attach(target, "-k", "do_work", "--count", "--duration", "100ms", "--format", "json").finish()
        self.assertEqual(trace.status, 0, trace)
        self.assertTrue(adds_up(trace.summary("do_work")), trace)
        self.check_runs_on(target)

    def test_duration_idle(self):
        target = self.start(program("threads"))
        trace = self.attach(target, "-k", "do_work", "--duration", "50ms").finish()
        self.assertEqual(trace.status, 0, trace)
        self.check_untouched(target)
        self.assertEqual(target.end(), 0)

    def test_max_events(self):
        for kind in ("-k", "-j", "-r"):
            with self.subTest(kind=kind):
                target = self.busy()
                trace = self.attach(target, kind, "do_work", "--max-events", "57", "--format", "json").finish()
                self.assertEqual((trace.status, len(trace.events())), (0, 57), trace)
                self.assertEqual(trace.summary("do_work")["events"], 57, trace.err)
                self.assertTrue(adds_up(trace.summary("do_work")), trace.err)
                self.check_runs_on(target)

    def test_from_a_script(self):
        """A shell's background jobs ignore SIGINT; `kill -INT $!` ends the trace nevertheless. SIGHUP stays ignored (nohup)."""
        for sig in ("INT", "TERM"):
            with self.subTest(sig), tempfile.TemporaryDirectory() as folder:
                target = self.busy()
                done = subprocess.run(
                    ["sh", "-c", f"""trap '' HUP; mkfifo told; "$0" attach -p {target.pid} -k do_work --count 2>told & exec 3<told
                     read -r line <&3; echo "$line"; kill -HUP $!; kill -{sig} $!; wait $!; echo "status $?"; cat <&3""", KTRACE],
                    cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=LIMIT, check=True)
                out = done.stdout.decode()
                self.assertRegex(out, r"^ktrace: Attached 1 probe to \d+ \(threads\)")
                self.assertIn("\nstatus 0\n", out)
                self.assertRegex(out, r"\nktrace: [0-9]+ hits? at [01] of 1 place in .*, none lost\n")
                self.check_runs_on(target)

    def test_process_ends(self):
        target = self.start(program("calls"), 4, 1000)
        tracer = self.attach(target, "-r", "do_work", "--count", "--format", "json")
        target.tell()
        target.truth("do_work")
        self.assertEqual(target.end(), 0)
        trace = tracer.finish()
        self.assertEqual((trace.status, trace.summary("do_work")["hits"]), (0, 4000), trace)

    def test_reader_goes_away(self):
        """`ktrace … | head -1`: no error, status 0."""
        target = self.busy()
        head = subprocess.Popen(["head", "-1"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        tracer = subprocess.Popen([KTRACE, "attach", "-p", str(target.pid), "-k", "do_work"], stdout=head.stdin,
                                  stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        head.stdin.close()
        with head.stdout:
            self.assertIn(b"do_work", head.stdout.read())
        head.wait(LIMIT)
        err = tracer.communicate(timeout=LIMIT)[1].decode()
        self.assertEqual(tracer.returncode, 0, err)
        self.assertNotIn("cannot write", err)
        self.assertRegex(err, r"\nktrace: [0-9]+ hits? at 1 of 1 place in .*: [0-9]+ events?, ")
        self.check_runs_on(target)

    def test_full_disk(self):
        target = self.busy()
        trace = self.attach(target, "-k", "do_work", "-o", "/dev/full").finish()
        self.assertEqual(trace.status, 1, trace)
        self.assertEqual(trace.err.count("No space left on device"), 1, trace)
        self.check_runs_on(target)

    def test_full_disk_at_the_end(self):
        """Where the only thing to write is the summary."""
        target = self.start(program("threads"))
        trace = self.attach(target, "-k", "do_work", "-o", "/dev/full", "--format", "json").stop()
        self.assertEqual(trace.status, 1, trace)
        self.assertEqual(trace.err.count("No space left on device"), 1, trace)
        self.check_untouched(target)
        self.assertEqual(target.end(), 0)

    def test_unwritable_file(self):
        target = self.start(program("threads"))
        trace = Ktrace("-p", target.pid, "-k", "do_work", "-o", "/nonexistent/file", wait=False).finish()
        self.assertEqual(trace.status, 1, trace)
        self.assertIn("/nonexistent/file", trace.err)
        self.check_untouched(target)
        self.assertEqual(target.end(), 0)

    def test_again_and_again(self):
        """What a second trace finds is what the first one found."""
        target = self.start(program("calls"), 2, 500)
        for _ in range(3):
            tracer = self.attach(target, "-r", "do_work", "--count", "--format", "json")
            target.tell()
            target.truth("do_work 1000")
            summary = tracer.stop().summary("do_work")
            self.assertEqual((summary["hits"], summary["events"]), (1000, 1000))
            self.check_untouched(target)
        self.assertEqual(target.end(), 0)

    def test_inside_a_call(self):
        """It sleeps in a function with a return probe."""
        target = self.start(program("sleeper"), "read")
        trace = self.attach(target, "-r", "main", "-k", "do_work").stop()
        self.assertEqual(trace.status, 0, trace)
        self.check_untouched(target)
        target.tell("wake")
        target.truth("woke 1 0")
        self.assertEqual(target.end(), 0)

    def test_beside_a_parent_in_vfork(self):
        """It has debug registers to lose and stops when its child has ended; others are not waited for
        one after the other."""
        target = self.start(program("threads"))
        tracer = self.attach(target, "-w", "stop")
        target.tell("vfork 8")
        target.truth("spinning 8")
        until(lambda: state_of(f"/proc/{target.pid}") == "D", "the parent waits in vfork")
        tracer.process.send_signal(signal.SIGINT)
        others = [folder for folder in thread_folders(target.pid) if not folder.endswith(f"/{target.pid}")]
        until(lambda: all(state_of(folder) == "t" for folder in others), "all others are stopped")
        target.tell("on")
        trace = tracer.finish()
        self.assertEqual(trace.status, 0, trace)
        self.check_untouched(target)
        self.assertGreater(int(target.truth(r"calls (\d+)")[1]), 0)
        self.assertEqual(target.end(), 0)

    def caught_by(self, target):
        """The signals that it has handlers for."""
        return re.search(r"SigCgt:\t(\w+)", told_of(f"/proc/{target.pid}", "status"))[1]

    def test_what_the_program_has_mapped_over_ours(self):
        """Its data stay, and what of ours is left is taken out without what is gone."""
        engines = ("trap", "auto") if HAS_JUMPS else ("trap",)
        for way, engine in ((way, engine) for way in ("over", "away") for engine in engines):
            with self.subTest((way, engine)):
                target = self.start(program("overmaps"))
                caught = self.caught_by(target)
                tracer = self.attach(target, "-k", "do_work", "--count", "--format", "json", "--engine", engine)
                if engine == "auto":
                    until(lambda: "[OPTIMIZED]" in ktrace("ctl", "-p", target.pid, "list").out, "there is a jump")
                target.tell("work 100")
                target.truth("^did 100")
                target.tell(way)
                self.assertGreater(int(target.truth(rf"^{way} (\d+)")[1]), 1, "ktrace has mapped nothing")
                trace = tracer.stop()
                self.assertEqual((trace.status, trace.summary("do_work")["hits"]), (0, 100), trace)
                self.assertIn("has mapped its own over it: that is left as it is", trace.err)
                self.check_untouched(target)
                self.assertEqual(self.caught_by(target), caught, "its action for SIGTRAP is not its own")
                target.tell("look")
                self.assertEqual(target.truth(r"^bad (\d+)")[1], "0", "its memory was unmapped or changed")
                target.tell("work 100")
                target.truth("^did 100")
                self.assertEqual(target.end(), 0)

    def test_what_the_program_has_mapped_over_our_page(self):
        """Nothing is written there any more: not for a signal that has come in the middle of a stepped instruction, either."""
        target = self.start(program("overmaps"))
        tracer = self.attach(target, "-k", "do_work", "--post", "--count", "--engine", "trap")
        target.tell("work 100")
        target.truth("^did 100")
        target.tell("page")
        self.assertEqual(target.truth(r"^page (\d+)")[1], "1")
        target.tell("ticks 500")
        target.truth("^tick 500")
        target.tell("look")
        self.assertEqual(target.truth(r"^bad (\d+)")[1], "0", "its memory was changed while it was traced")
        trace = tracer.stop()
        self.assertEqual(trace.status, 0, trace)
        self.check_untouched(target)
        target.tell("look")
        self.assertEqual(target.truth(r"^bad (\d+)")[1], "0", "its memory was changed at the end")
        self.assertEqual(target.end(), 0)

    def test_children_with_what_the_program_has_mapped_over_ours(self):
        """Its data stay in them, too; a child is followed if it has what the traps lead to."""
        for way, followed in (("page", True), ("over", False), ("away", False)):
            with self.subTest(way):
                target = self.start(program("overmaps"))
                tracer = self.attach(target, "-k", "do_work", "-f", "--count", "--format", "json", "--engine", "trap")
                target.tell(way)
                target.truth(rf"^{way} (\d+)")
                for _ in range(3):
                    target.tell("child")
                    self.assertEqual(target.truth(r"^chil (\d+)")[1], "0", "it died, or its memory was changed")
                trace = tracer.stop()
                self.assertEqual((trace.status, trace.summary("do_work")["hits"]), (0, 30 if followed else 0), trace)
                self.assertEqual(trace.err.count("not followed: it has memory of its own"), 0 if followed else 1, trace)
                self.assertEqual(target.end(), 0)

    def test_a_page_of_ours_that_the_program_has_changed(self):
        """No system call can be made by its code any more: that is said, and neither of both runs in a circle."""
        for way in ("plain", "endless"):
            with self.subTest(way):
                target = self.start(program("overmaps"))
                tracer = self.attach(target, "-k", "do_work", "--count", "--format", "json")
                target.tell(way)
                self.assertEqual(target.truth(rf"^{way[:4]} (\d+)")[1], "1")
                added = ktrace("ctl", "-p", target.pid, "add", "-r", "do_work", "--count")  # needs more room
                self.assertEqual(added.status, 1, added)
                self.assertIn("the process cannot run ktrace's code for system calls", added.err)
                target.tell("work 100")
                target.truth("^did 100")
                trace = tracer.stop()
                self.assertEqual((trace.status, trace.summary("do_work")["hits"]), (0, 100), trace)
                self.check_untouched(target, generates_code=way == "endless")  # nothing can unmap that page
                target.tell("work 100")
                target.truth("^did 100")
                self.assertEqual(target.end(), 0)

    def test_code_that_the_program_has_read_anew(self):
        """The traps went with its pages: nothing is hit any more, which is said, and nothing is written there."""
        target = self.start(program("overmaps"))
        tracer = self.attach(target, "-k", "do_work", "--count", "--format", "json")
        target.tell("work 100")
        target.truth("^did 100")
        target.tell("drop")
        target.truth("^drop")
        target.tell("work 100")
        target.truth("^did 100")
        trace = tracer.stop()
        self.assertEqual((trace.status, trace.summary("do_work")["hits"]), (0, 100), trace)
        self.assertIn("some of the code of process", trace.err)
        self.check_untouched(target)
        self.assertEqual(target.end(), 0)

    def streams(self, *closed):
        """ktrace with some of its standard streams closed."""
        def close():
            for fd in closed:
                os.close(fd)
        return close

    def test_closed_standard_input(self):
        target = self.busy()
        done = subprocess.run([KTRACE, "attach", "-p", str(target.pid), "-k", "do_work", "--max-events", "5"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=self.streams(0), timeout=LIMIT)
        self.assertEqual((done.returncode, done.stdout.count(b"do_work")), (0, 5), done.stderr)
        self.check_runs_on(target)

    def test_closed_standard_output(self):
        target = self.busy()
        done = subprocess.run([KTRACE, "attach", "-p", str(target.pid), "-k", "do_work", "--max-events", "5"],
                              stderr=subprocess.PIPE, preexec_fn=self.streams(1), timeout=LIMIT)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn(b"cannot write to standard output", done.stderr)
        self.check_runs_on(target)

    def test_output_file_with_all_closed(self):
        target = self.busy()
        path = f"/tmp/ktrace-test-{os.getpid()}.out"
        self.addCleanup(os.unlink, path)
        done = subprocess.run([KTRACE, "attach", "-p", str(target.pid), "-k", "do_work", "--max-events", "5", "-o", path],
                              preexec_fn=self.streams(0, 1, 2), timeout=LIMIT)
        self.assertEqual(done.returncode, 0)
        with open(path) as f:
            self.assertEqual(f.read().count(" do_work+0x0"), 5)
        self.check_runs_on(target)


class Anywhere(Survivor):
    """At random moments; after each of them nothing is left in the target."""

    def rounds(self, probes, *arguments):
        self.begin(*arguments)
        for _ in range(ROUNDS):
            tracer = self.attach(self.target, *probes, "--format", "json")
            self.wait_random(60)
            trace = tracer.stop()
            self.assertEqual(trace.status, 0, trace)
            for summary in trace.summaries():
                self.assertTrue(adds_up(summary), summary)
            self.check_untouched(self.target)
        self.check_end()
        figure(f"{ROUNDS} attaches and detaches at random moments survived by {' '.join(arguments)}")

    def test_anywhere(self):
        self.rounds(PROBES, "8")

    def test_anywhere_under_a_timer(self):
        self.rounds(PROBES, "8", "timer", "blocked", "2", "alone", "1")

    def test_anywhere_with_post_handlers(self):
        """Of functions that are traced by their returns, too."""
        self.rounds(("-r", "do_work", "-k", "leaf", "-k", "do_work", "-w", "noted", "--post", "--stats=arg0"), "8", "handler")

    def test_anywhere_while_attaching(self):
        """It gets a signal before it prints that all is armed, or soon after."""
        self.begin("8", "timer")
        for _ in range(ROUNDS):
            tracer = self.attach(self.target, *PROBES, wait=False)
            self.wait_random(300)
            trace = tracer.stop()
            self.assertIn(trace.status, (0, -signal.SIGINT), trace)
            self.check_untouched(self.target)
        self.check_end()
        figure(f"{ROUNDS} attaches, interrupted at random moments, survived")

    def test_anywhere_single_threaded(self):
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
        figure(f"{ROUNDS} attaches that end with an event survived")
