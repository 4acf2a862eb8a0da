"""Plugins: sources in the kernel's kprobes style, built by `ktrace plugin build` and run on a live target."""
import os
import platform
import re
import signal
import subprocess
import sys
import unittest

from live import SLOW, LiveTest, adds_up, is_asleep, ktrace, program, state_of, told_of, until
import workshop

SOURCES = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "plugins")
HOST = "ktrace-plugin-host"
WIRE = r"\S+ \d+ +/memfd:ktrace-plugin"  # in a line of /proc/PID/maps: device, inode, name
_built = {}


def built(name):
    """The path of a plugin made of tests/plugins/NAME, compiled once."""
    workshop.require("gcc")
    if name not in _built:
        source = next(os.path.join(SOURCES, name + e) for e in (".c", ".cc") if os.path.exists(os.path.join(SOURCES, name + e)))

        def make(path):
            done = ktrace("plugin", "build", source, "-o", path)
            assert done.status == 0 and done.err == "", done

        _built[name] = workshop.once(os.path.join(workshop.room(), name + ".so"), make)
    return _built[name]


def family(pid):
    """A process and its children: the one that traces may be a child of the one that was started."""
    with open(f"/proc/{pid}/task/{pid}/children") as children:
        return [pid, *map(int, children.read().split())]


def hosts_of(tracer):
    """The plugin hosts that this ktrace has started: they have its memory for the wire."""
    found = []
    ours = [wire for pid in family(tracer.pid) for wire in re.findall(WIRE, told_of(f"/proc/{pid}", "maps"))]
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.path.basename(os.readlink(f"/proc/{pid}/exe")) != HOST:
                continue
            with open(f"/proc/{pid}/maps") as theirs:
                wire = re.search(WIRE, theirs.read())
            if wire and wire[0] in ours:
                found.append(int(pid))
        except OSError:
            pass
    return found


def ranges(pid):
    """What is mapped and accessible in a process."""
    with open(f"/proc/{pid}/maps") as maps:
        for line in maps:
            span, rights = line.split()[:2]
            start, end = (int(a, 16) for a in span.split("-"))
            if rights[:3] != "---" and start < 1 << 63:
                yield start, end


class PluginTest(LiveTest):
    def target(self, *command, **options):
        return self.start(*command, program("plugged"), **options)

    def plug(self, target, *plugins, options=()):
        arguments = [a for p in plugins for a in ("--plugin", p)]
        return self.attach(target, *arguments, *options)

    def run_plugin(self, plugin, *commands, options=(), status=0):
        """The output of a plugin while the target worked; the target's, line by line."""
        target = self.target()
        tracer = self.plug(target, plugin, options=options)
        said = []
        for command in commands:
            target.tell(command)
            said.append(target.lines.next())
        trace = tracer.stop()
        self.assertEqual(trace.status, status, trace)
        self.check_untouched(target)
        self.assertEqual(target.end(), 0)
        return trace, said


