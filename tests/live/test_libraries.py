"""Libraries that come and go: probes wait for them, are armed before their first instruction, and survive dlclose."""
import fcntl
import importlib.util
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

import workshop
from live import (KTRACE, LIMIT, NO_WATCHES, NUMBERS, SLOW, LiveTest, adds_up, debug_registers_trap, ktrace, program, sleeps_in,
                  state_of, thread_folders, told_of, until)


def library(name="part", *flags):
    """lib<name>.so, whose functions are called <name>_work and so on."""
    return workshop.build(f"lib{name}.so", "-shared", "-fPIC", "-O2", "-g", f"-DNAME={name}", *flags,
                          sources=["libraries/mobile_part.c"])


def drain(descriptor):
    """Reads all that is written to a pipe, to its end."""
    with open(descriptor, "rb") as pipe:
        pipe.read()


class Libraries(LiveTest):
    def begin(self, *options, threads=0):
        self.target = self.start(program("mobile"), threads)
        self.tracer = self.attach(self.target, "--format", "json", *options)

    def tell(self, *words):
        self.target.tell(" ".join(map(str, words)))
        line = self.target.truth(r"^(done|failed) (.*)")
        self.assertEqual(line[1], "done", line[2])
        return int(line[2])

    def list(self):
        answer = ktrace("ctl", "-p", self.target.pid, "list")
        self.assertEqual(answer.status, 0, answer)
        return answer.out.splitlines()

    def finish(self, status=0):
        trace = self.tracer.stop()
        self.assertEqual(trace.status, status, trace)
        for summary in trace.summaries():
            self.assertTrue(adds_up(summary), summary)
        self.check_untouched(self.target)
        self.assertEqual(self.target.end(), 0)
        return trace

    def counts(self, trace):
        found = {}
        for summary in trace.summaries():
            found[summary["symbol"]] = found.get(summary["symbol"], 0) + summary["hits"]
        return found


class Wide(Libraries):
    FUNCTIONS = 700  # of each library: of fewer than fit into the first page of slots, of all of them more

    def test_libraries_do_not_count_on_the_same_room(self):
        made = []
        for number in range(3):
            source = os.path.join(tempfile.mkdtemp(dir=workshop.room()), f"wide{number}.c")
            with open(source, "w", encoding="ascii") as code:
                code.writelines(f"int wide_{number}_{n}(int a) {{ return a + {n}; }}\n" for n in range(self.FUNCTIONS))
            made.append(workshop.build(f"libwide{number}.so", "-shared", "-fPIC", "-O1", sources=[source]))
        self.begin("-k", "do_work", "--count")
        for slot, path in enumerate(made):
            self.tell("open", slot, path)
        said = ktrace("ctl", "-p", self.target.pid, "add", "-k", "wide_*", "--count")
        self.assertEqual((said.status, said.out), (0, f"2 k wide_*: {3 * self.FUNCTIONS} locations\n"), said)
        self.finish()


