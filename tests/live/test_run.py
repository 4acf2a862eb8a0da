"""`ktrace run`: the program's own exit status, streams, signals and environment; probes from its first instruction on."""
import json
import os
import re
import signal
import stat
import subprocess
import sys
import tempfile

from live import KTRACE, LIMIT, NUMBERS, LiveTest, Lines, adds_up, children_of, ktrace, program, sleeps_in, until
import workshop

ELSE = ["-k", "libc:getppid"]  # a probe that is placed and hardly hit


def run(*arguments, **options):
    return ktrace("run", *arguments, **options)


class Status(LiveTest):
    def test_of_the_program(self):
        for status in (0, 1, 2, 7, 125, 255):
            trace = run(*ELSE, "--", "/bin/sh", "-c", f"exit {status}")
            self.assertEqual(trace.status, status, trace)

    def test_of_a_signal(self):
        for sig in (signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV, signal.SIGTRAP):
            trace = run(*ELSE, "--", "/bin/sh", "-c", f"kill -{int(sig)} $$")
            self.assertEqual(trace.status, 128 + sig, trace)
            self.assertRegex(trace.err, rf"(?m)^ktrace: \d+ \(sh\) was killed by {sig.name}$")
        trace = run("-q", *ELSE, "--", "/bin/sh", "-c", "kill $$")
        self.assertEqual((trace.status, trace.err), (128 + signal.SIGTERM, ""), trace)

    def test_of_a_crash(self):
        trace = run("-r", "do_work", "--count", "--", "/bin/sh", "-c", "true")
        self.assertEqual(trace.status, 125, trace)
        with tempfile.TemporaryFile() as commands:
            commands.write(b"segv 10\n")
            commands.seek(0)
            trace = run("-r", "do_work", "--count", "--", program("threads"), stdin=commands)
        self.assertEqual(trace.status, 128 + signal.SIGSEGV, trace)
        self.assertIn("ktrace: 10 hits at ", trace.err)

    def test_not_found(self):
        for name in ("/nonexistent/program", "no-such-program-anywhere"):
            trace = run(*ELSE, "--", name)
            self.assertEqual(trace.status, 127, trace)
            self.assertIn(name, trace.err)
            self.assertEqual(trace.err.count("\n"), 1, trace)

    def test_not_runnable(self):
        with tempfile.TemporaryDirectory() as folder:
            plain = os.path.join(folder, "plain")
            with open(plain, "w") as f:
                f.write("#!/bin/sh\n")
            orphan = os.path.join(folder, "orphan")
            with open(orphan, "w") as f:
                f.write("#!/nonexistent/interpreter\n")
            os.chmod(orphan, 0o755)
            for path in (plain, folder, orphan):
                trace = run(*ELSE, "--", path)
                self.assertEqual(trace.status, 126, trace)
                self.assertIn(path, trace.err)

    def test_script_without_interpreter_line(self):
        with tempfile.TemporaryDirectory() as folder:
            script = os.path.join(folder, "script")
            with open(script, "w") as f:
                f.write("exit 9\n")
            os.chmod(script, 0o755)
            self.assertEqual(run(*ELSE, "--", script).status, 9)

    def test_bad_usage(self):
        for arguments in (["-k", "main"], ["--", "true"], ["-k", "main", "--"], ["-k", "main+", "--", "true"],
                          ["--nonsense", "--", "true"], ["-k", "main", "--if", "1 +", "--", "true"]):
            trace = run(*arguments)
            self.assertEqual(trace.status, 2, (arguments, trace))

    def test_probe_without_place(self):
        """The program never runs its main, nor a constructor."""
        for spec in ("no_such_function", "do_work+1", "early+1"):
            trace = run("-k", "early", "-k", spec, "--", program("processes"), "work", "5")
            self.assertEqual(trace.status, 125, trace)
            self.assertEqual(trace.out, "")
            self.assertIn(spec.split("+")[0], trace.err)

    def test_probe_without_place_in_a_script(self):
        """It is mostly meant for what the script starts; with its module's name it is found there."""
        with tempfile.TemporaryDirectory() as folder:
            for first, interpreter in (("#!/bin/sh\n", "sh"), ("#!/usr/bin/env sh\n", "env"), ("", "sh")):
                script = os.path.join(folder, "wrapper")
                with open(script, "w") as f:
                    f.write(f"{first}exec {program('processes')} work 5\n")
                os.chmod(script, 0o755)
                trace = run("-k", "do_work", "--", script)
                self.assertEqual(trace.status, 125, trace)
                self.assertIn(f"wrapper is a script, run by {interpreter}: for what that starts name the module", trace.err)
                trace = run("-k", "processes:do_work", "--count", "--", script)
                self.assertIn("ktrace: 5 hits at ", trace.err)
        trace = run("-k", "no_such_function", "--", program("processes"), "work", "5")
        self.assertNotIn("script", trace.err)

    def test_missing_is_allowed(self):
        trace = run("-k", "no_such_function", "-k", "do_work", "--allow-missing", "--count", "--",
                    program("processes"), "work", "5")
        self.assertIn("early 1 do_work 5", trace.out)
        self.assertIn("ktrace: 5 hits at ", trace.err)
        self.assertIn("no_such_function", trace.err)

    def test_nothing_is_left(self):
        """Unless a program that is executed later may have it, the program does not run."""
        missing = ("--allow-missing", "-k", "no_such_function", "-j", "no_such_other")
        trace = run(*missing, "--", program("processes"), "work", "5")
        self.assertEqual((trace.status, trace.out), (125, ""), trace)
        self.assertRegex(trace.err, "(?s)^ktrace: no function no_such_function .*\nktrace: no function no_such_other .*"
                                    "\nktrace: no probe is left: none of them can be placed; [^\n]*\n$")
        self.assertEqual(run("-f", *missing, "--", "/bin/true").status, 0)

    def test_module_never_loaded(self):
        trace = run("-k", "libnothing.so.7:function", "--", "/bin/true")
        self.assertEqual(trace.status, 125, trace)
        self.assertIn("libnothing.so.7", trace.err)
        self.assertEqual(run("-k", "libnothing.so.7:function", "--allow-missing", "--", "/bin/true").status, 0)

    def test_output_fails(self):
        trace = run("-k", "do_work", "-o", "/dev/full", "--", program("processes"), "work", "5")
        self.assertEqual(trace.status, 125, trace)
        self.assertIn("early 1 do_work 5", trace.out)
        self.assertEqual(trace.err.count("No space left on device"), 1, trace)


