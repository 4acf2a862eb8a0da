"""ktrace ctl: the probes of a trace that runs come and go, and every hit is counted by who was on when it happened."""
import glob
import os
import platform
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest
import unittest.mock

from live import (KTRACE, LIMIT, LiveTest, adds_up, ktrace, program, thread_folders, until,
                  wait_until_asleep)


WATCHES = platform.machine() == "x86_64"  # debug registers


def ctl(target, *arguments, **options):
    return ktrace("ctl", "-p", target.pid, *arguments, **options)


class Ctl(LiveTest):
    """A target whose threads call do_work when told to, and what ctl says of its trace."""

    threads, calls = 2, 500

    def begin(self, *options, threads=threads, calls=calls):
        self.target = self.start(program("calls"), threads, calls)
        self.tracer = self.attach(self.target, *options)

    def ask(self, *arguments):
        """An order that is carried out: its answer."""
        answer = ctl(self.target, *arguments)
        self.assertEqual(answer.status, 0, answer)
        self.assertEqual(answer.err, "")
        return answer.out

    def refused(self, *arguments, status=1):
        answer = ctl(self.target, *arguments)
        self.assertEqual(answer.status, status, answer)
        self.assertEqual(answer.out, "")
        self.assertRegex(answer.err, r"^ktrace: ")
        return answer.err

    def work(self):
        self.target.tell()
        return int(self.target.truth(r"do_work (\d+) sum")[1])

    def hits(self):
        """By number, from ctl stats; the sums are checked."""
        found = {}
        for line in self.ask("stats").splitlines():
            counts = re.match(r"(\d+) .*: (\d+) hits = (.*)", line)
            if counts:
                parts = [int(n) for n in re.findall(r"(\d+) [a-z]+", counts[3])]
                self.assertEqual(int(counts[2]), sum(parts), line)
                found[int(counts[1])] = int(counts[2])
        return found

    def finish(self):
        trace = self.tracer.stop()
        self.assertEqual(trace.status, 0, trace)
        self.check_untouched(self.target)
        self.assertEqual(self.target.end(), 0)
        return trace