class Samples(PluginTest):
    def test_inner_only_in_outer(self):
        trace, said = self.run_plugin(built("nested"), "look_up 3", "handle 7", "look_up 4")
        self.assertEqual(said, ["found 4", "handled 178", "found 5"])
        self.assertEqual(trace.payloads, [
            "handle is called on eth0 (index 2) with key 7",
            "look_up: key 7",
            "look_up: 8, type 70, by plugged, to its caller",
            "handle gives 178"])

    def test_timing(self):
        trace, said = self.run_plugin(f"{built('timing')} func=do_work", "time 100000")
        found = re.match(r"do_work: calls 100 total (\d+) ns missed 0, 0 impossible", trace.payloads[-1])
        self.assertTrue(found, trace)
        self.assertLess(int(found[1]), int(said[0].split()[1]))

    def test_no_call_takes_less_than_nothing(self):
        """The first handler of a plugin fetches pages before it looks at the clock."""
        trace, _ = self.run_plugin(f"{built('timing')} func=recurse maxactive=10", "recurse 9", "recurse 3")
        self.assertRegex(trace.payloads[-1], r"^recurse: calls 14 total \d+ ns missed 0, 0 impossible$")

    def test_maxactive(self):
        trace, said = self.run_plugin(f"{built('timing')} func=recurse maxactive=3", "recurse 9")
        self.assertEqual(said, ["depth 9"])
        self.assertRegex(trace.payloads[-1], r"recurse: calls 3 total \d+ ns missed 7")
        self.assertIn("Missed probing 7 instances of recurse", trace.err)

    def test_default_maxactive(self):
        """As in kprobes: ten, or twice the processors."""
        trace, _ = self.run_plugin(f"{built('timing')} func=recurse maxactive=0", "recurse 299")
        most = min(300, max(10, 2 * os.sysconf("SC_NPROCESSORS_ONLN")))
        self.assertRegex(trace.payloads[-1], rf"recurse: calls {most} total \d+ ns missed {300 - most}")

    def test_repair(self):
        for how, value in (("argument", 8), ("result", 55), ("skip", 77)):
            _, said = self.run_plugin(f"{built('repair')} how={how}", "checked -4", "checked 4")
            self.assertEqual(said, [f"checked {value}", "checked 8"])

    def test_arguments(self):
        trace, said = self.run_plugin(built("arguments"), "mixed 1", "mixed 1")
        self.assertEqual(said, ["mixed 1099511627776"] * 2)
        one = [r"a=-7 b=2.5 c=three d=4.25 e=-5 f=6 g=\S+ h=1099511627776 i=-8.5 j=-9 k=10.75",
               "now h=2 j=3 k=4", "second: a=-7 b=2.5"]
        once = [r"plugin arguments.so: the entry of mixed ended without jprobe_return\(\)"]
        self.assertEqual(len(trace.payloads), 7, trace)
        for line, wanted in zip(trace.payloads, one + once + one):
            self.assertRegex(line, f"^{wanted}$")

    def test_rules(self):
        trace, _ = self.run_plugin(built("rules"), "do_work 5")
        self.assertEqual(trace.payloads, [
            "both -22 neither -22 unmapped -22 inside -22", "NULL -22 none -22", "not entry -22",
            "array -2, rolled back 1 1", "one 0, the rest 0", "again -22, opcode 1",
            "never 0000000000000000, disable -22",
            "hit 0", "hit 1",
            "hit 0", "enabled: 0", "hit 1", "hit 2",
            "hit 0", "late: 0", "hit 1", "hit 2", "hit 3",
            "hit 0", "hit 1", "disabled: 0",
            "hit 0",
            "one stays at an address: 1; hits 5 4 2 1"])

    def test_json(self):
        trace, _ = self.run_plugin(built("nested"), "handle 7", options=("--format", "json"))
        logs = trace.events("log")
        self.assertEqual(logs[-1]["message"], "handle gives 178")
        self.assertEqual((logs[0]["level"], logs[0]["comm"]), (6, "plugged"))
        for summary in trace.summaries():
            self.assertTrue(adds_up(summary), summary)

    def test_formats(self):
        trace, _ = self.run_plugin(f"{built('formats')} numbers=4,0x10 flag text=\"two words\"", "do_work 1")
        address = r"do_work\+0x0/0x[0-9a-f]+ \[plugged\]"
        wanted = [re.escape(line) for line in (
            "numbers 2: 4 16 flag 1 text two words",
            "0000000000001234|    0000000000001234|0000000000001234  |1234",
            "   42|42   |00042|+42|ff|0xff|FF|10|c|%",
            "44|4464|-1|-1|7|4000000000|18446744073709551615",
            "text|     right|left      |cut|   7|(null)",
            "192.168.1.254 192.168.001.254 c0:a8:01:fe:ab:cd c0 a8 01 c0:a8:01:fe:ab:cd",
            "3.14 1e+10", "one line, in parts", "unfinished", "another", "and a third",
            "list 123, first 1", "a copy 0", "-7 too, 0 -12, -22", "IS_ERR 1 -12", "min 3 max 4 align 8 of 4")]
        wanted += [address, f"do_work {address}", r"    do_work\+0x0 \[plugged\].*"]
        lines = trace.payloads
        for line, pattern in zip(lines, wanted):
            self.assertRegex(line, f"^{pattern}$")
        self.assertRegex(lines[len(wanted)], r"^    serve")
        self.assertTrue(any(line.startswith("    main") for line in lines), lines)
        self.assertEqual(lines[-2:], ["1 1 plugged", "-14 101 -14"])

    def test_run(self):
        done = ktrace("run", "--plugin", f"{built('timing')} func=recurse", "--", program("plugged"))
        self.assertEqual(done.status, 0, done)
        self.assertRegex(done.out, "recurse: calls 0 total 0 ns missed 0")