class Pending(Libraries):
    def test_a_probe_waits_for_its_module(self):
        self.begin("-k", "libpart.so:part_work", "-r", "libpart.so:part_made", "--count")
        self.assertEqual([line[:16] + line[line.index("part_"):] for line in self.list()],
                         ["0" * 16 + "part_work+0x0 [libpart.so] [PENDING]",
                          "0" * 16 + "part_made+0x0 [libpart.so] [PENDING]"])
        self.tell("open", 0, library())
        listed = "\n".join(self.list()).replace(" [OPTIMIZED]", "") # jumps by now, perhaps
        self.assertRegex(listed, r"^[0-9a-f]{16} k part_work\+0x0 \[libpart.so\]\n[0-9a-f]{16} r part_made\+0x0 \[libpart.so\]$")
        self.tell("call", 0, "part_work", 1000)
        trace = self.finish()
        self.assertEqual(self.counts(trace), {"part_work": 1000, "part_made": 1})
        self.assertEqual(trace.err.count("waits for libpart.so to be loaded"), 2, trace)

    def test_one_that_may_be_misspelt(self):
        self.begin("-k", "libx:puts", "-k", "mobil:do_work", "-k", "do_work", "--count", "--allow-missing")
        trace = self.finish()
        self.assertRegex(trace.err, r"(?m)^ktrace: libx:puts waits for libx to be loaded; did you mean libc\.so\.6\?$")
        self.assertRegex(trace.err, r"(?m)^ktrace: mobil:do_work waits for mobil to be loaded; did you mean mobile\?$")

    def test_one_that_waits_in_vain(self):
        self.begin("-k", "libpart.so:part_work", "-k", "do_work", "--count")
        trace = self.finish(status=1)
        self.assertIn("libpart.so:part_work was never armed: libpart.so was never loaded", trace.err)

    def test_one_that_may_wait_in_vain(self):
        self.begin("-k", "libpart.so:part_work", "-k", "do_work", "--count", "--allow-missing")
        self.finish()

    def test_a_module_without_the_function(self):
        self.begin("-k", "libpart.so:part_wrok", "--count")
        self.tell("open", 0, library())
        self.tell("call", 0, "part_work", 10)
        self.finish(status=1)

    def test_globs_match_modules_that_come_later(self):
        self.begin("-j", "libp*:*_work", "-j", "libpart.so:part_[mle]*", "--count")
        self.tell("open", 0, library())
        self.tell("open", 1, library("piece"))
        self.tell("call", 0, "part_work", 100)
        self.tell("call", 1, "piece_work", 200)
        self.tell("close", 0)
        trace = self.finish()
        self.assertEqual(self.counts(trace), {"part_work": 100, "piece_work": 200, "part_made": 1, "part_ended": 1,
                                              "part_leap": 0})

    def test_started_programs(self):
        """A constructor of a library that a started program loads; the trace ends with it."""
        shell = f"printf 'open 0 {library()}\\ncall 0 part_work 10\\n' | {program('mobile')}"
        trace = ktrace("run", "-f", "--format", "json", "--count", "-j", "libpart.so:part_*", "--", "sh", "-c", shell)
        self.assertEqual(trace.status, 0, trace)
        counts = {line["symbol"]: line["hits"] for line in
                  map(json.loads, (l for l in trace.lines if l.startswith('{"type":"summary"')))}
        self.assertEqual(counts, {"part_work": 10, "part_made": 1, "part_ended": 1, "part_leap": 0}, trace)

    def test_added_while_it_waits(self):
        self.begin("-k", "do_work", "--count")
        added = ktrace("ctl", "-p", self.target.pid, "add", "-j", "libpart.so:part_work", "--count")
        self.assertEqual((added.status, added.out),
                         (0, "2 j libpart.so:part_work: 0 locations: it waits for libpart.so to be loaded\n"))
        disabled = ktrace("ctl", "-p", self.target.pid, "disable", "2")
        self.assertEqual(disabled.status, 0)
        self.assertTrue(self.list()[1].endswith(" [DISABLED] [PENDING]"))
        self.tell("open", 0, library())
        self.tell("call", 0, "part_work", 10)
        self.assertEqual(ktrace("ctl", "-p", self.target.pid, "enable", "2").status, 0)
        self.tell("call", 0, "part_work", 20)
        self.assertEqual(self.counts(self.finish()), {"do_work": 0, "part_work": 20})