class Orders(Ctl):
    def test_list_has_the_layout_of_kprobes(self):
        self.begin("-k", "do_work+4", "-r", "do_work", "-j", "do_work")
        lines = self.ask("list").splitlines()
        self.assertEqual(len(lines), 3, lines)
        for line, kind, offset in zip(lines, "krj", (4, 0, 0)):
            self.assertRegex(line, rf"^[0-9a-f]{{16}} {kind} do_work\+0x{offset} \[calls\]$")
        self.assertEqual(int(lines[0].split()[0], 16) - int(lines[1].split()[0], 16), 4)
        self.ask("disable", "2")
        self.assertEqual([line.endswith(" [DISABLED]") for line in self.ask("list").splitlines()],
                         [False, True, False])
        self.finish()

    def test_stats_show_numbers_counts_and_tables(self):
        self.begin("-r", "do_work", "-k", "do_work", "--count", "--by", "tid")
        calls = self.work()
        out = self.ask("stats")
        self.assertRegex(out, rf"(?m)^1 do_work\+0x0 \[calls\] r: {calls} hits = {calls} events \+ 0 filtered")
        self.assertRegex(out, rf"(?m)^2 do_work\+0x0 \[calls\] k: {calls} hits = {calls} events \+ 0 filtered")
        self.assertEqual(len(re.findall(rf"(?m)^ *\d+ +{self.calls}$", out)), 2 * self.threads, out)
        self.finish()

    def test_locations_of_globs_that_nobody_came_by_are_told_in_one_line(self):
        self.begin("-k", "libc.so.6:mem*", "-k", "do_work", "--count")
        calls = self.work()
        stats = self.ask("stats")
        self.assertIn(f"2 do_work+0x0 [calls] k: {calls} hits", stats)
        folded = re.search(r"(?m)^libc.so.6:mem\* k: (\d+) of (\d+) locations were never hit$", stats)
        self.assertEqual(len(re.findall(r"(?m)^1 ", stats)), int(folded[2]) - int(folded[1]))
        self.assertNotIn(": 0 hits", stats)
        self.assertEqual(len(ctl(self.target, "stats", "--format", "json").summaries()), int(folded[2]) + 1)
        trace = self.finish()
        self.assertRegex(trace.err, r"(?m)^libc.so.6:mem\* k: \d+ of \d+ locations were never hit$")
        self.assertNotIn(": 0 hits", trace.err)
        self.assertNotRegex(trace.out, r"(?m)^ *0 mem")

    def test_verbose_tells_each_of_them(self):
        self.begin("-k", "libc.so.6:mem*", "--count", "-v")
        self.assertNotIn("never hit", self.ask("stats"))
        self.assertGreater(self.finish().err.count(": 0 hits"), 8)

    def test_stats_as_json(self):
        self.begin("-k", "do_work", "--count")
        calls = self.work()
        answer = ctl(self.target, "stats", "--format", "json")
        summary = answer.summary("do_work")
        self.assertEqual((summary["probe"], summary["hits"], summary["count"]), (1, calls, calls))
        self.finish()

    def test_add_takes_the_options_of_probes(self):
        self.begin("-k", "do_work", "--count")
        self.work()
        out = self.ask("add", "-j", "do_work", "-r", "do_work", "--if", "args.n == 7", "--first", "1")
        self.assertEqual(out, "2 j do_work: 1 location\n3 r do_work: 1 location\n")
        calls = self.work()
        trace = self.finish()
        self.assertRegex(" ".join(p for p in trace.payloads if "(" in p), r'^do_work\(n=7, name="(alpha|beta)"\)$', trace)
        self.assertEqual(len([p for p in trace.payloads if "returned" in p]), 1, trace)
        self.assertRegex(trace.err, rf"k: {2 * calls} hits = {2 * calls} events")
        self.assertRegex(trace.err, rf"j: {calls} hits = 1 events \+ {calls - self.threads} filtered \+ "
                                    rf"{self.threads - 1} unselected")

    def test_disabled_probes_are_passed_by(self):
        self.begin("-k", "do_work", "-r", "do_work", "--count")
        calls = self.work()
        self.ask("disable", "do_work")
        self.check_no_trap()
        self.work()
        self.ask("enable", "1")
        self.work()
        self.assertEqual(self.hits(), {1: 2 * calls, 2: calls})
        self.finish()

    def test_off_leaves_alone_who_is_disabled(self):
        self.begin("-k", "do_work", "-j", "do_work", "--count")
        self.ask("disable", "1")
        self.ask("off")
        self.check_no_trap()
        self.work()
        self.assertEqual(self.hits(), {1: 0, 2: 0})
        self.assertRegex(self.ask("stats"), r"^All probes are off")
        self.assertEqual(self.ask("list").count("[DISABLED]"), 1)
        self.ask("enable", "1")
        self.assertEqual(self.ask("list").count("[DISABLED]"), 0)
        self.work()
        self.ask("on")
        calls = self.work()
        self.assertEqual(self.hits(), {1: calls, 2: calls})
        self.finish()

    def check_no_trap(self):
        """The function has its own bytes."""
        address = int(self.ask("list").split()[0], 16)
        code = self.code_of(address)
        with open(f"/proc/{self.target.pid}/mem", "rb") as memory:
            memory.seek(address)
            self.assertEqual(memory.read(len(code)), code)

    def code_of(self, address):
        with open(f"/proc/{self.target.pid}/maps") as maps:
            for line in maps:
                start, end = (int(a, 16) for a in line.split()[0].split("-"))
                if start <= address < end:
                    with open(line.split()[5], "rb") as file:
                        file.seek(int(line.split()[2], 16) + address - start)
                        return file.read(16)

    def test_removed_probes_keep_their_numbers_and_counts(self):
        self.begin("-k", "do_work", "-j", "do_work", "--count", "--format", "json")
        calls = self.work()
        self.ask("remove", "1")
        self.work()
        self.assertEqual(self.hits(), {2: 2 * calls})
        self.assertRegex(self.refused("enable", "1"), "probe 1 was removed")
        self.assertEqual(self.ask("add", "-k", "do_work"), "3 k do_work: 1 location\n")
        self.ask("remove", "2", "3")
        self.assertEqual(self.ask("list"), "")
        self.check_untouched_text()
        trace = self.finish()
        self.assertEqual([(s["probe"], s["hits"]) for s in trace.summaries()], [(1, calls), (2, 2 * calls), (3, 0)])

    def check_untouched_text(self):
        found = subprocess.run([KTRACE, "list", "-p", str(self.target.pid), "do_work"], stdout=subprocess.PIPE,
                               timeout=LIMIT, text=True, check=True)
        address = int(found.stdout.split()[0], 16)
        with open(f"/proc/{self.target.pid}/mem", "rb") as memory:
            memory.seek(address)
            self.assertEqual(memory.read(16), self.code_of(address))

    def test_a_set_is_added_whole_or_not_at_all(self):
        self.begin("-k", "do_work", "--count")
        error = self.refused("add", "-j", "do_work", "-r", "do_wrok")
        self.assertIn("did you mean do_work?", error)
        self.assertEqual(len(self.ask("list").splitlines()), 1)
        self.assertIn("^", self.refused("add", "-j", "do_work", "--print", "args.m"))
        self.refused("add", "-j", "do_work", "--print", "args.", status=2)
        self.refused("add", "-k", "do_work+1000000")
        self.assertRegex(self.ask("add", "-j", "do_work", "-r", "do_wrok", "--allow-missing"),
                         r"^2 j do_work: 1 location\n3 r do_wrok: 0 locations: no function do_wrok in calls and its .*\n$")
        self.assertRegex(self.ask("add", "-k", "libnone.so:some", "--allow-missing"),
                         r"^4 k libnone.so:some: 0 locations: it waits for libnone.so to be loaded\n$")
        calls = self.work()
        self.assertEqual(self.hits(), {1: calls, 2: calls})
        trace = self.finish()
        self.assertEqual(trace.err.count(" hits = "), 2, trace)

    def test_unknown_probes(self):
        self.begin("-k", "do_work")
        self.assertIn("probe 2 does not exist", self.refused("remove", "1", "2"))
        self.assertIn("`main' is no probe here", self.refused("disable", "main"))
        self.assertEqual(self.ask("list").count("\n"), 1)
        self.finish()

    def test_a_return_probe_leaves_with_calls_in_flight(self):
        """Its calls are unreturned; the trap at their caller is gone before they return."""
        self.target = self.start(program("calls"), self.threads, self.calls)
        wait_until_asleep(self.target.pid)  # in its first call of fgets, which is not seen
        self.tracer = self.attach(self.target, "-r", "libc.so.6:fgets", "--format", "json")
        calls = self.work() # and then the target waits in fgets for another line
        until(lambda: "1 unreturned" in self.ask("stats"), "it waits")
        self.ask("remove", "libc.so.6:fgets")
        self.assertEqual(self.work(), calls)
        summary = self.finish().summary("fgets")
        self.assertEqual((summary["hits"], summary["events"], summary["unreturned"]), (1, 0, 1))


