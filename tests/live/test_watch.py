"""Watchpoints: every write is seen, in every thread, with what was there and what is."""
import ctypes
import os
import platform
import signal
import unittest
from collections import Counter

from live import NO_WATCHES, LiveTest, adds_up, debug_registers_trap, ktrace, program, wait_until_asleep, wait_until_let_go
from test_sleepers import WOKEN
from workshop import address_in_file, build, offset_of

LIBC = ctypes.CDLL(None, use_errno=True)
SEIZE, INTERRUPT, DETACH, PEEKUSER, GETREGSET = 0x4206, 0x4207, 17, 3, 0x4204
U_DEBUGREG, WALL = 848, 0x40000000  # offsetof(struct user, u_debugreg); __WALL
HW_WATCH = 0x403  # NT_ARM_HW_WATCH


class Area(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


def request(pid, what, at=0, data=0):
    LIBC.ptrace.restype = ctypes.c_long
    return LIBC.ptrace(ctypes.c_long(what), ctypes.c_long(pid), ctypes.c_long(at), ctypes.c_long(data))


def are_armed(pid):
    """Any debug registers of a thread that is not traced?"""
    assert request(pid, SEIZE) == 0 and request(pid, INTERRUPT) == 0
    os.waitpid(pid, WALL)
    if platform.machine() == "x86_64":
        armed = request(pid, PEEKUSER, U_DEBUGREG + 8 * 7) != 0
    else:
        state = (ctypes.c_uint32 * 66)()  # struct user_hwdebug_state: two words, then address (2 words), control, padding
        area = Area(ctypes.addressof(state), ctypes.sizeof(state))
        assert request(pid, GETREGSET, HW_WATCH, ctypes.addressof(area)) == 0
        armed = any(state[n] & 1 for n in range(4, 66, 4))
    request(pid, DETACH)
    return armed


@unittest.skipUnless(debug_registers_trap(), NO_WATCHES)
class Watch(LiveTest):
    def seen(self, line, *options, trace_format="json", target=None):
        target = self.start(target or program("watch"))
        self.pid = target.pid
        tracer = self.attach(target, "--format", trace_format, *options)
        target.tell(line)
        target.truth("^done$")
        self.run = tracer.stop()
        self.assertEqual(self.run.status, 0, self.run)
        self.check_untouched(target)
        target.tell("write 10")  # nothing is left in the debug registers
        target.truth("^done$")
        self.assertEqual(target.end(), 0)
        if trace_format == "json":
            for summary in self.run.summaries():
                self.assertTrue(adds_up(summary), summary)
            return self.run.events("watch")

    def test_old_and_new(self):
        events = self.seen("write 4", "-w", "counter")
        self.assertEqual([(e["old"], e["new"]) for e in events], [(5, 6), (6, 7), (7, 8), (8, 9)])
        self.assertEqual({e["at"][0]["symbol"] for e in events}, {"bump"})
        self.assertEqual({e["symbol"] for e in events}, {"counter"})

    def test_every_write_of_threads(self):
        """10,000 writes by 4 threads that were not there when ktrace came."""
        self.seen("threads 4 2500", "-w", "counter", "--count")
        self.assertEqual(self.run.summary("counter")["hits"], 10000)

    def test_every_write_with_probes(self):
        """The instructions that write are probed themselves: copies in slots, single steps."""
        for options in (["-k", "bump"], ["-r", "bump"], ["-k", f"bump+{self.write_offset()}", "--post"]):
            self.seen("threads 4 500", "-w", "counter", *options)
            self.assertEqual(self.run.summary("counter")["hits"], 2000)
            self.assertEqual(self.run.summary("bump")["hits"], 2000)
            self.assertEqual({e["at"][0]["symbol"] for e in self.run.events("watch")}, {"bump"})

    def write_offset(self):
        return offset_of(program("watch"), "bump", r"(?:(?:mov +%eax|addl +\$0x1),.*<counter>|str\b)")

    def test_thread_local(self):
        events = self.seen("threads 3 100", "-w", "own")
        by_thread = {}
        for event in events:
            by_thread.setdefault(event["tid"], []).append((event["old"], event["new"]))
        self.assertEqual(list(by_thread.values()), [[(n, n + 1) for n in range(100)]] * 3)

    def test_threads_that_are_there(self):
        """Armed in those that run as ktrace comes, and in those that they are followed by: from one event on each sees all."""
        target = self.start(program("watch"))
        target.tell("busy 4")
        target.truth("^busy 4$")
        tracer = self.attach(target, "--format", "json", "-w", "own")
        target.tell("rest")
        written = {}
        while len(written) < 4:
            line = target.truth(r"^own (\d+) (\d+)")
            written[int(line[1])] = int(line[2])
        target.truth("^done$")
        target.tell("threads 2 30")
        target.truth("^done$")
        trace = tracer.stop()
        self.check_untouched(target)
        chains = {}
        for event in trace.events("watch"):
            chains.setdefault(event["tid"], []).append((event["old"], event["new"]))
        self.assertEqual(len(chains), 6)
        for tid, chain in chains.items():
            first = chain[0][0]
            self.assertEqual(chain, [(n, n + 1) for n in range(first, first + len(chain))])
            self.assertEqual(chain[-1][1], written.get(tid, 30))
            self.assertTrue(tid in written or first == 0, chain[0])

    def test_parts_and_types(self):
        events = self.seen("touch", "-w", "cfg.limit", "-w", "cfg.table[2]", "-w", "flag", "-w", "ratio")
        self.assertEqual([(e["symbol"], e["old"], e["new"]) for e in events],
                         [("flag", "\x00", "\x07"), ("cfg.limit", 0, -3), ("cfg.table[2]", 0, 9), ("ratio", 0.5, 1.5)])

    def test_several_registers(self):
        events = self.seen("touch", "-w", "large/32")
        self.assertEqual([e["new"]["all"][3] for e in events], [8])

    def test_access(self):
        events = self.seen("touch", "-w", "counter:rw")
        self.assertEqual([e["at"][0]["symbol"] for e in events], ["look", "same", "same"])
        self.seen("touch", "-w", "counter:rw", trace_format="text")
        self.assertRegex(self.run.payloads[0], r"^counter 5 \(unchanged\) at look\+0x[0-9a-f]+$")

    def test_execute(self):
        events = self.seen("write 3", "-w", "bump:x")
        self.assertEqual([(e["at"][0]["symbol"], e["at"][0]["offset"]) for e in events], [("bump", 0)] * 3)

    def test_text(self):
        self.seen("write 1", "-w", "counter", trace_format="text")
        self.assertRegex(self.run.payloads[0], r"^counter 5 -> 6 at bump\+0x[0-9a-f]+$")

    def test_address(self):
        path = build("watch", "-O2", "-pthread", "-no-pie")
        address = address_in_file(path, "counter")
        events = self.seen("write 2", "-w", f"{address:#x}/4", target=path)
        self.assertEqual([(e["old"], e["new"]) for e in events], [(5, 6), (6, 7)])

    def test_where_nothing_is_mapped(self):
        self.seen("write 1", "-w", "0x10:w", "-w", "counter", trace_format="text")
        self.assertIn(f"nothing is mapped at 0x10 in process {self.pid} yet", self.run.err)
        self.assertEqual(len(self.run.payloads), 1, self.run)

    def test_without_debug_information(self):
        events = self.seen("write 2", "-w", "counter", target=build("watch", "-O2", "-pthread"))
        self.assertEqual([(e["old"], e["new"]) for e in events], [(5, 6), (6, 7)])

    def test_filters(self):
        events = self.seen("write 20", "-w", "counter", "--if", "var.counter % 2 == 0", "--every", "3", "--stack=1")
        self.assertEqual([e["new"] for e in events], [10, 16, 22])

    def test_sleepers_sleep_on(self):
        """Every thread is stopped once at attach, and once at detach: no system call ends for it."""
        for call in sorted(WOKEN):
            with self.subTest(call=call):
                target = self.start(program("sleeper"), call)
                wait_until_asleep(target.pid)
                tracer = self.attach(target, "-w", "listener")
                wait_until_asleep(target.pid)
                self.assertEqual(tracer.stop().status, 0)
                self.check_untouched(target)
                wait_until_asleep(target.pid)
                target.tell("wake")
                self.assertEqual(target.truth(r"woke (-?\d+) (\d+) ").groups(), ("1", "0"), call)
                target.truth("done")
                self.assertEqual(target.end(), 0)

    def test_killed(self):
        """The guardian clears the debug registers of threads that run and of those that sleep."""
        target = self.start(program("watch"))
        # Killed while it maps memory for jumps, ktrace leaves that mapping.
        tracer = self.attach(target, "--engine", "trap", "-w", "counter", "-k", "bump")
        target.tell("write 3")
        target.truth("^done$")
        os.kill(tracer.tracing, signal.SIGKILL)
        killed = tracer.finish()
        self.assertIn("took out of process", killed.err)
        self.assertFalse(are_armed(target.pid))
        target.tell("write 10")
        target.truth("^done$")
        self.check_untouched(target)
        self.assertEqual(target.end(), 0)

    def test_child_is_clean(self):
        target = self.start(program("watch"))
        tracer = self.attach(target, "-w", "counter", "-w", "flag", "--format", "json")
        for way in ("fork", "vfork", "clone", "spawn", "exec"):
            target.tell(f"child {way} 10")
            self.assertEqual(target.truth(r"^child \d+ (-?\d+)$")[1], "0", way)
        target.tell("sleeper")
        child = int(target.truth(r"^child (\d+)$")[1])
        self.addCleanup(os.kill, child, signal.SIGKILL)
        wait_until_let_go(child)
        self.assertFalse(are_armed(child))
        trace = tracer.stop()
        self.assertEqual(trace.summary("counter")["hits"], 0)

    def test_children_that_are_followed(self):
        """Their writes are seen, each under its own pid; a program that they become has the variable, too."""
        target = self.start(program("watch"))
        tracer = self.attach(target, "-f", "-w", "counter", "--format", "json")
        children = []
        for way in ("fork", "vfork", "clone", "spawn", "exec", "fork"):
            target.tell(f"child {way} 10")
            child = target.truth(r"^child (\d+) (-?\d+)$")
            self.assertEqual(child[2], "0", way)
            children.append(int(child[1]))
        target.tell("write 10")
        target.truth("^done$")
        target.truth("^done$")
        trace = tracer.stop()
        self.assertEqual(trace.status, 0, trace)
        self.assertEqual(Counter(e["pid"] for e in trace.events("watch")), dict.fromkeys([*children, target.pid], 10))
        new = {pid: [e["new"] for e in trace.events("watch") if e["pid"] == pid] for pid in [*children, target.pid]}
        shared = [n for pid in children[1:3] for n in new[pid]]  # vfork's and clone's child, in the parent's memory
        self.assertEqual([*shared, *new[target.pid]], list(range(6, 36)))
        for pid, first in zip((children[0], *children[3:]), (6, 6, 6, 26)):
            self.assertEqual(new[pid], list(range(first, first + 10)))
        self.assertEqual(trace.summary("counter")["hits"], 70)
        self.check_untouched(target)

    def test_followed_into_a_program_without_the_variable(self):
        trace = ktrace("run", "-f", "-w", "counter", "--count", "--format", "json", "--", "sh", "-c",
                       f"{program('watch')} 7; /bin/true; {program('watch')} 5")
        self.assertEqual(trace.status, 125, trace)  # the shell has none
        trace = ktrace("run", "-f", "--allow-missing", "-w", "counter", "--count", "--format", "json", "--", "sh", "-c",
                       f"{program('watch')} 7; /bin/true; {program('watch')} 5")
        self.assertEqual(trace.status, 0, trace)
        self.assertEqual(trace.summary("counter")["hits"], 12)

    def test_run(self):
        trace = ktrace("run", "-w", "counter", "--count", "--", program("watch"))
        self.assertEqual(trace.status, 0, trace)
        self.assertIn("Attached 1 probe", trace.err)

    def test_refused(self):
        for wspec, why in (("no_such", "no global, static or thread-local variable"), ("large", "more than this machine"),
                           ("0x1001/4", "not a multiple"), ("cfg.none", "has no member"), ("counter/0", "number of bytes"),
                           ("counter:q", "of the kinds"), ("countr", "did you mean counter?"),
                           ("bump", "is a function, not a variable")):
            trace = ktrace("run", "-w", wspec, "--", program("watch"))
            self.assertNotEqual(trace.status, 0)
            self.assertIn(why, trace.err)
        trace = ktrace("run", "-w", "cfg.limit", "--", build("watch", "-g0", "-pthread"))
        self.assertRegex(trace.err, "what `cfg` consists of is not known: .* was built without -g")
        trace = ktrace("run", *[o for n in range(5) for o in ("-w", "counter")], "--", program("watch"))
        self.assertIn("need 5 debug registers", trace.err)
