"""ktrace ctl: the probes of a trace that runs come and go, and every hit is counted by the probes that were on then."""
import os
import random
import re
import subprocess
import threading
import time

from live import (KTRACE, LIMIT, LiveTest, adds_up, children_of, debug_registers_trap, figure, ktrace, program,
                  thread_folders, told_of, until, wait_until_asleep)


def ctl(target, *arguments, **options):
    return ktrace("ctl", "-p", target.pid, *arguments, **options)


def is_measuring(tracing):
    """One of its threads has a child."""
    return any(told_of(folder, "children") for folder in thread_folders(tracing))


class Ctl(LiveTest):
    """A target whose threads call do_work on request, and ctl's answers on its trace."""

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
        self.begin("-k", "do_work+4", "-r", "do_work", "-j", "do_work", "--engine", "trap")
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
        self.assertEqual(len(re.findall(rf"(?m)^ *{self.calls}  do_work \(-[rk]\)  \d+$", out)), 2 * self.threads, out)
        self.finish()

    def test_locations_of_globs_that_nobody_came_by_are_told_in_one_line(self):
        self.begin("-k", "libc.so.6:m[b-e]*", "-k", "do_work", "--count")
        calls = self.work()
        stats = self.ask("stats")
        self.assertIn(f"2 do_work+0x0 [calls] k: {calls} hits", stats)
        folded = re.search(r"(?m)^libc.so.6:m\[b-e\]\* k: (\d+) of (\d+) locations were never hit$", stats)
        self.assertTrue(folded, stats)
        self.assertEqual(len(re.findall(r"(?m)^1 ", stats)), int(folded[2]) - int(folded[1]))
        self.assertNotIn(": 0 hits", stats)
        self.assertEqual(len(ctl(self.target, "stats", "--format", "json").summaries()), int(folded[2]) + 1)
        trace = self.finish()
        self.assertRegex(trace.err, rf"(?m)^ktrace: \d+ hits at \d+ of {int(folded[2]) + 1} places in .*, none lost$")
        self.assertNotIn("never hit", trace.err)
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
        self.begin("-v", "-k", "do_work", "--count")
        self.work()
        out = self.ask("add", "-j", "do_work", "-r", "do_work", "--if", "args.n == 7", "--first", "1")
        self.assertEqual(out, "2 j do_work: 1 location\n3 r do_work: 1 location\n")
        calls = self.work()
        trace = self.finish()
        self.assertRegex(" ".join(p for p in trace.payloads if ") returned " not in p), r'^do_work\(n=7, name="(alpha|beta)"\)$', trace)
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
        self.begin("-v", "-k", "do_work", "--count")
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

    def test_hits_are_served_while_durations_are_calibrated(self):
        """Which the first probe of a return waits for: in a process of its own, which is seen to come and to go."""
        self.target = self.start(program("threads"))
        self.target.tell("spin 1")
        self.target.truth("spinning 1")
        self.tracer = self.attach(self.target, "-k", "do_work", "--every", "16", "--format", "json")
        tracing = children_of(self.tracer.process.pid)[0]
        order = subprocess.Popen([KTRACE, "ctl", "-p", str(self.target.pid), "add", "-r", "do_work", "--stats"],
                                 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        until(lambda: is_measuring(tracing), "something is measured")
        begin = time.time()
        until(lambda: not is_measuring(tracing), "it is measured")
        end = time.time()
        self.assertEqual(order.wait(LIMIT), 0)
        trace = self.tracer.stop()
        self.assertEqual(trace.status, 0, trace)
        meanwhile = [event for event in trace.events("pre") if begin < event["time_ns"] * 1e-9 < end]
        self.assertGreater(len(meanwhile), 3)
        self.target.tell("on")
        self.target.truth("calls")
        self.check_untouched(self.target)
        self.assertEqual(self.target.end(), 0)

    def order_at_random(self, chance, known):
        """One order; `known`: by number, what is probed and whether it is on."""
        what = chance.choice(["add", "add", "remove", "enable", "disable", "disable", "off", "on", "stats", "list"])
        if what == "add" and len(known) < self.most:
            watched = sum(place == "do_work:x" for place, _ in known.values())
            kinds = [kind for kind in self.places if kind != "-w" or (debug_registers_trap() and watched < self.most_watched)]
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
                    self.assertEqual(summary["hits"], hits[summary["probe"]], (seed, summary))
            self.check_untouched(self.target)
            self.assertEqual(self.target.end(), 0)
            if self.seconds:
                figure(f"seed {seed}: {rounds * self.orders} orders, {len(trace.summaries())} locations, {calls} calls, "
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
