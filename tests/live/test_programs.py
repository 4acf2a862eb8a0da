"""Real programs do real work under probes of their own functions, as if untraced: the same output, the same status."""
import os
import random
import re
import subprocess
import sys
import tempfile
import unittest

from live import BUILD, KTRACE, LIBC, LIMIT, LiveTest, Trace, adds_up
from workshop import NONE, SOURCES, execute, require, room

WORK = os.path.join(SOURCES, "work")


def functions(path):
    """Where the functions of a file are, by .eh_frame: stripped programs have that too."""
    require("readelf")
    # Its status reports things that are not asked for (a debug file that is elsewhere).
    text = subprocess.run(["readelf", "--debug-dump=frames,no-follow-links", path], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True).stdout
    return sorted({(int(a, 16), int(b, 16)) for a, b in re.findall(r"pc=([0-9a-f]+)\.\.([0-9a-f]+)", text)})


def every_instruction(path, count, seed):
    """Addresses of all instructions of some functions of a file."""
    require("objdump")
    chosen = random.Random(seed).sample([f for f in functions(path) if 16 < f[1] - f[0] < 2000], count)
    addresses = []
    for start, stop in chosen:
        text = execute("objdump", "-d", "--no-show-raw-insn", f"--start-address={start}", f"--stop-address={stop}", path)
        addresses += [int(a, 16) for a, what in re.findall(r"^ *([0-9a-f]+):\t(.*)", text, re.M) if not NONE.search(what)]
    return addresses