class Memory(PluginTest):
    def test_deep(self):
        trace, said = self.run_plugin(built("deep"), "list 1000")
        self.assertEqual(trace.payloads, ["1000 packets, 1498500"])
        self.assertEqual(said, ["sum 1498500"])

    def test_deep_in_a_real_program(self):
        """1,000 tuples of python's, each in the one before, with the numbers and the types that they point to."""
        python = os.path.realpath("/usr/bin/python3")
        if not os.path.exists(python) or "python3.11" not in python:
            self.skipTest("the plugin knows the structures of CPython 3.11")
        script = ("chain = None\nfor n in range(1000): chain = (n * 7, chain)\n"
                  "print('ready', flush=True)\ninput()\nprint('first', next(iter(chain)), flush=True)\ninput()")
        target = self.start(python, "-I", "-S", "-c", script)
        tracer = self.plug(target, built("tuples"))
        target.tell()
        target.truth("^first 6993$")
        trace = tracer.stop()
        self.check_untouched(target)
        self.assertEqual([line for line in trace.payloads if line.startswith("1000 ")],
                         [f"1000 deep in {os.path.basename(python)}, sum {sum(range(1000)) * 7}, then NoneType"], trace)

    def test_writes(self):
        trace, said = self.run_plugin(f"{built('deep')} write", "list 1000", "value 1")
        self.assertEqual(said, ["sum 1000", "value 6"])
        self.assertEqual(trace.payloads[1:], [
            "shared_value is 5", "and now 6", "left 4 of 4 at 16, 4 of 4 in the code", "no name at 0"])

    @unittest.skipIf(SLOW, "20,000 pages in a handler take longer than 2 s on a machine that is emulated")
    def test_more_pages_than_the_pool(self):
        trace, said = self.run_plugin(f"{built('deep')} write", "list 20000")
        self.assertEqual(trace.payloads[0], f"20000 packets, {sum(range(20000)) * 3}")
        self.assertEqual(said, ["sum 20000"])

    def test_no_address_of_both(self):
        """Without randomization both would lie at the same addresses."""
        workshop.require("setarch")
        target = self.target("setarch", "-R")
        tracer = self.plug(target, built("deep"))
        (host,) = hosts_of(tracer)
        # Pages of the target's that module_init has touched are at its addresses until the host waits for its next turn.
        until(lambda: is_asleep(host), "the host waits")
        theirs = list(ranges(target.pid))
        for start, end in ranges(host):
            for low, high in theirs:
                self.assertTrue(end <= low or high <= start, f"{start:x} {end:x} {low:x} {high:x}")
        target.tell("list 1000")
        target.truth("sum 1498500")
        self.assertEqual(tracer.stop().payloads, ["1000 packets, 1498500"])

    def test_target_maps_where_the_host_is(self):
        target = self.target()
        tracer = self.plug(target, built("deep"))
        (host,) = hosts_of(tracer)
        start = min(ranges(host))[0]
        target.tell("list 10")
        target.truth("sum 135")
        # The window is 16 GiB, from a multiple of 1 GiB on.
        target.tell(f"map {start >> 30 << 14}")
        target.truth("mapped 1")
        target.tell("list 10")
        target.truth("sum 135")
        trace = tracer.stop()
        self.assertIn("has mapped memory at the addresses that the plugin itself is at", trace.err)
        self.assertEqual(len(trace.payloads), 1)
        self.check_untouched(target)


