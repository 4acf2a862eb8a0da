"""Stacks: what --stack shows equals what gdb shows at the same place, in programs of every making."""
import os
import random
import re
import subprocess
import tempfile

from debugger import debugged, traced
from live import KTRACE, LIMIT, MACHINE, PC, LiveTest, Trace, figure, ktrace, program
from test_programs import WORK, every_instruction
from workshop import address_in_file, build, copy_of, execute, require, room

LONG = bool(os.environ.get("KTRACE_LONG"))  # all 200 places in real programs, instead of some


def base(path):
    return os.path.basename(path) if path else None


class StackTest(LiveTest):
    def compare(self, command, places, environment=None, dynamic=True, lines=False):
        """Stacks of ktrace and gdb at places, (SPEC, number of the hit); gives how many were compared."""
        environment = environment or dict(os.environ, LC_ALL="C")
        events, done = traced(command, places, environment)
        self.assertGreater(len(events), 0, done.stderr[-2000:])
        self.moved = {}  # by module: how far from where gdb has it
        stacks = {}
        for hit, spec, event in events:
            if spec.count(":0x"):
                module, address = spec.split(":")
                stacks[(module, int(address, 16), hit)] = event["stack"]
            else:
                stacks[(None, int(event["stack"][0]["addr"], 16), hit)] = event["stack"]
        wanted = list(stacks)
        truths = debugged(command, wanted, environment, dynamic)
        for number, truth in truths.items():
            self.check(stacks[wanted[number]], truth, lines)
        self.assertEqual(len(truths), len(wanted))
        return len(truths)

    def check(self, ours, truth, lines):
        shown = "\n".join(f"{frame['addr']} {frame.get('symbol')}" for frame in ours) + "\n--- gdb\n" + \
            "\n".join(f"{frame['addr']:#x} {frame['name']}" for frame in truth)
        real = [frame for frame in ours if not frame["inlined"]]
        expected = [frame for frame in truth if not frame["inlined"]][:127]
        self.assertEqual(len(real), len(expected), shown)
        for mine, theirs in zip(real, expected):
            by = int(mine["addr"], 16) - theirs["addr"]
            self.assertEqual(self.moved.setdefault(theirs["module"], by), by, shown)
            self.assertEqual(by % 4096, 0, shown)
            if theirs["module"] is None:
                self.assertEqual(by, 0, shown)
        if not lines:
            return
        # gdb hides an inlined function that begins at the very address where it has stopped.
        ours = [frame for frame in ours if frame.get("file")]
        truth = [frame for frame in truth if frame["file"]]
        if len(ours) > len(truth) and ours[0]["inlined"]:
            ours = ours[len(ours) - len(truth):]
            ours[0] = dict(ours[0], line=truth[0]["line"])
        self.assertEqual([(base(f["file"]), f["line"]) for f in ours], [(base(f["file"]), f["line"]) for f in truth], shown)
        self.assertEqual([f["symbol"] for f in ours if f["inlined"]], [f["name"] for f in truth if f["inlined"]], shown)