@unittest.skipUnless(WATCHES, "debug registers of x86-64")
class Watchpoints(Ctl):
    """Threads write as fast as they can while watchpoints come and go."""

    def begin(self, *options):
        self.target = self.start(program("watch"))
        self.tracer = self.attach(self.target, *options)

    def busy(self, threads):
        self.target.tell(f"busy {threads}")
        self.target.truth(f"^busy {threads}$")

    def rest(self):
        """The threads come to rest, each behind one more write at least: how much each has written, by id."""
        self.target.tell("rest")
        own = {}
        while True:
            line = self.target.truth(r"^(own|wrote) (\d+) ?(\d+)?")
            if line[1] == "wrote":
                return own
            own[int(line[2])] = int(line[3])

    def writes(self, threads=3, count=40):
        self.target.tell(f"threads {threads} {count}")
        self.target.truth("^done$")
        return threads * count

    def test_added_under_load(self):
        """From the answer on every write of every thread is seen; new threads have it, too."""
        self.begin("-k", "look", "--format", "json")
        self.busy(4)
        self.assertEqual(self.ask("add", "-w", "own"), "2 w own: 1 location\n")
        written = self.rest()
        self.target.truth("^done$")
        self.assertEqual(self.ask("add", "-w", "counter", "--count"), "3 w counter: 1 location\n")
        before = self.hits()
        self.assertEqual(before[3], 0)
        count = self.writes()
        after = self.hits()
        self.assertEqual((after[2] - before[2], after[3]), (count, count))
        trace = self.finish()
        chains = {}
        for event in trace.events("watch"):
            chains.setdefault(event["tid"], []).append((event["old"], event["new"]))
        self.assertEqual(len(chains), len(written) + 3)
        for tid, chain in chains.items():
            first = chain[0][0]
            self.assertEqual(chain, [(n, n + 1) for n in range(first, first + len(chain))])
            self.assertEqual(chain[-1][1], written.get(tid, 40))

    def test_list_and_switches(self):
        self.begin("-w", "counter", "--count")
        self.assertRegex(self.ask("list"), r"^[0-9a-f]{16} w counter\+0x0 \[watch\]\n$")
        self.ask("disable", "1")
        self.assertRegex(self.ask("list"), r" w counter\+0x0 \[watch\] \[DISABLED\]\n$")
        self.writes()
        self.assertEqual(self.hits(), {1: 0})
        self.ask("enable", "counter")
        first = self.writes()
        self.ask("off")
        self.writes()
        self.assertEqual(self.hits(), {1: first})
        self.ask("on")
        second = self.writes()
        self.assertEqual(self.hits(), {1: first + second})
        self.ask("remove", "1")
        self.assertEqual(self.ask("list"), "")
        self.writes()
        self.assertEqual(self.finish().err.count(f" {first + second} hits = "), 1)

    def test_switched_under_load(self):
        """The threads that write are told in the middle of it; one that is off and another one do not mix."""
        self.begin("-w", "counter", "-w", "own", "-w", "ratio", "--count")
        self.busy(4)
        for _ in range(10):
            self.ask("disable", "1")
            self.ask("off")
            self.ask("on")
            self.ask("enable", "1")
            self.ask("remove", "own" if _ % 2 == 0 else "counter")
            added = self.ask("add", "-w", "own" if _ % 2 == 0 else "counter", "--count")
            if _ % 2 != 0:
                self.ask("disable", added.split()[0])
                self.ask("enable", added.split()[0])
            numbers = {"counter": None, "own": None}
            for number, spec in re.findall(r"(?m)^(\d+) (\w+)\+0x0", self.ask("stats")):
                numbers[spec] = int(number)
            if numbers["counter"] != 1:
                self.ask("remove", "counter")
                self.assertIn(" w counter: 1 location", self.ask("add", "-w", "counter", "--count"))
                break
        self.rest()
        self.target.truth("^done$")
        before = self.hits()
        count = self.writes()
        after = self.hits()
        self.assertEqual(sorted(after[n] - before[n] for n in after), [0, count, count])
        self.finish()

    def test_refused_whole(self):
        self.begin("-w", "counter", "-w", "own", "--count")
        self.busy(2)
        error = self.refused("add", "-k", "look", "-w", "cfg")
        self.assertIn("need 5 debug registers, and a processor has 4", error)
        self.assertIn("not a multiple", self.refused("add", "-w", "0x1001/4"))
        self.assertIn("no global, static or thread-local variable", self.refused("add", "-w", "ratio", "-w", "no_such"))
        self.refused("add", "-w", "counter:q", status=2)
        self.rest()
        self.target.truth("^done$")
        self.assertEqual(self.ask("list").count("\n"), 2)
        self.ask("remove", "own")
        self.assertEqual(self.ask("add", "-w", "cfg"), "3 w cfg: 1 location\n")
        self.target.tell("touch")
        self.target.truth("^done$")
        self.assertEqual(self.hits()[3], 3)
        self.finish()

    def test_a_sleeper_gets_it_undisturbed(self):
        for call in ("epoll_wait", "semop", "read", "futex"):
            with self.subTest(call=call):
                self.target = self.start(program("sleeper"), call)
                wait_until_asleep(self.target.pid)
                self.tracer = self.attach(self.target, "-k", "do_work", "--count")
                wait_until_asleep(self.target.pid)
                self.ask("add", "-w", "listener")
                wait_until_asleep(self.target.pid)
                self.ask("remove", "listener")
                self.target.tell("wake")
                self.assertEqual(self.target.truth(r"woke (-?\d+) (\d+) ").groups(), ("1", "0"), call)
                self.target.truth("done")
                self.finish()

    def test_a_parent_that_waits_for_its_vfork_child(self):
        """It cannot be interrupted; its child goes on meanwhile."""
        self.begin("-f", "-k", "bump", "--count")
        self.target.tell("borrow")
        until(lambda: self.hits()[1] > 0, "the child writes")
        self.ask("add", "-w", "counter", "--count")
        until(lambda: self.hits()[2] > 0, "the child's writes are seen")
        self.target.tell("enough")
        self.assertEqual(self.target.truth(r"^child \d+ (-?\d+)$")[1], "0")
        self.target.truth("^done$")
        before = self.hits()
        self.assertEqual(self.writes(), self.hits()[2] - before[2])
        self.finish()