class World(LiveTest):
    """What the program sees of the world is what it would see without ktrace."""

    def test_limits_of_the_program(self):
        """What ktrace may allocate is bounded; what it starts has the limits that it would have without."""
        script = "import resource; print(resource.getrlimit(resource.RLIMIT_DATA))"
        alone = subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, check=True).stdout
        trace = run(*ELSE, "--count", "--", sys.executable, "-c", script)
        self.assertIn(alone, trace.out, trace)

    def test_streams(self):
        with tempfile.TemporaryFile() as text:
            text.write(b"one\ntwo\n")
            text.seek(0)
            with tempfile.NamedTemporaryFile() as out:
                trace = run(*ELSE, "-o", out.name, "--", "/bin/cat", "-", "--", "/dev/null", stdin=text)
        self.assertEqual((trace.status, trace.out), (0, "one\ntwo\n"), trace)

    def compare(self, *command, **options):
        plain = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=LIMIT, **options)
        traced = subprocess.run([KTRACE, "run", "-q", "-r", "libc:getppid", "-o", "/dev/null", "--", *command],
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=LIMIT, **options)
        shown = self.without_handler(traced.stdout)
        self.assertEqual((traced.returncode, shown), (plain.returncode, plain.stdout))
        return plain

    def without_handler(self, text):
        """SIGTRAP is caught for as long as ktrace traces, and that shows."""
        def clear(match):
            return b"SigCgt:\t%016x" % (int(match[1], 16) & ~(1 << signal.SIGTRAP - 1))
        return re.sub(rb"SigCgt:\t([0-9a-f]+)", clear, text)

    def test_descriptors(self):
        self.compare("/bin/ls", "/proc/self/fd", stdin=subprocess.DEVNULL)

    def test_signals_and_processors(self):
        fields = "SigBlk*|SigIgn*|SigCgt*|ShdPnd*|Cpus_allowed*|NoNewPrivs*|Seccomp*|Cap*"
        show = f'while read -r line; do case $line in {fields}) echo "$line" ;; esac; done </proc/self/status'
        for before in (None, lambda: signal.signal(signal.SIGPIPE, signal.SIG_IGN),
                       lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
                       lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
                       lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN),
                       lambda: signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGUSR1})):
            self.compare("/bin/sh", "-c", show, preexec_fn=before, restore_signals=False)

    def test_environment_and_limits(self):
        self.compare("/bin/sh", "-c", "env | sort | grep -v '^_='; ulimit -a; umask; pwd; cat /proc/self/oom_score_adj")

    def test_closed_streams(self):
        for closed in ((0,), (1,), (0, 1, 2)):
            def close(fds=closed):
                for fd in fds:
                    os.close(fd)
            with tempfile.NamedTemporaryFile() as told:
                done = subprocess.run([KTRACE, "run", "-q", *ELSE, "-o", "/dev/null", "--", "/bin/sh", "-c",
                                       f"for f in 0 1 2; do test -e /proc/self/fd/$f || echo $f; done > {told.name}"],
                                      preexec_fn=close, timeout=LIMIT)
                self.assertEqual(done.returncode, 0)
                seen = [int(n) for n in told.read().split()]
            # The shell's own redirection takes descriptor 1.
            self.assertEqual(seen, [fd for fd in closed if fd != 1])


