"""Bad input: one clear sentence, the exit status of the contract, and a target that is as it was."""
import os
import resource
import shutil
import signal
import struct
import subprocess
import tempfile

import workshop
from live import KTRACE, LIMIT, RESULT, Ktrace, LiveTest, Target, has_sanitizers, ktrace, program

NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]


def elf32():
    """A 32-bit program by hand: prints "ready", waits for a byte, and leaves with status 7."""
    base, start = 0x08048000, 52 + 32

    def call(number, first, second=0, third=0):
        return b"".join(op + struct.pack("<I", value) for op, value in
                        ((b"\xb8", number), (b"\xbb", first), (b"\xb9", second), (b"\xba", third))) + b"\xcd\x80"

    def code(text):
        return call(4, 1, text, 6) + call(3, 0, text, 1) + call(1, 7)

    body = code(base + start + len(code(0))) + b"ready\n"
    header = b"\x7fELF\x01\x01\x01" + bytes(9) + struct.pack("<HHIIIIIHHHHHH", 2, 3, 1, base + start, 52, 0, 0, 52, 32, 1,
                                                             0, 0, 0)
    segment = struct.pack("<IIIIIIII", 1, 0, base, base, start + len(body), start + len(body), 7, 4096)
    return header + segment + body


class Errors(LiveTest):
    def refused(self, *arguments, status=1, command="attach", says=(), prefix=(), lines=1):
        done = subprocess.run([*prefix, KTRACE, command, *map(str, arguments)], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, timeout=LIMIT)
        err = done.stderr.decode()
        self.assertEqual(done.returncode, status, err)
        self.assertEqual(done.stdout, b"")
        self.assertTrue(err.startswith("ktrace: "), err)
        self.assertEqual(err.count("\n"), lines, err)
        for text in says:
            self.assertIn(text, err)
        return err

    def check_works(self, target):
        self.check_untouched(target)
        target.tell("short 10")
        target.truth("calls 20")
        self.assertEqual(target.end(), 0)

    def test_shared_code(self):
        """A trap in shared memory would kill processes that are not traced."""
        target = self.start(program("shared_code"))
        address = target.lines.seen[-1].split()[2]
        self.refused("-p", target.pid, "-k", address, says=["is shared (MAP_SHARED)"], lines=2)
        for _ in range(2):
            target.tell()
            self.assertEqual(target.truth(r"calls 10 child (\d+)")[1], "0")
        self.assertEqual(target.end(), 0)

    def test_no_process(self):
        self.refused("-p", 4194303, "-k", "main", says=["no process 4194303"])

    def test_no_pid(self):
        for pid in ("0", "-5", "", "99999999999999999999"):
            self.refused("-p", pid, "-k", "main", status=2)
        self.refused("-p", "1x", "-k", "main", says=["no process is called 1x"])

    def test_zombie(self):
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
        self.addCleanup(os.waitpid, child, 0)
        self.refused("-p", child, "-k", "main", says=["zombie"])
        self.refused("-p", child, command="repair", says=["zombie"])

    def test_kernel_thread(self):
        with open("/proc/2/comm") as f:
            if f.read() != "kthreadd\n":
                self.skipTest("no kernel thread is to be seen here")
        self.refused("-p", 2, "-k", "main", says=["process 2 (kthreadd)", "kernel"])

    def test_itself(self):
        done = subprocess.run(["/bin/sh", "-c", f"exec {KTRACE} attach -p $$ -k main"], stderr=subprocess.PIPE,
                              stdin=subprocess.DEVNULL, timeout=LIMIT)
        self.assertEqual((done.returncode, done.stderr), (1, b"ktrace: ktrace cannot trace itself\n"))

    def test_traced_already(self):
        target = self.start(program("threads"))
        tracer = self.attach(target, "-k", "do_work", "--count", "--format", "json")
        self.refused("-p", target.pid, "-k", "do_work", says=["traced already, by ktrace ("])
        target.tell("short 10")
        target.truth("calls 20")
        self.assertEqual(tracer.stop().summary("do_work")["hits"], 20)
        self.check_works(target)

    def start_32_bit(self):
        file = tempfile.NamedTemporaryFile(delete=False)
        self.addCleanup(os.unlink, file.name)
        with file:
            file.write(elf32())
        os.chmod(file.name, 0o755)
        try:
            target = Target(file.name)
        except (OSError, EOFError):
            self.skipTest("32-bit programs do not run here")
        self.addCleanup(target.kill)
        return file.name, target

    def test_32_bit(self):
        path, target = self.start_32_bit()
        self.refused("-p", target.pid, "-k", "main", says=["32-bit"])
        target.tell()
        self.assertEqual(target.process.wait(LIMIT), 7)
        self.refused("-k", "main", "--", path, command="run", status=125, says=["32-bit"])

    def test_becomes_32_bit(self):
        """A traced program that becomes one runs on untraced."""
        path, target = self.start_32_bit()
        target.kill()
        trace = ktrace("run", "-k", "libc:write", "-f", "-q", "-o", "/dev/null", "--", "/bin/sh", "-c",
                       f"echo x | {path}; echo $?; exec {path} < /dev/null")
        self.assertEqual((trace.status, trace.out), (7, "ready\n7\nready\n"), trace)

    def test_another_user(self):
        target = self.start(program("threads"))
        self.refused("-p", target.pid, "-k", "do_work", prefix=NOBODY,
                     says=[str(target.pid), "another user (uid 0)", "as root"])
        self.check_works(target)

    def test_own_process_without_privileges(self):
        """What users are for: their own processes, without root."""
        target = self.start(*NOBODY, program("threads"))
        tracer = subprocess.Popen([*NOBODY, KTRACE, "attach", "-p", str(target.pid), "-r", "do_work"],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        line = tracer.stderr.readline()
        self.assertIn(b"Attached 1 probe", line)
        target.tell("short 10")
        target.truth("calls 20")
        tracer.send_signal(signal.SIGINT)
        out, err = tracer.communicate(timeout=LIMIT)
        self.assertEqual((tracer.returncode, out.count(b") returned ")), (0, 20), err)
        self.check_works(target)

    def test_own_program_without_privileges(self):
        done = subprocess.run([*NOBODY, KTRACE, "run", "-k", "do_work", "--", program("processes"), "work", "5"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, timeout=LIMIT)
        self.assertEqual(done.stdout.count(b" do_work+0x0"), 5, done.stderr)

    def test_not_dumpable(self):
        target = self.start(*NOBODY, program("guarded"))
        err = self.refused("-p", target.pid, "-k", "main", prefix=NOBODY, says=["not dumpable"])
        self.assertIn(str(target.pid), err)
        self.assertEqual(target.end(), 0)

    def test_not_dumpable_as_root(self):
        target = self.start(program("guarded"))
        tracer = self.attach(target, "-k", "do_work", "--count", "--format", "json")
        target.tell()
        target.truth("worked")
        self.assertEqual(tracer.stop().summary("do_work")["hits"], 1)
        self.assertEqual(target.end(), 0)

    def limited(self, most, *arguments):
        """ktrace with so few open files."""
        def limit():
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        return subprocess.run([KTRACE, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              stdin=subprocess.DEVNULL, timeout=LIMIT, preexec_fn=limit)

    def test_too_few_open_files(self):
        """It is not the target that is blamed."""
        target = self.start(program("threads"))
        # UBSan looks at objects by way of a pipe, and takes none for what is there where it can have none.
        for most in (8, 16, 32) if has_sanitizers() else (4, 8, 16, 32):
            done = self.limited(most, "attach", "-p", target.pid, "-k", "do_work", "--duration", "1ms")
            self.assertEqual((done.returncode, done.stdout), (1, ""), done)
            self.assertRegex(done.stderr, rf"^ktrace: ktrace needs \d+ open files, and may have {most}; ulimit -n")
        done = self.limited(16, "run", "-k", "do_work", "--", program("processes"), "work", "5")
        self.assertEqual((done.returncode, done.stdout), (125, ""), done)
        self.check_works(target)

    def test_more_libraries_than_open_files(self):
        """They are named, and all else works: what is left of the descriptors is not theirs."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        with open(f"{folder.name}/l.c", "w") as source:
            source.write("int of_a_library(void) { return 1; }\n")
        workshop.execute("gcc", "-shared", "-fPIC", "-o", f"{folder.name}/0.so", source.name)
        names = [f"{folder.name}/{number}.so" for number in range(64)]
        for name in names[1:]:
            shutil.copy(names[0], name)
        target = self.start(program("threads"), env=dict(os.environ, LD_PRELOAD=":".join(names)))
        done = self.limited(48, "attach", "-p", target.pid, "-k", "do_work", "--duration", "1ms")
        self.assertEqual(done.returncode, 0, done)
        self.assertRegex(done.stderr, rf"cannot read {folder.name}/\d+\.so: .*Too many open files \(ulimit -n\)")
        self.assertIn("Attached 1 probe", done.stderr)
        self.check_works(target)

    def test_the_limit_of_open_files_of_a_program(self):
        """ktrace's own is raised; what it starts has the one that ktrace was started with."""
        def limit():
            resource.setrlimit(resource.RLIMIT_NOFILE, (100, 200))
        done = subprocess.run([KTRACE, "run", "-k", "no_such:f", "--allow-missing", "--", "sh", "-c", "ulimit -Sn; ulimit -Hn"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, timeout=LIMIT,
                              preexec_fn=limit)
        self.assertEqual((done.returncode, done.stdout), (0, b"100\n200\n"), done)

    def test_symbols(self):
        target = self.start(program("threads"))
        for spec, says in (("do_wrok", ["do_wrok", "do_work"]), ("no_such_function_at_all", ["no_such_function_at_all"]),
                           ("do_work+1", ["do_work+1", "instruction"]), ("do_work+100000", ["do_work+100000"]),
                           ("nothing.c:12", ["nothing.c:12"]), ("0x10", ["0x10"])):
            err = self.refused("-p", target.pid, "-k", spec, says=says, lines=2)
            self.assertNotIn("Attached", err)
        self.refused("-p", target.pid, "-r", "do_work+5", says=["do_work+5"], lines=2)
        # No notice of another stands before it, and a good one beside it is not armed either.
        err = self.refused("-p", target.pid, "-k", "libnothing.so.3:f", "-k", "do_wrok", lines=2)
        self.assertNotIn("waits for", err)
        self.refused("-p", target.pid, "-k", "do_work", "-k", "do_wrok", lines=2)
        self.check_works(target)

    def test_syntax(self):
        """The second line points at the column."""
        target = self.start(program("threads"))
        for option, text, column in (("-k", "do_work+", 7), ("-k", "do_work+zz", 8), ("--if", "arg0 +", 6),
                                     ("--if", "arg0 == )", 8), ("--print", "->x", 0)):
            arguments = ["-p", target.pid, "-k", "do_work"] if option != "-k" else ["-p", target.pid]
            err = self.refused(*arguments, option, text, status=2, says=[text], lines=2)
            first, second = err.splitlines()
            self.assertEqual(second.index("^") - first.index(text), column, err)
        self.check_works(target)

    def test_unknown_words(self):
        """A slip of the pen is put right; for anything else the error has the words that can stand there."""
        target = self.start(program("threads"))
        for option, text, hint in (("--if", "durration > 5", "did you mean duration?"),
                                   ("--by", "commm", "did you mean comm?"),
                                   ("--by", "thread_name", ", stack, "),
                                   ("--print", "arg12", "arg0 to arg9"),
                                   ("--print", RESULT, 'reg("NAME") a register')):
            self.refused("-p", target.pid, "-r", "do_work", option, text, says=["means nothing here", hint], lines=2)
        self.check_works(target)

    def test_nothing_is_left(self):
        """--allow-missing leaves out what cannot be placed, but not everything."""
        target, other = self.start(program("threads")), self.start(program("calls"), 1, 10)
        both = f"{target.pid},{other.pid}"
        for pids, probes, lines in ((target.pid, ["-k", "no_such_function"], 2), (both, ["-k", "no_such_function"], 3),
                                    (both, ["-r", "do_work+5", "-k", "libc.so.6:no_such_function"], 3)):
            err = self.refused("-p", pids, *probes, "--allow-missing", lines=lines)
            self.assertRegex(err, r"\nktrace: no probe is left: none of them can be placed; .*\n$")
            self.check_untouched(target)
        tracer = self.trace("-p", f"{other.pid},{target.pid}", "-k", "no_such", "-k", "leave_here", "--allow-missing")
        self.assertEqual(tracer.stop().status, 0)
        self.check_works(target)

    def test_pending_is_no_error_until_the_end(self):
        target = self.start(program("threads"))
        for options, status in (([], 1), (["--allow-missing"], 0)):
            tracer = Ktrace("-p", target.pid, "-k", "libnothing.so.3:f", "-k", "do_work", *options)
            trace = tracer.stop()
            self.assertEqual(trace.status, status, trace)
            self.assertIn("libnothing.so.3", trace.err)
            self.check_untouched(target)
        self.check_works(target)