class Processes(Ctl):
    def test_two_processes_are_one_trace(self):
        self.target = self.start(program("calls"), 2, 100)
        other = self.start(program("calls"), 1, 50)
        self.tracer = self.trace("-p", f"{self.target.pid},{other.pid}", "-k", "do_work", "--count")
        self.tracer.errors.until(rf"Attached 1 probe to {other.pid}")
        self.assertEqual(ctl(other, "add", "-r", "do_work", "--count").out, "2 r do_work: 2 locations\n")
        self.assertEqual(len(self.ask("list").splitlines()), 4)
        self.work()
        other.tell()
        other.truth("do_work 50")
        self.assertEqual(self.hits(), {1: 250, 2: 250})
        self.ask("remove", "1")
        self.work()
        other.tell()
        other.truth("do_work 50")
        self.assertEqual(self.hits(), {2: 500})
        self.assertEqual(other.end(), 0)
        self.assertEqual(len(self.ask("list").splitlines()), 1)
        self.finish()

    def test_children_have_the_probes_of_their_parents(self):
        """As they are when the child is born: disabled ones and removed ones, too."""
        self.target = self.start(program("processes"))
        self.tracer = self.attach(self.target, "-f", "-k", "do_work", "-j", "do_work", "--count")
        self.ask("disable", "1")
        first = self.make_children("fork", 3, 100)
        self.assertEqual(self.hits(), {1: 0, 2: first})
        self.ask("enable", "1")
        self.ask("remove", "2")
        self.assertEqual(self.ask("add", "-r", "do_work", "--count"), "3 r do_work: 1 location\n")
        second = self.make_children("fork", 3, 100) - first
        self.assertEqual(self.hits(), {1: second, 3: second})
        third = self.make_children("vfork", 3, 100) - first - second
        self.assertEqual(self.hits(), {1: second + third, 3: second + third})
        self.finish()

    def make_children(self, way, count, calls):
        self.target.tell(f"{way} {count} {calls}")
        return int(self.target.truth(r"children \d+ clean \d+ calls (\d+)")[1])