class Starting(LiveTest):
    page = 4096

    def hold_loader(self, room):
        """A program whose loader prints its work into a pipe that takes so many bytes of it, and waits then."""
        reader, writer = os.pipe()
        fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, self.page)
        os.write(writer, b"x" * (self.page - room))
        process = subprocess.Popen([program("mobile")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=writer,
                                   env=dict(os.environ, LD_DEBUG="files"))
        os.close(writer)
        self.addCleanup(process.stdin.close)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process, reader

    def moments(self):
        """How much of that the loader has printed: moments of its work, from its start until main is near."""
        all_of_it = subprocess.run([program("mobile")], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, env=dict(os.environ, LD_DEBUG="files"), timeout=LIMIT,
                                   check=True).stderr
        before_main = all_of_it.index(b"transferring control")
        return range(1, min(before_main, self.page), before_main // 12)

    def attach_held(self, room, *options):
        """Attaches while the loader is held, and lets it go: what ktrace said then, and its trace."""
        process, reader = self.hold_loader(room)
        until(lambda: state_of(f"/proc/{process.pid}") == "S", "the loader waits")
        tracer = self.trace("-p", process.pid, *options, "--count", "--format", "json", wait=False)
        told = tracer.errors.until(r"Attached \d+ probe|is just being started|did you mean")[0]
        rest = threading.Thread(target=drain, args=[reader])
        rest.start()
        out = process.communicate(b"nothing 0\n" * 7, LIMIT)[0]
        rest.join()
        self.assertEqual((process.returncode, out.count(b"failed")), (0, 7), out)
        return told, tracer.finish()

    def test_attached_while_the_loader_is_at_work(self):
        """Whatever of a program's libraries is loaded when ktrace comes: what waits is armed before main runs."""
        pending = 0
        for room in self.moments():
            told, trace = self.attach_held(room, "-k", "libc.so.6:fgets")
            pending += told == "Attached 0 probe"
            self.assertEqual(trace.status, 0, trace)
            self.assertEqual([s["hits"] for s in trace.summaries()], [8], trace)
        self.assertGreater(pending, 0)

    def test_a_name_that_no_library_has_yet(self):
        waited = 0
        for room in self.moments():
            told, trace = self.attach_held(room, "-k", "fgets", "-r", "main")
            waited += told == "is just being started"
            self.assertEqual(trace.status, 0, trace)
            self.assertEqual([(s["symbol"], s["hits"]) for s in trace.summaries()], [("fgets", 8), ("main", 1)], trace)
            self.assertEqual(trace.err.count("Attached 2 probes to"), 1, trace)
        self.assertGreater(waited, 0)

    def test_a_name_that_no_library_ever_has(self):
        for room in list(self.moments())[::4]:
            trace = self.attach_held(room, "-k", "main", "-k", "fgetz")[1]
            self.assertEqual(trace.status, 1, trace)
            self.assertRegex(trace.err, r"fgetz.*\n?.*did you mean .*fgets")
            self.assertNotIn("Attached", trace.err)

    def test_plugins_wait_for_libraries(self):
        plugin = os.path.join(workshop.room(), "arguments.so")
        source = os.path.join(os.path.dirname(workshop.SOURCES), "plugins", "counts.c")
        workshop.execute(KTRACE, "plugin", "build", source, "-o", plugin)
        for room in list(self.moments())[::4]:
            trace = self.attach_held(room, "--plugin", f"{plugin} func=fgets")[1]
            self.assertEqual(trace.status, 0, trace)
            self.assertIn("fgets was called 8 times", trace.out)

    @unittest.skipUnless(debug_registers_trap(), NO_WATCHES)
    def test_stopped_before_its_first_instruction(self):
        """Nothing but the program and its loader is mapped, and the loader has not begun."""
        target = self.start(program("atexec"), program("mobile"), ready=None)
        pid = int(target.truth(r"^(\d+) is stopped$")[1])
        tracer = self.trace("-p", pid, "-k", "fgets", "-w", "stdin:rw", "--count", "--format", "json", wait=False)
        tracer.errors.until("is just being started")
        os.kill(pid, signal.SIGCONT)
        tracer.errors.until("Attached 2 probes")
        target.truth("^ready")
        for _ in range(7):
            target.tell("nothing 0")
        self.assertEqual(target.end(), 0)
        trace = tracer.finish()
        self.assertEqual(trace.status, 0, trace)
        self.assertEqual(trace.summary("fgets")["hits"], 8)
        self.assertGreaterEqual(trace.summary("stdin")["hits"], 8)

    def test_plugins_wait_for_the_last_process(self):
        """One runs, the other has not begun: the plugin starts with the libraries of that, and both are reported."""
        plugin = os.path.join(workshop.room(), "two.so")
        source = os.path.join(os.path.dirname(workshop.SOURCES), "plugins", "counts.c")
        workshop.execute(KTRACE, "plugin", "build", source, "-o", plugin)
        running = self.start(program("mobile"))
        late = self.start(program("atexec"), program("mobile"), ready=None)
        pid = int(late.truth(r"^(\d+) is stopped$")[1])
        tracer = self.trace("-p", f"{running.pid},{pid}", "--plugin", f"{plugin} func=fgets", wait=False)
        tracer.errors.until(f"{pid} .*is just being started")
        os.kill(pid, signal.SIGCONT)
        told = {tracer.errors.until(r"Attached 1 probe to (\d+) \(mobile\)")[1] for _ in range(2)}
        self.assertEqual(told, {str(running.pid), str(pid)})
        late.truth("^ready")
        trace = tracer.stop()
        self.assertEqual((trace.status, trace.err.count("Attached")), (0, 2), trace)
        self.check_untouched(running)
        for target in (running, late):
            self.assertEqual(target.end(), 0)

    def test_libraries_that_audit(self):
        """They come first, in a name space of their own, whose loading shows nothing of the program's."""
        auditor = workshop.build("libauditor.so", "-shared", "-fPIC", sources=["libraries/auditor.c"])
        trace = ktrace("run", "-k", "fgets", "--count", "--format", "json", "--", "env", f"LD_AUDIT={auditor}",
                       program("mobile"))
        self.assertEqual(trace.status, 0, trace)
        counts = [json.loads(l) for l in trace.lines if l.startswith('{"type":"summary"')]
        self.assertEqual([s["hits"] for s in counts], [1], trace)


class Unloading(Libraries):
    """A thread is in the middle of a dlclose: of two libraries one is unmapped, and the other one is to be."""
    page = 4096
    WRITEV = NUMBERS["writev"]  # the system call by which the loader prints its work

    def setUp(self):
        super().setUp()
        self.part = library("part", "-Wl,--no-as-needed", library("piece"))

    def open_both(self):
        """A program that has loaded both, and whose loader prints its work into a pipe that is not read."""
        self.told, self.writer = os.pipe()
        self.addCleanup(os.close, self.told)
        self.addCleanup(os.close, self.writer)
        telling = f'exec env LD_DEBUG=files "$0" 2>/proc/{os.getpid()}/fd/{self.writer}'
        self.target = self.start("sh", "-c", telling, program("mobile"))
        self.tell("open", 0, self.part)
        os.read(self.told, 1 << 16)

    def told_before(self):
        """How much the loader prints before the first library is unmapped."""
        self.open_both()
        self.tell("close", 0)
        self.assertEqual(self.target.end(), 0)
        return os.read(self.told, 1 << 16).index(b"destroying link map")

    def hold(self, room):
        fcntl.fcntl(self.writer, fcntl.F_SETPIPE_SZ, self.page)
        os.write(self.writer, b"x" * (self.page - room))
        self.target.tell("close 0")
        until(lambda: sleeps_in(f"/proc/{self.target.pid}") == self.WRITEV, "the loader waits")
        self.assertIn("libpiece.so", told_of(f"/proc/{self.target.pid}", "maps"))

    def let_go(self):
        """Closed, both are loaded once more, and called."""
        threading.Thread(target=drain, args=[os.dup(self.told)], daemon=True).start()
        self.target.truth("^done 0")
        self.tell("open", 0, self.part)
        self.tell("call", 0, "piece_work", 10)

    def test_attached_in_the_middle(self):
        room = self.told_before()
        self.open_both()
        self.hold(room)
        self.tracer = self.trace("-p", self.target.pid, "-k", "libpiece.so:piece_work", "--count", "--format", "json",
                                 wait=False)
        told = self.tracer.errors.until(r"Attached \d+ probe|is just unloading libraries")[0]
        self.let_go()
        self.assertEqual(told, "is just unloading libraries")
        self.tracer.errors.until("Attached 0 probes from 1 spec")
        self.assertEqual(self.counts(self.finish()), {"piece_work": 10})

    @unittest.skipIf(SLOW, "the libraries are loaded once more before the order is carried out, where a stop takes so long")
    def test_a_probe_that_is_added_in_the_middle(self):
        room = self.told_before()
        self.open_both()
        self.tracer = self.attach(self.target, "-k", "do_work", "--count", "--format", "json")
        self.hold(room)
        order = subprocess.Popen([KTRACE, "ctl", "-p", str(self.target.pid), "add", "-k", "libpiece.so:piece_work",
                                  "--count"], stdout=subprocess.PIPE, text=True)

        def is_taken():
            """Its answer is waited for, and nothing of it waits for a thread of the tracer's."""
            waits = sleeps_in(f"/proc/{order.pid}") == NUMBERS["poll"]
            return waits and all(state_of(folder) == "S" for folder in thread_folders(self.tracer.tracing))

        until(lambda: order.poll() is not None or is_taken(), "it is asked for")
        self.let_go()
        answer = order.communicate(timeout=LIMIT)[0]
        self.assertEqual(answer, "2 k libpiece.so:piece_work: 0 locations: it waits for libpiece.so to be loaded\n")
        self.assertEqual(self.counts(self.finish()), {"do_work": 0, "piece_work": 10})


class Gone(Libraries):
    def test_dlclose_and_reload(self):
        self.begin("-k", "libpart.so:part_work", "-r", "libpart.so:part_work", "-j", "libpart.so:part_made", "--count")
        for turn in range(50):
            self.tell("open", 0, library())
            self.tell("call", 0, "part_work", 10)
            self.tell("close", 0)
            if turn == 0:
                self.assertEqual([line.split("] ")[1] for line in self.list()], ["[GONE]"] * 3)
        trace = self.finish()
        self.assertEqual([(s["kind"], s["hits"], s["events"]) for s in trace.summaries()],
                         [("k", 500, 500), ("r", 500, 500), ("j", 50, 50)])

    def test_every_mark_of_the_list(self):
        """One that is armed, and each of those that are not; a switch that is set stays set."""
        self.begin("-k", "do_work", "-k", "main", "-j", "libpart.so:part_work", "-r", "libpart.so:part_made", "-k",
                   "libpiece.so:piece_work", "--count", "--allow-missing", "--engine", "trap")
        self.assertEqual(ktrace("ctl", "-p", self.target.pid, "disable", "2", "4").status, 0)
        self.tell("open", 0, library())
        self.tell("close", 0)
        lines = self.list()
        marks = [("k do_work+0x0 [mobile]", True), ("k main+0x0 [mobile] [DISABLED]", True),
                 ("j part_work+0x0 [libpart.so] [GONE]", True), ("r part_made+0x0 [libpart.so] [DISABLED] [GONE]", True),
                 ("k piece_work+0x0 [libpiece.so] [PENDING]", False)]
        self.assertEqual([line[17:] for line in lines], [mark for mark, _ in marks])
        self.assertEqual([int(line[:16], 16) != 0 for line in lines], [has_address for _, has_address in marks])
        self.tell("open", 0, library())
        self.assertEqual([line[17:] for line in self.list()[2:4]],
                         ["j part_work+0x0 [libpart.so]", "r part_made+0x0 [libpart.so] [DISABLED]"])
        self.tell("close", 0)
        self.finish()

    def test_reload_elsewhere(self):
        self.begin("-r", "libpart.so:part_work", "--count")
        addresses = set()
        for _ in range(20):
            self.tell("open", 0, library())
            self.tell("call", 0, "part_work", 10)
            addresses.add(self.list()[0].split()[0])
            self.tell("block", 0)
        self.assertGreater(len(addresses), 10)
        self.assertEqual(self.counts(self.finish()), {"part_work": 200})

    def test_a_plugin_knows_where_its_probe_is(self):
        """addr and KPROBE_FLAG_GONE follow the library, as ctl list does."""
        plugin = os.path.join(workshop.room(), "places.so")
        source = os.path.join(os.path.dirname(workshop.SOURCES), "plugins", "places.c")
        workshop.execute(KTRACE, "plugin", "build", source, "-o", plugin)
        self.begin("--plugin", f"{plugin} func=libpart.so:part_work")
        self.target.tell("nothing")
        self.target.truth("^failed")
        for _ in range(5):
            self.tell("open", 0, library())
            self.tell("call", 0, "part_work", 10)
            self.tell("block", 0)  # the next one lies elsewhere
        self.target.tell("nothing")
        self.target.truth("^failed")
        told = [event["message"] for event in self.finish().events("log")]
        # When an order has been carried out, the next is waited for.
        expected = ["0 hits, nowhere"]
        for turn in range(5):
            expected += [f"{turn * 10} hits, there", f"{turn * 10 + 10} hits, there", f"{turn * 10 + 10} hits, gone"]
        # The first and the last may be reported twice: it is on its way to its input as ktrace comes and leaves.
        self.assertEqual([message for message, _ in itertools.groupby(told)], expected)

    def test_another_library_in_its_place(self):
        self.begin("-k", "libpart.so:part_work", "-k", "libpiece.so:piece_work", "--count")
        for turn in range(40):
            name = ("part", "piece")[turn % 2]
            self.tell("open", 0, library(name, *(["-DFILL"] if name == "piece" else [])))
            self.tell("call", 0, name + "_work", 10)
            self.tell("close", 0)
        self.assertEqual(self.counts(self.finish()), {"part_work": 200, "piece_work": 200})

    def test_a_new_build_under_the_same_name(self):
        path = os.path.join(workshop.room(), "libfresh.so")
        self.addCleanup(os.unlink, path)
        builds = [library("fresh"), library("fresh", "-DFILL")]
        self.begin("-k", "libfresh.so:fresh_work", "--count")
        for turn in range(6):
            shutil.copyfile(builds[turn % 2], path)  # the same file, with other bytes
            self.tell("open", 0, path)
            self.tell("call", 0, "fresh_work", 10)
            self.tell("close", 0)
        self.assertEqual(self.counts(self.finish()), {"fresh_work": 60})

    def test_a_file_that_is_replaced_while_it_is_loaded(self):
        """What was armed in it stays known: it has to come out again."""
        path = os.path.join(workshop.room(), "libfresh.so")
        self.addCleanup(os.unlink, path)
        shutil.copyfile(library("fresh"), path)
        self.begin("-k", "libfresh.so:fresh_work", "-k", "libpart.so:part_work", "--count")
        self.tell("open", 0, path)
        os.unlink(path)
        shutil.copyfile(library("fresh", "-DFILL"), path)
        self.tell("open", 1, library())
        self.tell("call", 0, "fresh_work", 10)
        self.assertEqual(["[GONE]" in line for line in self.list()], [False, False])
        self.tell("close", 0)
        self.assertEqual(self.counts(self.finish()), {"fresh_work": 10, "part_work": 0})

    def test_calls_in_flight_are_unreturned(self):
        self.begin("-r", "libpart.so:part_leap", "--count")
        for _ in range(10):
            self.tell("open", 0, library())
            self.tell("leap", 0, "part_leap")
            self.tell("close", 0)
        summary = self.finish().summary("part_leap")
        self.assertEqual((summary["hits"], summary["unreturned"]), (10, 10))

    def test_while_other_threads_run_through_probes(self):
        self.begin("-k", "libpart.so:part_work", "-k", "do_work", "-r", "do_work", "--count", threads=3)
        for _ in range(40):
            self.tell("open", 0, library())
            self.tell("call", 0, "part_work", 5)
            self.tell("close", 0)
        self.assertEqual(self.counts(self.finish())["part_work"], 200)

    def test_stepped_instructions(self):
        self.begin("-k", "libpart.so:part_work", "--post", "--count")
        for _ in range(20):
            self.tell("open", 0, library())
            self.tell("call", 0, "part_work", 10)
            self.tell("close", 0)
        self.assertEqual(self.counts(self.finish()), {"part_work": 200})


class Namespaces(Libraries):
    def test_a_library_that_is_there_twice(self):
        self.begin("-k", "libpart.so:part_work", "-j", "libpart.so:part_made", "-r", "libpart.so:part_leap", "--count")
        self.tell("open", 0, library())
        self.tell("space", 1, library())
        self.assertEqual([line.split()[2] for line in self.list()],
                         [f"{n}+0x0" for n in ("part_work", "part_work", "part_made", "part_made", "part_leap",
                                               "part_leap")])
        self.tell("call", 0, "part_work", 10)
        self.tell("call", 1, "part_work", 100)
        self.tell("close", 1)
        self.tell("call", 0, "part_work", 1000)
        self.tell("close", 0)
        self.assertEqual(self.counts(self.finish()), {"part_work": 1110, "part_made": 2, "part_leap": 0})


class RealPrograms(LiveTest):
    def test_an_extension_module_of_python(self):
        """Its initialization is the first of its code that runs, and is seen; untraced and traced, it does the same."""
        path = importlib.util.find_spec("_ctypes").origin
        if not path or not path.endswith(".so"):
            self.skipTest("this python has no modules in files of their own")
        work = "import ctypes; print(ctypes.CDLL(None).abs(-5), ctypes.sizeof(ctypes.c_long))"
        module = os.path.basename(path)
        with tempfile.NamedTemporaryFile("r") as events:
            traced = subprocess.run([KTRACE, "run", "-o", events.name, "--format", "json", "--count", "-k",
                                     f"{module}:PyInit__ctypes", "-k", "libffi*:ffi_call", "--", sys.executable, "-c", work],
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=LIMIT, text=True, check=False)
            hits = {line["symbol"]: line["hits"] for line in map(json.loads, events) if line["type"] == "summary"}
        self.assertEqual((traced.returncode, traced.stdout), (0, f"5 {8}\n"), traced)
        self.assertEqual(hits, {"PyInit__ctypes": 1, "ffi_call": 1}, traced)