class Signals(LiveTest):
    def start_waiting(self, *options, under=()):
        """A shell that reports signals and waits for a line, or for the end of this process; ktrace and it in a process group of their own."""
        script = "trap 'echo int' INT; trap 'echo quit' QUIT; trap 'echo term; exit 5' TERM; echo ready; until read line; do [ $? -gt 128 ] || exit 7; done; exit 6"
        process = subprocess.Popen([KTRACE, "run", *ELSE, *options, "--", *under, "/bin/bash", "-c", script],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   process_group=0)
        self.addCleanup(process.wait)
        self.addCleanup(lambda: process.poll() is None and os.killpg(process.pid, signal.SIGKILL))
        for stream in (process.stdin, process.stdout, process.stderr):
            self.addCleanup(stream.close)
        lines = Lines(process.stdout, "the shell")
        lines.until("ready")
        return process, lines

    def wait_for_reading(self, process):
        """The shell waits for a line: it would not look for a signal that comes a moment before."""
        def is_reading():
            family = [child for parent in (process.pid, *children_of(process.pid)) for child in children_of(parent)]
            return any(sleeps_in(f"/proc/{child}") == NUMBERS["read"] for child in family)

        until(is_reading, "the shell waits for a line")

    def finish(self, process, line=b"go\n"):
        process.stdin.write(line)
        process.stdin.flush()
        return process.wait(LIMIT)

    def test_interrupt_belongs_to_the_program(self):
        process, lines = self.start_waiting()
        for sent, told in ((signal.SIGINT, "int"), (signal.SIGQUIT, "quit")) * 3:
            self.wait_for_reading(process)
            os.killpg(process.pid, sent)
            lines.until(told)
        self.assertEqual(self.finish(process), 6)

    def test_interrupt_behind_the_end_of_tracing(self):
        process, lines = self.start_waiting("--duration", "10ms")
        Lines(process.stderr, "ktrace").until("^ktrace: [0-9]+ hits? at ")
        for sent, told in ((signal.SIGINT, "int"), (signal.SIGQUIT, "quit")):
            self.wait_for_reading(process)
            os.killpg(process.pid, sent)
            lines.until(told)
        self.assertEqual(self.finish(process), 6)

    def test_termination_is_passed_on(self):
        for options in ((), ("--duration", "10ms")):
            process, lines = self.start_waiting(*options)
            if options:
                Lines(process.stderr, "ktrace").until("^ktrace: [0-9]+ hits? at ")
            process.send_signal(signal.SIGTERM)
            lines.until("term")
            self.assertEqual(process.wait(LIMIT), 5)

    def test_the_end_of_tracing_is_no_death_of_the_parent(self):
        """Who has asked for a signal when its parent dies (prctl(2), PR_SET_PDEATHSIG) gets none."""
        process, lines = self.start_waiting("--duration", "10ms", under=["setpriv", "--pdeathsig", "USR1"])
        Lines(process.stderr, "ktrace").until("^ktrace: [0-9]+ hits? at ")
        with open(f"/proc/{process.pid}/task/{process.pid}/children") as f:
            tracing = int(f.read())
        until(lambda: len(os.listdir(f"/proc/{tracing}/task")) == 1, "the tracing thread has ended")
        self.assertEqual(self.finish(process), 6)

    def test_duration(self):
        """Tracing ends, the program goes on, and its status is returned."""
        process = subprocess.Popen([KTRACE, "run", "-k", "do_work", "--count", "--duration", "20ms", "--",
                                    program("calls"), "2", "1000"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        with process.stdin, process.stdout, process.stderr:
            self.addCleanup(process.kill)
            lines = Lines(process.stdout, "calls")
            pid = int(lines.until(r"ready (\d+)")[1])
            Lines(process.stderr, "ktrace").until("^ktrace: [0-9]+ hits? at ")

            def free():
                with open(f"/proc/{pid}/status") as f:
                    return "TracerPid:\t0" in f.read()
            until(free, "the program is let go")
            process.stdin.write(b"go\n")
            process.stdin.flush()
            lines.until("do_work 2000 sum")
            process.stdin.close()
            self.assertEqual(process.wait(LIMIT), 0)

    def test_duration_begins_with_the_probes(self):
        """What the loader takes before it has mapped the program's libraries is no part of it."""
        auditor = workshop.build("libslow.so", "-shared", "-fPIC", sources=["libraries/slow_auditor.c"])
        trace = run("-k", "do_work", "--count", "--duration", "20ms", "--", program("processes"), "work", "5",
                    env=dict(os.environ, LD_AUDIT=auditor, SLOW=os.path.realpath(program("processes"))))
        self.assertEqual(trace.status, 0, trace)
        self.assertIn("do_work 5", trace.out)
        self.assertRegex(trace.err, r"Attached 1 probe to .*\n(.*\n)*ktrace: \d+ hits at ", trace)

    def test_max_events(self):
        with tempfile.TemporaryFile() as lines:
            lines.write(b"go\n")
            lines.seek(0)
            trace = run("-k", "do_work", "--max-events", "3", "--", program("calls"), "2", "500", stdin=lines)
        self.assertEqual((trace.status, len(trace.payloads)), (0, 3), trace)
        self.assertIn("do_work 1000 sum", trace.out)


class Programs(LiveTest):
    def count(self, name, *options):
        with tempfile.TemporaryFile() as lines:
            lines.write(b"go\n")
            lines.seek(0)
            trace = run(*options, "do_work", "--count", "--format", "json", "--", program(name), "4", "500",
                        stdin=lines)
        self.assertEqual(trace.status, 0, trace)
        objects = [json.loads(line) for line in trace.lines if line.startswith("{")]
        self.assertEqual(objects[-1]["hits"], 2000, trace)
        self.assertTrue(adds_up(objects[-1]))
        self.assertIn("do_work 2000 sum", trace.out)

    def test_dynamic(self):
        self.count("calls", "-r")

    def test_bound_at_start(self):
        self.count("calls_now", "-r")

    def test_static(self):
        self.count("calls_static", "-r")

    def test_static_pie(self):
        self.count("calls_static-pie", "-r")

    def test_attach_to_static(self):
        for name in ("calls_static", "calls_static-pie", "calls_now"):
            target = self.start(program(name), 2, 300)
            tracer = self.attach(target, "-r", "do_work", "--count", "--format", "json")
            target.tell()
            target.truth("do_work 600")
            trace = tracer.stop()
            self.assertEqual((trace.status, trace.summary("do_work")["events"]), (0, 600), trace)
            self.check_untouched(target)
            self.assertEqual(target.end(), 0)

    def test_constructors_main_and_libraries(self):
        trace = run("-k", "early", "-r", "main", "-k", "libc:readlink", "-r", "do_work", "-q", "--",
                    program("processes"), "work", "3")
        order = [payload.split("+")[0].split("(")[0].split(" ")[0] for payload in trace.payloads]
        self.assertEqual(order[0], "early", trace)
        self.assertEqual(order.count("do_work"), 3, trace)
        self.assertEqual(order[1], "readlink", trace)
        self.assertEqual(order[-1], "main", trace)

    def test_exec_of_another_program(self):
        """The same process becomes another program, with its libraries elsewhere."""
        trace = run("-k", "processes:do_work", "--count", "--", "/bin/sh", "-c", f"exec {program('processes')} work 8")
        self.assertIn("ktrace: 8 hits at ", trace.err)

    def test_everything_behind_the_separator_is_the_programs(self):
        trace = run(*ELSE, "-q", "--", "/bin/echo", "-k", "x", "--", "--help", "-f")
        self.assertEqual((trace.status, trace.out), (0, "-k x -- --help -f\n"), trace)

    def test_set_user_id_bit_of_no_use(self):
        """A program with the set-user-id bit is a program like others to root."""
        self.assertTrue(os.stat("/bin/su").st_mode & stat.S_ISUID)
        self.assertEqual(run(*ELSE, "--", "/bin/su", "--version").status, 0)