class Programs(StackTest):
    """A program with stacks of all kinds, made in different ways."""

    PLACES = ["place", "compare", "handler", "on_fault", "coroutine", "middle", "outer", "thread", "late", "leave"]

    def check_build(self, *flags, compiler="gcc", dynamic=True):
        command = [build("stacks", "-pthread", *flags, compiler=compiler), "once"]
        places = [(name, 1) for name in self.PLACES] + [("place", n) for n in (2, 3, 5, 6, 7, 8, 9, 11)]
        self.compare(command, places, dynamic=dynamic, lines="-g" in flags)

    def test_gcc(self):
        self.check_build("-O2", "-g")

    def test_gcc_unoptimized(self):
        self.check_build("-O0", "-g")

    def test_clang(self):
        self.check_build("-O2", "-g", compiler="clang")

    def test_static(self):
        self.check_build("-O2", "-g", "-static", dynamic=False)

    def test_debug_frame(self):
        for compression in ("none", "zlib"):
            self.check_build("-O2", "-g", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables", f"-gz={compression}")

    def test_debug_frame_in_a_debug_file(self):
        """The call frame information of a stripped program, found by its debug link."""
        path = copy_of(build("stacks", "-pthread", "-O2", "-g", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables"),
                       "apart")
        execute("objcopy", "--only-keep-debug", path, path + ".debug")
        execute("strip", path)
        execute("objcopy", f"--add-gnu-debuglink={path}.debug", path)
        self.assertNotIn(".debug_frame", execute("readelf", "-SW", path))
        self.compare([path, "once"], [(name, 1) for name in self.PLACES], lines=True)

    def test_every_instruction(self):
        """At every instruction of a prologue, a body and an epilogue."""
        for flags in (["-O2", "-g"], ["-O0", "-g"]):
            path = build("stacks", "-pthread", *flags)
            symbols = subprocess.run(["nm", "-S", path], stdout=subprocess.PIPE, text=True).stdout
            start, size = (int(n, 16) for n in re.search(r"^(\w+) (\w+) T recurse$", symbols, re.M).groups())
            text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", f"--start-address={start}",
                                   f"--stop-address={start + size}", path], stdout=subprocess.PIPE, text=True).stdout
            offsets = [int(a, 16) - start for a in re.findall(r"^ *([0-9a-f]+):\t", text, re.M)]
            compared = self.compare([path, "once"], [(f"recurse+{n}", 2) for n in offsets])
            self.assertGreater(compared, 8)

    def once(self, *options):
        out = os.path.join(tempfile.mkdtemp(dir=room()), "events")
        trace = ktrace("run", "-o", out, *options, "--", program("stacks"), "once")
        self.assertEqual(trace.status, 0, trace)
        with open(out) as f:
            return Trace(f.read(), trace.err, 0)

    def test_names(self):
        trace = self.once("-k", "place", "--stack")
        frames = re.findall(r"^    #(\d+) +(\S+) \[stacks\] \S*stacks.c:\d+( \(inlined\))?$", trace.out, re.M)
        self.assertEqual(frames[:6], [("0", "place+0x0", ""), ("1", "innermost", " (inlined)"),
                                      ("2", "inlined", " (inlined)"), *[f for f in frames[3:6]]])
        self.assertTrue(frames[3][1].startswith("middle+0x") and frames[4][1].startswith("outer+0x"), frames)
        self.assertRegex(trace.out, r"#2  <signal handler called>\n")

    def test_some_frames(self):
        trace = self.once("-k", "place", "--stack=2", "--format", "json")
        for event in trace.events():
            self.assertEqual([f["symbol"] for f in event["stack"]], ["place", event["stack"][1]["symbol"]])
        self.assertIn([("place", False), ("innermost", True)],
                      [[(f["symbol"], f["inlined"]) for f in event["stack"]] for event in trace.events()])
        text = self.once("-k", "place", "--stack=2").lines
        self.assertEqual([line.split()[0] for line in text if line.startswith("    #")], ["#0", "#1"] * len(trace.events()))
        self.assertEqual(ktrace("run", "-k", "place", "--stack=128", "--", program("stacks"), "once").status, 2)

    def test_by_stack(self):
        target = self.start(program("stacks"))
        tracer = self.attach(target, "-k", "place", "--by", "stack", "--format", "json")
        for _ in range(3):
            target.tell("work 10")
            target.truth("^done$")
        trace = tracer.stop()
        rows = trace.summary("place")["by"]
        self.assertEqual([row["count"] for row in rows], [30, 30])
        callers = sorted(next(f["symbol"] for f in row["key"] if f["symbol"] in ("outer", "main")) for row in rows)
        self.assertEqual(callers, ["main", "outer"])

    def test_by_caller(self):
        """Of return probes, too: at the return it would be the function itself. Calls in one function are one row."""
        found = []
        for kind in ("-k", "-r"):
            trace = self.once(kind, "place", "--by", "caller,stack(2)", "--format", "json")
            for row in trace.summary("place")["by"]:
                caller, frames = row["key"]
                self.assertEqual((frames[0]["symbol"], sum(not f["inlined"] for f in frames)), ("place", 2), row)
                self.assertEqual(caller, f"{frames[-1]['symbol']} [{frames[-1]['module']}]")
            trace = self.once(kind, "place", "--by", "caller", "--format", "json")
            rows = [o for o in trace.objects if o["type"] == "row"]
            self.assertEqual(sum(row["count"] for row in rows), trace.summary("place")["events"])
            found.append({row["key"]: row["count"] for row in rows})
            self.assertEqual(len(found[-1]), len(rows), rows)
        self.assertEqual(*found)

    def test_address_by_its_name(self):
        trace = self.once("-k", "place", "--print", f'usym(reg("{PC}")), usym((void *)8)', "--format", "json", "--first", "1")
        values = [e["values"] for e in trace.events()]
        self.assertEqual(values, [{f'usym(reg("{PC}"))': "place+0x0 [stacks]", "usym((void *)8)": "0x8"}])

    def test_generated_code_by_the_map_that_its_program_writes(self):
        target = self.start(program("generates"), ready=None)
        at = target.truth(r"ready (0x[0-9a-f]+)")[1]
        tracer = self.attach(target, "-k", at, "--stack=1", "--format", "json")
        target.tell()
        target.truth("^1$")
        frame = tracer.stop().events()[0]["stack"][0]
        self.assertEqual((frame["symbol"], frame["offset"]), ("generated: one more", 0))
        self.assertEqual(target.end(), 0)

    def test_by_stack_of_an_ended_program(self):
        trace = self.once("-k", "place", "--by", "stack", "--format", "json")
        for row in trace.summary("place")["by"]:
            self.assertEqual(row["key"][0]["symbol"], "place")

    def test_places_without_names(self):
        """What a stripped program's frames are shown as is a SPEC, which holds in the next run, too."""
        path = copy_of(build("stacks", "-pthread", "-O2"), "nameless")
        place = f"stacks:{address_in_file(path, 'place'):#x}"
        execute("strip", path)

        def shown(number, spec, *options):
            out = os.path.join(tempfile.mkdtemp(dir=room()), "events")
            trace = ktrace("run", "-o", out, "-k", spec, *options, "--", path, "once")
            self.assertEqual(trace.status, 0, trace)
            with open(out) as f:
                return re.findall(number + r" *(\S+)(?: \[stacks\]$| <)", f.read(), re.M)

        self.assertEqual(set(shown("#0", place, "--stack")), {place})
        self.assertEqual(set(shown(r"^ +\d+ ", place, "--by", "stack")), {place})
        for caller in sorted(set(shown("#1", place, "--stack"))):
            self.assertRegex(caller, "^stacks:0x[0-9a-f]+$")
            self.assertEqual(set(shown("#0", caller, "--stack")), {caller})

    def test_return_probes(self):
        """Return traps are at return addresses; the stack shows what the program put there."""
        plain = self.once("-k", "place", "--stack", "--format", "json")
        probed = self.once("-k", "place", "-r", "place", "-r", "middle", "-r", "recurse", "-r", "outer", "--stack",
                           "--format", "json")
        names = [[[(f.get("symbol"), f.get("offset")) for f in e["stack"] if f.get("module") == "stacks"]
                  for e in trace.events("pre")] for trace in (plain, probed)]
        self.assertEqual(names[0], names[1])
        for event in probed.events("return"):
            if event["symbol"] != "recurse":
                self.assertNotEqual(event["stack"][0]["symbol"], event["symbol"])