class UnderLoad(Ctl):
    """Orders in a random order, while several threads run through the probes as fast as they can."""

    rounds, orders = 4, 30  # of orders, between two looks at rest
    seconds = float(os.environ.get("KTRACE_CTL_SECONDS", "0"))  # that it takes at least
    places = {"-k": ["do_work", "do_work+4", "worker"], "-j": ["do_work", "worker"], "-r": ["do_work", "worker"],
              "-w": ["do_work:x"]}
    most, most_watched = 12, 4  # probes; a processor's debug registers

    def order_at_random(self, chance, known):
        """One order; `known`: by number, what is probed and whether it is on."""
        what = chance.choice(["add", "add", "remove", "enable", "disable", "disable", "off", "on", "stats", "list"])
        if what == "add" and len(known) < self.most:
            watched = sum(place == "do_work:x" for place, _ in known.values())
            kinds = [kind for kind in self.places if kind != "-w" or (WATCHES and watched < self.most_watched)]
            kind = chance.choice(kinds)
            place = chance.choice(self.places[kind])
            known[int(self.ask("add", kind, place, "--count").split()[0])] = (place, True)
        elif what in ("remove", "enable", "disable") and known:
            number = chance.choice(sorted(known))
            self.ask(what, number)
            place, _ = known.pop(number)
            if what != "remove":
                known[number] = (place, what == "enable")
        elif what in ("off", "on", "stats", "list"):
            self.ask(what)
            if what in ("off", "on"):
                self.on = what == "on"

    def orders_under_load(self, chance, known):
        """Some orders, while the target works; answers how often it called do_work meanwhile."""
        stop, done = threading.Event(), [0]

        def keep_busy():
            while not stop.is_set():
                done[0] += self.work()

        busy = threading.Thread(target=keep_busy)
        busy.start()
        try:
            for _ in range(self.orders):
                self.order_at_random(chance, known)
        finally:
            stop.set()
            busy.join()
        return done[0]

    def check_at_rest(self, known, seed):
        """Who is on now counts exactly what is called now, the others nothing; answers all hits, and the calls."""
        before = self.hits()
        calls = self.work()
        after = self.hits()
        for number, (place, is_on) in known.items():
            each = self.threads if place == "worker" else calls
            self.assertEqual(after[number] - before[number], each if is_on and self.on else 0, (seed, number, place))
        return after, calls

    def test_random_orders(self):
        seed = int(os.environ.get("KTRACE_CTL_SEED", random.randrange(1 << 32)))
        chance = random.Random(seed)
        self.threads = 4
        with self.subTest(seed=seed):
            self.begin("-k", "do_work", "--count", "--format", "json", threads=self.threads, calls=2000)
            self.on, known, calls, rounds = True, {1: ("do_work", True)}, 0, 0
            end = time.monotonic() + self.seconds
            while rounds < self.rounds or time.monotonic() < end:
                calls += self.orders_under_load(chance, known)
                hits, at_rest = self.check_at_rest(known, seed)
                calls += at_rest
                rounds += 1
            trace = self.tracer.stop()
            self.assertEqual(trace.status, 0, trace)
            for summary in trace.summaries():
                self.assertTrue(adds_up(summary), summary)
                self.assertLessEqual(summary["hits"], calls)
                if summary["probe"] in known:
                    self.assertEqual(summary["hits"], hits[summary["probe"]])
            self.check_untouched(self.target)
            self.assertEqual(self.target.end(), 0)
            if self.seconds:
                print(f"seed {seed}: {rounds * self.orders} orders, {len(trace.summaries())} locations, {calls} calls, "
                      f"{sum(s['hits'] for s in trace.summaries())} hits, exact at {rounds} rests")

    def test_many_clients_at_once(self):
        self.begin("-k", "do_work", "--count")
        answers = []

        def client():
            for _ in range(5):
                answers.append(ctl(self.target, "add", "-j", "do_work", "--count").status)
                answers.append(ctl(self.target, "list").status)

        clients = [threading.Thread(target=client) for _ in range(4)]
        for each in clients:
            each.start()
        calls = self.work()
        for each in clients:
            each.join()
        self.assertEqual(answers, [0] * 40)
        self.assertEqual(len(self.ask("list").splitlines()), 21)
        before = self.hits()
        self.work()
        after = self.hits()
        self.assertEqual({n: after[n] - before[n] for n in after}, {n: calls for n in range(1, 22)})
        self.finish()