class ProgramTest(LiveTest):
    program = work = None  # what is run, and its argument; None: not a test

    def setUp(self):
        require(self.command()[0])

    def command(self):
        return [self.program, os.path.join(WORK, self.work)]

    def environment(self):
        return dict(os.environ, PYTHONHASHSEED="0", PERL_HASH_SEED="0", LC_ALL="C", HOME=room())

    def untraced(self):
        return subprocess.run(self.command(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              env=self.environment(), timeout=LIMIT)

    def compare(self, *options, fires=True):
        """Runs it untraced and traced; gives the trace, ktrace's own output in it."""
        before = self.untraced()
        out = os.path.join(tempfile.mkdtemp(dir=room()), "events")
        traced = subprocess.run([KTRACE, "run", "-o", out, "--format", "json", *options, "--", *self.command()],
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                env=self.environment(), timeout=LIMIT)
        self.assertEqual(traced.stdout, before.stdout, traced.stderr[-2000:])
        self.assertEqual(traced.returncode, before.returncode, traced.stderr[-2000:])
        with open(out) as f:
            trace = Trace(f.read(), traced.stderr.decode(errors="replace"), traced.returncode)
        hits = 0
        for summary in trace.summaries():
            self.assertTrue(adds_up(summary), summary)
            hits += summary["hits"]
        if fires:
            self.assertGreater(hits, 0, trace)
        return trace

    def compare_instructions(self, path, module, count, seed):
        """Every instruction of some functions, each with a probe of its own."""
        specs = [f"{module}:{a:#x}" for a in every_instruction(path, count, seed)]
        self.assertGreater(len(specs), count * 4)
        trace = self.compare("--count", *[o for s in specs for o in ("-k", s)])
        self.assertEqual(len(trace.summaries()), len(set(specs)))

    def converse(self, command, ready, lines, *options):
        """Its answers to lines, untraced and then with ktrace attached to it once it is ready."""
        answers = []
        for traced in (False, True):
            target = self.start(*command, ready=None, env=self.environment())
            for line in ready:
                target.tell(line)
            target.truth("ready")
            tracer = self.attach(target, "--format", "json", *options) if traced else None
            for line in lines:
                target.tell(line)
            target.process.stdin.close()
            output = b""
            while chunk := os.read(target.process.stdout.fileno(), 65536):
                output += chunk
            answers.append((target.process.wait(LIMIT), target.lines.buffer + output))
        trace = tracer.finish()
        self.assertEqual(answers[0], answers[1])
        self.assertEqual(trace.status, 0, trace)
        self.assertGreater(sum(s["hits"] for s in trace.summaries()), 0, trace)
        for summary in trace.summaries():
            self.assertTrue(adds_up(summary), summary)


class Python(ProgramTest):
    program, work = "/usr/bin/python3", "work.py"

    def test_python_evaluation(self):
        trace = self.compare("-r", "_PyEval_EvalFrameDefault", "-r", "PyEval_EvalCode", "--maxactive", "4096")
        evaluated = trace.summary("_PyEval_EvalFrameDefault")
        self.assertGreater(evaluated["events"], 100)
        self.assertEqual(evaluated["missed"], 0)
        self.assertEqual(len(trace.events("return")), sum(s["events"] for s in trace.summaries()))

    def test_python_globs(self):
        self.compare("--count", "-j", "PyDict_*", "-r", "PyTuple_*", "-k", "PyErr_*", "-r", "PyErr_*")

    def test_python_allocation(self):
        trace = self.compare("--count", "-r", "libc:malloc", "-j", "libc:free", "-r", "libc:realloc", "--by", "tid")
        self.assertEqual(trace.summary("malloc")["unreturned"], 0)

    def test_python_instructions(self):
        self.compare_instructions(os.path.realpath(self.program), os.path.basename(os.path.realpath(self.program)), 50, 1)

    def test_python_attached(self):
        self.converse([self.program, "-c", "print('ready', flush=True); input(); exec(open(input()).read())"], [],
                      ["go", os.path.join(WORK, self.work)], "--count", "-r", "PyObject_Call*", "-k", "PyList_Append")


class Perl(ProgramTest):
    program, work = "/usr/bin/perl", "work.pl"

    def test_perl_operators(self):
        trace = self.compare("--count", "-r", "Perl_pp_*")
        self.assertGreater(trace.summary("Perl_pp_multiply")["events"], 2000)

    def test_perl_dies(self):
        """All operators are called from one place; those that die are left by siglongjmp."""
        target = self.start(self.program, "-e", """
            $| = 1;
            print "ready\\n";
            <STDIN>;
            my ($errors, $sum) = (0, 0);
            for my $i (1 .. 600) {
                eval { $sum += 100 / ($i % 2); 1 } or $errors++;
                eval { die "three" if $i % 3 == 0; $sum += 1; 1 } or $errors++;
            }
            print "errors $errors sum $sum\\n";
            <STDIN>;""")
        tracer = self.attach(target, "--count", "--format", "json", "-r", "Perl_pp_die", "-r", "Perl_pp_divide", "-r",
                             "Perl_pp_add")
        target.tell()
        target.truth("^errors 500 sum 30400$")
        trace = tracer.stop()
        for function, hits, returned in (("die", 200, 0), ("divide", 600, 300), ("add", 700, 700)):
            summary = trace.summary(f"Perl_pp_{function}", "r")
            self.assertEqual([summary[name] for name in ("hits", "events", "unreturned")],
                             [hits, returned, hits - returned], trace)
        self.check_untouched(target)
        self.assertEqual(target.end(), 0)

    def test_perl_all_functions(self):
        self.compare("--count", "-j", "perl:Perl_*")

    def test_perl_events(self):
        trace = self.compare("-r", "Perl_pp_entersub", "-k", "Perl_pp_leavesub", "--regs")
        self.assertEqual(len(trace.events("return")), trace.summary("Perl_pp_entersub")["events"])

    def test_perl_instructions(self):
        self.compare_instructions(self.program, "perl", 60, 2)

    def test_perl_attached(self):
        self.converse([self.program, "-e", "$| = 1; print qq(ready\\n); my $f = <STDIN>; chomp $f; do $f"], [],
                      [os.path.join(WORK, self.work)], "--count", "-r", "Perl_sv_*", "-j", "Perl_newSV*")


class Bash(ProgramTest):
    program, work = "/bin/bash", "work.sh"

    def test_bash_execution(self):
        trace = self.compare("-r", "execute_command", "-r", "execute_command_internal", "-j", "parse_command")
        self.assertGreater(trace.summary("execute_command")["events"], 20)

    def test_bash_all_functions(self):
        self.compare("--count", "-r", "bash:*")

    def test_bash_with_children(self):
        self.compare("--count", "-f", "-r", "bash:execute_*", "-k", "libc:fork")

    def test_bash_instructions(self):
        self.compare_instructions(self.program, "bash", 60, 3)

    def test_bash_attached(self):
        self.converse([self.program, "-c", "echo ready; read f; . \"$f\""], [], [os.path.join(WORK, self.work)], "--count",
                      "-r", "expand_*", "-j", "find_variable*")


class Sqlite(ProgramTest):
    program, work = "/usr/bin/sqlite3", "work.sql"

    def command(self):
        return [self.program, ":memory:", ".read " + os.path.join(WORK, self.work)]

    def library(self):
        found = re.search(r"(\S*libsqlite3\S*) \(", execute("ldd", self.program))
        if not found:
            self.skipTest("sqlite3 is linked without its library")
        return os.path.realpath(found[1])

    def test_sqlite_statements(self):
        trace = self.compare("-r", "sqlite3_prepare_v2", "-r", "sqlite3_step", "-j", "sqlite3_finalize")
        self.assertGreater(trace.summary("sqlite3_step")["events"], 10)

    def test_sqlite_all_functions(self):
        self.library()
        self.compare("--count", "-r", "libsqlite3:*")

    def test_sqlite_instructions(self):
        self.compare_instructions(self.library(), "libsqlite3.so.0", 30, 5)

    def test_sqlite_attached(self):
        self.converse([self.program, "-interactive", ":memory:"], [".print ready"],
                      [".read " + os.path.join(WORK, self.work), ".exit 6"], "--count", "-r", "sqlite3_*")


class Git(ProgramTest):
    program = "/usr/bin/git"
    repository = None

    def command(self):
        return [self.program, "-C", self.repository or "/", "log", "--stat", "--format=%s %an"]

    def setUp(self):
        super().setUp()
        if Git.repository is None:
            Git.repository = tempfile.mkdtemp(prefix="repository-", dir=room())
            git = [self.program, "-C", Git.repository, "-c", "user.name=n", "-c", "user.email=e"]
            execute(*git, "init", "-q")
            for i in range(15):
                with open(os.path.join(Git.repository, f"file{i % 4}"), "a") as f:
                    f.write("".join(f"line {n} of {i}\n" for n in range(40)))
                execute(*git, "add", "-A")
                execute(*git, "commit", "-q", "-m", f"change {i}")

    def test_git_inflates(self):
        trace = self.compare("-r", "inflate", "-r", "inflateInit_", "-r", "libz:inflateEnd")
        self.assertGreater(trace.summary("inflate")["events"], 10)

    def test_git_library_calls(self):
        self.compare("--count", "-r", "libc:read", "-r", "libc:write", "-j", "libc:strchr", "-r", "libc:mem*")

    def test_git_instructions(self):
        self.compare_instructions(self.program, "git", 60, 7)

    def test_git_attached(self):
        commands = [self.program, "-C", Git.repository, "cat-file", "--batch=ready %(objectname)"]
        self.converse(commands, ["HEAD"], ["HEAD~3", "HEAD^{tree}", "HEAD:file1"], "--count", "-r", "libc:read",
                      "-r", "libz:inflate*")


class Libc(ProgramTest):
    """The library under every program, each of its functions."""
    program, work = "/usr/bin/perl", "work.pl"

    def test_libc_instructions(self):
        self.compare_instructions(LIBC, "libc.so.6", 60, 11)

    def test_libc_functions(self):
        self.compare("--count", "-j", "libc:str*", "-r", "libc:sig*", "-r", "libc:*alloc", "-k", "libc:_IO_*")


class Soak(unittest.TestCase):
    """tests/soak/programs, the long form with servers, where they are not there."""

    def test_soak_without_programs(self):
        """Nothing that was traced is no success."""
        soak = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "soak", "programs")
        for names in ([], ["redis"]):
            done = subprocess.run([sys.executable, soak, BUILD, *names], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  env={"PATH": room()}, text=True, timeout=LIMIT)
            self.assertEqual(done.returncode, 1, done.stdout)
            self.assertIn("redis: not installed (redis-server, redis-benchmark, redis-cli)\n", done.stdout)
            self.assertRegex(done.stdout, rf"\nno program was traced: {len(names) or 10} not installed\n$")