class RealPrograms(StackTest):
    """Places anywhere in programs that are not ours."""

    def environment(self):
        return dict(os.environ, PYTHONHASHSEED="0", PERL_HASH_SEED="0", LC_ALL="C", HOME=room())

    def check_places(self, command, path, module, seed, functions=60):
        """At some of all instructions of some functions, as far as they are executed."""
        require(command[0])
        chance = random.Random(seed)
        specs = [f"{module}:{a:#x}" for a in every_instruction(path, functions, seed)]
        out = os.path.join(room(), f"counts-{seed}")
        subprocess.run([KTRACE, "run", "-o", out, "--format", "json", "--count", *[o for s in specs for o in ("-k", s)],
                        "--", *command], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                       env=self.environment(), timeout=LIMIT)
        with open(out) as f:
            hits = {s["probe"]: s["hits"] for s in Trace(f.read(), "", 0).summaries()}
        hit = [spec for number, spec in enumerate(dict.fromkeys(specs), 1) if hits.get(number)]
        wanted = 44 if LONG else 6
        self.assertGreaterEqual(len(hit), min(wanted, 6), "nothing of these functions is executed")
        counts = {spec: hits[number] for number, spec in enumerate(dict.fromkeys(specs), 1)}
        chosen = chance.sample(hit, min(wanted, len(hit)))
        places = [(spec, chance.choice([n for n in (1, 3, 10) if n <= counts[spec]])) for spec in chosen]
        compared = self.compare(command, places, self.environment())
        figure(f"{module}: {compared} stacks equal gdb's")

    def test_python(self):
        self.check_places(["/usr/bin/python3", os.path.join(WORK, "work.py")], os.path.realpath("/usr/bin/python3"),
                          "python3.11", 1, 120)

    def test_perl(self):
        self.check_places(["/usr/bin/perl", os.path.join(WORK, "work.pl")], "/usr/bin/perl", "perl", 2)

    def test_bash(self):
        self.check_places(["/bin/bash", os.path.join(WORK, "work.sh")], "/bin/bash", "bash", 3)

    def test_git(self):
        self.check_places(["/usr/bin/git", "--version"], "/usr/bin/git", "git", 4, 400)

    def test_sqlite(self):
        library = os.path.realpath(f"/usr/lib/{MACHINE}-linux-gnu/libsqlite3.so.0")
        self.check_places(["/usr/bin/sqlite3", "-init", os.path.join(WORK, "work.sql"), ":memory:"], library,
                          os.path.basename(library), 5, 120)