class GoneWrong(PluginTest):
    def bad(self, how, error, ran=3):
        trace, said = self.run_plugin(f"{built('bad')} how={how}", "do_work 3")
        self.assertEqual(said, ["done 3"])
        self.assertRegex(trace.err, error)
        if ran is not None:
            self.assertEqual(trace.payloads[-1], f"the other one ran {ran} times")
        return trace

    def test_fault(self):
        self.bad("fault", r"plugin bad.so: its pre_handler of do_work faulted \(SIGSEGV at 0x10, in bad.so\+0x\w+\); the probe is disabled")
        self.bad("wild", r"its pre_handler of do_work faulted \(SIGSEGV(?: at 0x34567890abcdef)?, in")  # arm64: but for the tag
        self.bad("jump", r"its pre_handler of do_work faulted \(SIGSEGV at 0x\w+\)")
        self.bad("overflow", r"its pre_handler of do_work faulted \(SIGSEGV at")

    def test_fault_handler(self):
        trace = self.bad("handled", "Attached 2 probes")
        self.assertRegex(trace.payloads[0], "page fault at ")
        self.assertNotIn("disabled", trace.err)

    def test_gives_up(self):
        self.bad("bug", r"its pre_handler of do_work gave up \(BUG at \S+bad.c:\d+\); the probe is disabled")
        self.bad("abort", r"its pre_handler of do_work gave up \(SIGABRT")

    def test_exit(self):
        self.bad("exit", r"plugin bad.so: its pre_handler of do_work ended its host.*; its probes are removed", ran=None)

    def test_loop(self):
        for how in ("loop", "ask", "sleep"):
            self.bad(how, r"plugin bad.so: its pre_handler of do_work took longer than 2 s; the probe is disabled")

    def test_long_on_a_busy_machine(self):
        """It is ended by its own time, here 0.9 s once, and not by the time that others have taken from it."""
        for _ in range(5 * len(os.sched_getaffinity(0))):
            busy = subprocess.Popen([sys.executable, "-c", "while True: pass"], start_new_session=True)
            self.addCleanup(busy.wait)
            self.addCleanup(busy.kill)
        trace = self.bad("long", "Attached 2 probes")
        self.assertNotIn("disabled", trace.err)

    # Which handlers run to their end in ten calls, where one of them goes wrong.
    FAULTY = {"pre": ("pre_handler", (0, 0, 10, 10, 10)), "post": ("post_handler", (1, 0, 10, 10, 10)),
              "entry": ("entry", (10, 10, 0, 10, 10)), "begins": ("entry_handler", (10, 10, 10, 0, 0)),
              "returns": ("handler", (10, 10, 10, 10, 0))}

    def check_faulty(self, which, options, error, counts, told=()):
        trace, said = self.run_plugin(f"{built('faulty')} which={which} {options}", "recurse 9")
        self.assertEqual(said, ["depth 9"])
        errors = re.findall(r"(?m)^ktrace: plugin faulty.so: (.*)", trace.err)
        self.assertEqual(len(errors), 1 if error else 0, trace)
        if error:
            self.assertRegex(errors[0], error)
        self.assertEqual(trace.payloads, [*told, "pre %d post %d entry %d begins %d returns %d" % counts], trace)

    def test_every_handler(self):
        """Its probe's own fault_handler is asked; the probe is disabled at once, for calls in flight as well."""
        for which, (name, counts) in self.FAULTY.items():
            with self.subTest(which=which):
                error = rf"^its {name} of recurse faulted \(SIGSEGV at 0x10, .*\); the probe is disabled$"
                self.check_faulty(which, "", error, counts, ["page fault"])
                self.check_faulty(which, "handled", None, (10, 10, 10, 10, 10), ["page fault"])

    def test_handlers_that_loop(self):
        for which in ("entry", "returns"):  # on a stack of its own; with calls in flight
            name, counts = self.FAULTY[which]
            with self.subTest(which=which):
                self.check_faulty(which, "loops", rf"^its {name} of recurse took longer than 2 s; the probe is disabled$", counts)

    def test_throw(self):
        trace, said = self.run_plugin(built("throws"), "do_work 3")
        self.assertEqual(said, ["done 3"])
        self.assertIn("its pre_handler of do_work threw an exception (no such thing); the probe is disabled", trace.err)
        self.assertEqual(trace.payloads, ["left"])

    def test_instruction_faults(self):
        for options in ("", "post"):
            trace, said = self.run_plugin(f"{built('fault')} {options}", "read_at 1", "read_at 0")
            self.assertEqual(said, ["read 5", "read 5"])
            self.assertEqual(trace.payloads, ["page fault at +0"])

    def test_instruction_fault_unhandled(self):
        target = self.target()
        tracer = self.plug(target, f"{built('fault')} mend=0")
        target.tell("read_at 0")
        target.truth(r"signal 11 at \(nil\)")
        self.assertEqual(target.end(), 3)
        self.assertEqual(tracer.finish().payloads, ["page fault at +0"])

    TRAPS = {0: (signal.SIGFPE, 70), 3: (signal.SIGTRAP, 73), 6: (signal.SIGILL, 76), 13: (signal.SIGSEGV, 5),
             14: (signal.SIGSEGV, 5)}  # the signal, and what the target's function returns once it is mended

    @unittest.skipUnless(platform.machine() == "x86_64", "these are x86's traps")
    def test_every_trap_of_a_handler(self):
        for trap in self.TRAPS:
            with self.subTest(trap=trap):
                trace, said = self.run_plugin(f"{built('traps')} trap={trap}", "do_work 1")
                self.assertEqual(said, ["done 1"])
                value = 77 if trap > 6 else 6
                self.assertEqual(trace.payloads, [f"trap {trap}", f"went on with {value}"], trace)
                self.assertNotIn("disabled", trace.err)
                trace, said = self.run_plugin(f"{built('traps')} trap={trap} mend=0", "do_work 2")
                self.assertEqual(said, ["done 2"])
                self.assertEqual(trace.payloads, [f"trap {trap}"], trace)
                self.assertRegex(trace.err, f"of do_work faulted \\({self.TRAPS[trap][0].name}.*; the probe is disabled")

    @unittest.skipUnless(platform.machine() == "x86_64", "these are x86's traps")
    def test_every_trap_of_an_instruction(self):
        """But for a breakpoint of the program's own, which is refused."""
        for trap, (number, value) in self.TRAPS.items():
            if trap == 3:
                continue
            with self.subTest(trap=trap):
                trace, said = self.run_plugin(f"{built('traps')} trap={trap} handler=0", f"trap {trap}")
                self.assertEqual(said, [f"got {value}"])
                self.assertEqual(trace.payloads, [f"trap {trap}"], trace)
                target = self.target()
                tracer = self.plug(target, f"{built('traps')} trap={trap} handler=0 mend=0")
                target.tell(f"trap {trap}")
                target.truth(f"signal {int(number)} at ")
                self.assertEqual(target.end(), 3)
                self.assertEqual(tracer.finish().payloads, [f"trap {trap}"])

    def test_host_killed(self):
        target = self.target()
        tracer = self.plug(target, built("deep"), options=("-k", "sum_list"))
        (host,) = hosts_of(tracer)
        os.kill(host, signal.SIGKILL)
        until(lambda: not os.path.exists(f"/proc/{host}") or state_of(f"/proc/{host}") in "ZX", "the host is dead")
        target.tell("list 5")
        target.truth("sum 30")
        trace = tracer.stop()
        self.assertRegex(trace.err, "plugin deep.so: .* its probes are removed")
        self.assertIn("sum_list+0x0", trace.payloads)

    def test_inherits_nothing(self):
        """Neither the host nor the guardian has ktrace's sockets and files."""
        target = self.target()
        tracer = self.plug(target, built("deep"))
        (host,) = hosts_of(tracer)

        def files(pid):
            """Behind the three that all have; sockets and pipes by kind."""
            links = [link_of(f"/proc/{pid}/fd/{n}") for n in os.listdir(f"/proc/{pid}/fd") if int(n) > 2]
            return sorted(re.sub(r":?\[\d+\]$", "", link) for link in links if link)

        def link_of(path):
            """None: it has been closed meanwhile."""
            try:
                return os.readlink(path)
            except FileNotFoundError:
                return None

        self.assertEqual(files(host), ["/memfd:ktrace-plugin (deleted)", "socket"])
        self.assertEqual(files(tracer.pid), [])
        self.assertGreater(len(files(tracer.tracing)), 4)
        tracer.stop()

    def test_ktrace_killed(self):
        target = self.target()
        tracer = self.plug(target, built("deep"))
        (host,) = hosts_of(tracer)
        tracer.process.kill()
        until(lambda: not os.path.exists(f"/proc/{host}") or state_of(f"/proc/{host}") in "ZX", "the host has ended")

    def test_cannot_be_loaded(self):
        target = self.target()
        source = os.path.join(workshop.room(), "source.c")
        with open(source, "w") as f:
            f.write("#include <linux/module.h>\n")
        for plugin, error in (("/nonexistent.so", "cannot be read"), (f"{built('deep')} nothing=1", "there is no parameter nothing; it has write"),
                              (f"{built('timing')} maxactive=many", "parameter maxactive cannot be `many'"),
                              (f"{built('timing')} func=no_such", r"no function no_such[\s\S]*module_init returned -2"),
                              (source, f"; build it first: ktrace plugin build {source}"),
                              (any_library(), "it has no module_init"),  # the C library that it needs has one
                              (program("plugged"), "plugin ")):
            trace = ktrace("attach", "-p", target.pid, "--plugin", plugin)
            self.assertEqual(trace.status, 1, trace)
            self.assertRegex(trace.err, error)
            self.assertEqual(trace.out, "")  # what was not started does not leave
        self.check_untouched(target)


def any_library():
    """One that is no plugin, and needs the C library."""
    return workshop.build("library.so", "-shared", "-fPIC", "-Wl,--no-as-needed", sources=["libraries/mobile_part.c"])


class Load(PluginTest):
    def test_array_of_thousand(self):
        """1,000 probes as one array, taken out under the load of 16 threads, again and again."""
        rounds = int(os.environ.get("KTRACE_PLUGIN_ROUNDS", "3"))
        target = self.target()
        target.tell("load 16")
        target.truth("loaded")
        for _ in range(rounds):
            trace = self.plug(target, f"{built('many')}").stop()
            self.assertEqual(trace.status, 0, trace)
            self.assertRegex(trace.payloads[-1], r"^\d+ hits$")
            self.check_untouched(target)
        target.tell("enough")
        target.truth(r"worked \d+")
        self.assertEqual(target.end(), 0)


if __name__ == "__main__":
    unittest.main()