def socket_of(tracer):
    for directory in (os.environ.get("XDG_RUNTIME_DIR"), None):
        path = f"{directory}/ktrace" if directory else f"/tmp/ktrace-{os.geteuid()}"
        for path in glob.glob(f"{path}/{tracer.tracing}-*.sock"):
            return path
    raise AssertionError("there is no socket")


def traced_by(ancestor):
    """The process `calls` below another one, by the numbers of this pid namespace."""
    children = []
    for task in thread_folders(ancestor):
        with open(f"{task}/children") as f:
            children += [int(pid) for pid in f.read().split()]
    for pid in children:
        with open(f"/proc/{pid}/comm") as f:
            if f.read() == "calls\n":
                return pid
        if found := traced_by(pid):
            return found
    return None


def own_number(pid):
    """The number that a process has in its own pid namespace."""
    with open(f"/proc/{pid}/status") as f:
        return int(re.search(r"^NSpid:.*\s(\d+)$", f.read(), re.M)[1])


class Socket(Ctl):
    def in_a_directory_of_its_own(self):
        """This test's sockets are apart from those of others that run meanwhile."""
        runtime = tempfile.TemporaryDirectory()
        self.addCleanup(runtime.cleanup)
        os.chmod(runtime.name, 0o755)
        changed = unittest.mock.patch.dict(os.environ, XDG_RUNTIME_DIR=runtime.name)
        changed.start()
        self.addCleanup(changed.stop)

    def connect(self):
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(LIMIT)
        connection.connect(socket_of(self.tracer))
        self.addCleanup(connection.close)
        return connection

    def test_it_is_the_user_s_own(self):
        self.begin("-k", "do_work", "--count")
        path = socket_of(self.tracer)
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
        self.assertEqual(os.stat(os.path.dirname(path)).st_mode & 0o777, 0o700)
        self.finish()
        self.assertFalse(os.path.exists(path))

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("setpriv"), "needs root and setpriv")
    def test_another_user_is_refused(self):
        self.begin("-k", "do_work", "--count")
        done = subprocess.run(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", KTRACE, "ctl", "-p",
                               str(self.target.pid), "list"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=LIMIT, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertRegex(done.stderr, r"^ktrace: ktrace \(process \d+\) belongs to another user \(uid 0\); only that "
                                      r"user and root may talk to it\n$")
        self.finish()

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("setpriv"), "needs root and setpriv")
    def test_another_user_who_reaches_it_is_not_heard(self):
        """Even where the directory and the socket were opened to everybody."""
        self.in_a_directory_of_its_own()
        self.begin("-k", "do_work", "--count")
        path = socket_of(self.tracer)
        os.chmod(os.path.dirname(path), 0o755)
        os.chmod(path, 0o777)
        try:
            script = ("import socket,sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); "
                      "s.sendall(b'ktrace-ctl 1 1 5\\nlist\\0'); print(len(s.recv(100)))")
            done = subprocess.run(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "python3", "-c",
                                   script, path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=LIMIT,
                                  text=True, check=False)
            self.assertTrue(done.stdout == "0\n" or "BrokenPipe" in done.stderr or "ConnectionReset" in done.stderr,
                            done)
        finally:
            os.chmod(os.path.dirname(path), 0o700)
            os.chmod(path, 0o600)
        self.finish()

    def test_garbage_is_harmless(self):
        self.begin("-k", "do_work", "--count")
        for garbage in (b"\0", b"GET / HTTP/1.0\r\n\r\n", b"ktrace-ctl 1 1 999999999999\n", b"ktrace-ctl 1 2 2\nab",
                        b"ktrace-ctl 1 1 4\nabcd", b"ktrace-ctl 1 -1 -1\n", b"k" * 1000000, b"ktrace-ctl 1 " * 1000,
                        b"ktrace-ctl 1 1 5\nlisT\0", b"ktrace-ctl 1 0 0\n", os.urandom(4096),
                        b"ktrace-ctl 1 3 9\nctl\0\xff\xff\0\n\0"):
            with self.subTest(garbage=garbage[:30]):
                connection = self.connect()
                try:
                    connection.sendall(garbage)
                    answer = connection.recv(1000)
                    self.assertRegex(answer, rb"^ktrace-ctl 1 [12] 0 \d+\nktrace: |^$")
                except (BrokenPipeError, ConnectionResetError):
                    pass  # it has heard enough
        self.assertEqual(self.ask("list").count("\n"), 1)
        calls = self.work()
        self.assertEqual(self.hits(), {1: calls})
        self.finish()

    def test_nobody_waits_for_a_client_that_does_not_come_to_the_point(self):
        self.begin("-k", "do_work", "--count")
        waiting = [self.connect() for _ in range(40)]
        waiting[0].sendall(b"ktrace-ctl 1 2")
        for half_closed in waiting[1:5]:
            half_closed.sendall(b"ktrace-ctl 1 3 100\nctl\0")
            half_closed.shutdown(socket.SHUT_WR)
        for gone in waiting[5:10]:
            gone.sendall(b"ktrace-ctl 1 4 18\nctl\0-p\0" + str(self.target.pid).encode())
            gone.close()
        calls = self.work()
        self.assertEqual(self.hits(), {1: calls})
        # An order in pieces is an order.
        words = b"".join(word + b"\0" for word in (b"ctl", b"-p", str(self.target.pid).encode(), b"list"))
        for byte in b"ktrace-ctl 1 4 %d\n%s" % (len(words), words):
            waiting[20].sendall(bytes([byte]))
        answer = b""
        while not re.match(rb"ktrace-ctl 1 0 \d+ 0\n[0-9a-f]{16} k do_work", answer):
            part = waiting[20].recv(1000)
            self.assertNotEqual(part, b"", answer)
            answer += part
        self.finish()

    def test_a_client_that_does_not_listen_holds_nobody_up(self):
        self.begin("-k", "calls:*", "--count")
        words = b"".join(word + b"\0" for word in (b"ctl", b"-p", str(self.target.pid).encode(), b"list"))
        deaf = [self.connect() for _ in range(10)]
        for connection in deaf:
            connection.sendall(b"ktrace-ctl 1 4 %d\n%s" % (len(words), words))
        self.work()
        self.assertGreater(self.ask("list").count("\n"), 2)
        self.finish()

    def test_of_a_process_that_something_else_traces(self):
        target = self.start(program("calls"), 1, 1)
        answer = ctl(target, "list")
        self.assertEqual(answer.status, 1)
        self.assertRegex(answer.err, r"^ktrace: no ktrace traces process \d+ \(calls\); ktrace attach -p \d+ starts one\n$")

    def test_a_socket_of_a_killed_ktrace_is_taken_away(self):
        self.in_a_directory_of_its_own()  # any other ktrace would take it away
        self.begin("-k", "main", "--count")
        left = socket_of(self.tracer)
        os.kill(self.tracer.tracing, signal.SIGKILL)
        self.tracer.process.wait()
        self.assertTrue(os.path.exists(left))
        other = self.attach(self.target, "-k", "do_work", "--count")
        self.assertFalse(os.path.exists(left))
        other.stop()

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("unshare"), "needs root and unshare")
    def test_a_socket_is_left_alone_by_who_does_not_see_its_process(self):
        """Another container shares the directory, not the process numbers."""
        self.begin("-k", "do_work", "--count")
        other = subprocess.run(["unshare", "--pid", "--fork", "--mount-proc", KTRACE, "run", "-k", "do_work", "--count",
                                "--", program("calls"), "1", "1"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               stdin=subprocess.DEVNULL, timeout=LIMIT, text=True, check=False)
        if "unshare" in other.stderr:
            self.skipTest(other.stderr)
        self.assertEqual(other.returncode, 0, other.stderr)
        self.assertEqual(self.ask("list").count("\n"), 1)
        self.finish()

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("unshare"), "needs root and unshare")
    def test_two_containers_share_the_directory_and_the_process_numbers(self):
        """Both ktraces have the same number, each in its own pid namespace; ctl finds either from outside."""
        traces = []
        for _ in range(2):
            trace = subprocess.Popen(["unshare", "--pid", "--fork", "--mount-proc", "--kill-child", KTRACE, "run", "-k",
                                      "do_work", "--count", "--", program("calls"), "1", "10"], stdin=subprocess.PIPE,
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            for stream in (trace.stdin, trace.stdout, trace.stderr):
                self.addCleanup(stream.close)
            self.addCleanup(trace.wait)
            self.addCleanup(trace.kill)
            line = trace.stdout.readline()
            if not line and "unshare" in trace.stderr.read():
                self.skipTest("unshare is not permitted")
            self.assertRegex(line, "^ready")
            traces.append(trace)
        targets = [traced_by(trace.pid) for trace in traces]
        self.assertEqual([own_number(pid) for pid in targets], [own_number(targets[0])] * 2)
        for pid, own in zip(targets, ("-j", "-r")):
            added = ktrace("ctl", "-p", pid, "add", own, "do_work", "--count")
            self.assertEqual((added.status, added.err), (0, ""), added)
        for pid, own in zip(targets, "jr"):
            listed = ktrace("ctl", "-p", pid, "list")
            self.assertEqual([line.split()[1] for line in listed.out.splitlines()], ["k", own], listed)
        for trace in traces:
            trace.stdin.write("go\n")
            trace.stdin.close()
            self.assertEqual(trace.wait(timeout=LIMIT), 0)

    def test_a_directory_of_somebody_else_is_not_used(self):
        """Tracing goes on without ctl, and says so."""
        with tempfile.TemporaryDirectory() as runtime:
            os.mkdir(f"{runtime}/ktrace", 0o777)
            os.chmod(f"{runtime}/ktrace", 0o777)
            environment = dict(os.environ, XDG_RUNTIME_DIR=runtime)
            target = self.start(program("calls"), 1, 10)
            tracer = self.attach(target, "-k", "do_work", "--count", env=environment)
            self.assertEqual(os.listdir(f"{runtime}/ktrace"), [])
            self.assertEqual(ctl(target, "list").status, 0)  # in /tmp instead
            tracer.stop()
