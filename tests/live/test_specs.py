"""Every form of SPEC, in running programs of every kind: what a name, a line, an address means there, and what is refused."""
import os
import platform
import re
import shutil
import subprocess
import tempfile
import unittest

from live import LIBC, LiveTest, adds_up, ktrace, program, until
from specs import SpecTest, names
from workshop import address_in_file, build, execute, instructions, require, room


class Offsets(SpecTest):
    def every_instruction(self, function, *flags, compiler="gcc"):
        path = build("offsets", "-g", "-lm", *flags, compiler=compiler)
        given = b"one\ntwo\n"
        before = subprocess.run([path], input=given, stdout=subprocess.PIPE).stdout
        offsets = instructions(path, function)
        self.assertGreater(len(offsets), 10)
        # All together, then each alone with a post handler: it is single-stepped.
        runs = [[o for at in offsets for o in ("-k", f"{function}+{at}")]]
        runs += [["--post", "-k", f"{function}+{at:#x}"] for at in offsets]
        seen = set()
        for options in runs:
            with tempfile.TemporaryFile() as stdin:
                stdin.write(given)
                stdin.seek(0)
                out = os.path.join(room(), "events")
                trace = ktrace("run", "-o", out, "--format", "json", *options, "--", path, stdin=stdin)
            self.assertEqual(trace.status, 0, f"{options} {trace}")
            self.assertEqual(trace.out.encode(), before, options)
            with open(out) as f:
                trace.out = f.read()
            for s in trace.summaries():
                self.assertTrue(adds_up(s), s)
                if s["hits"]:
                    seen.add(s["offset"])
                self.assertEqual(s["symbol"], function)
            if "--post" in options:
                posts = len(trace.events("post"))
                self.assertEqual(posts, len(trace.events("pre")), trace)
        self.assertGreater(len(seen), len(offsets) * 3 // 4, f"{sorted(set(offsets) - seen)}")

    def test_branches(self):
        self.every_instruction("branches", "-O2")

    def test_branches_unoptimised(self):
        self.every_instruction("branches", "-O0", "-fno-pie", "-no-pie")

    def test_floating(self):
        with open("/proc/cpuinfo") as f:
            self.every_instruction("floating", "-O2", *(["-mavx"] if " avx " in f.read() else []))

    def test_special(self):
        self.every_instruction("special", "-O1", "-static")

    def test_offsets_of_clang(self):
        self.every_instruction("branches", "-O2", compiler="clang")

    def test_not_a_boundary(self):
        path = build("offsets", "-O0", "-g", "-lm")
        target, _ = self.started(path)
        offsets = instructions(path, "branches")
        inside = next(a + 1 for a, b in zip(offsets, offsets[1:]) if b - a > 1)
        below = max(o for o in offsets if o < inside)
        above = min(o for o in offsets if o > inside)
        trace = ktrace("attach", "-p", target.pid, "-k", "twice", "-k", f"branches+{inside}")
        self.assertEqual(trace.status, 1, trace)
        self.assertIn("not at the start of an instruction", trace.err)
        self.assertIn(f"branches+{below}", trace.err)
        self.assertIn(f"branches+{above}", trace.err)
        self.check_untouched(target)
        for kind in ("-j", "-r"):
            trace = ktrace("attach", "-p", target.pid, kind, f"branches+{above}")
            self.assertEqual(trace.status, 1, trace)
            self.assertIn("first instruction", trace.err)
        trace = ktrace("attach", "-p", target.pid, "-k", "branches+100000")
        self.assertEqual(trace.status, 1, trace)
        self.assertEqual(target.end(), 0)


class Sequences(LiveTest):
    """Restartable sequences, rseq(2): what is in one is refused, all around it can be probed."""

    def refused(self, target, *probe):
        trace = ktrace("attach", "-p", target.pid, *probe)
        self.assertEqual((trace.status, "cannot be probed: it is in a restartable sequence" in trace.err), (1, True), trace)

    def check(self, *flags):
        path = build("restartable", "-O2", "-pthread", *flags)
        target = self.start(path, 4, ready="ready|none")
        if "none" in target.lines.seen[-1]:
            self.skipTest("no restartable sequences here")
        start, end, handler = map(int, target.lines.seen[-1].split()[2:])
        offsets = instructions(path, "count_one")
        # The instruction before it marks its beginning for the kernel: it has to be followed by the first one at once.
        inside = [max(o for o in offsets if o < start), *(o for o in offsets if start <= o < end)]
        self.assertGreater(len(inside), 5)
        for offset in inside:
            self.refused(target, "-k", f"count_one+{offset}")
        function = address_in_file(path, "count_one")
        self.refused(target, "-k", f"restartable:{function + start:#x}")
        for signature in range(4):
            self.refused(target, "-k", f"restartable:{function + handler - 4 + signature:#x}")
        around = [o for o in offsets if o not in inside] + [handler]
        probes = [o for at in around for o in ("-k", f"restartable:{function + at:#x}")]
        for options in (["--count"], ["--post", "-o", "/dev/null"]):
            tracer = self.attach(target, *probes, "-r", "count_one", *options)
            added = ktrace("ctl", "-p", target.pid, "add", "-k", f"count_one+{start}")
            self.assertEqual((added.status, "in a restartable sequence" in added.err), (1, True), added)
            first = self.done(target, end)
            until(lambda: self.done(target, end) > first + 1000, "sequences are done to their end")
            self.assertEqual(tracer.stop().status, 0)
            self.check_untouched(target)
        target.tell()
        counted, found = target.truth(r"counted (\d+) found (\d+)").groups()
        self.assertEqual(counted, found)
        self.assertEqual(target.end(), 0)

    def done(self, target, end):
        """Hits of what is behind the sequence."""
        lines = ktrace("ctl", "-p", target.pid, "stats").out.splitlines()
        return max(int(n) for line in lines if f"count_one+{end:#x} " in line for n in re.findall(r"(\d+) hits", line))

    def test_position_independent(self):
        self.check("-fPIE", "-pie")

    def test_fixed(self):
        self.check("-fno-pie", "-no-pie")

    def test_static(self):
        self.check("-static")

    def test_packed_relocations(self):
        self.check("-fPIE", "-pie", "-Wl,-z,pack-relative-relocs")


class Names(SpecTest):
    def test_symbol(self):
        self.assertEqual(self.count_of(names(), "plain_one"), {"plain_one": 5})

    def test_line(self):
        with open(os.path.join(os.path.dirname(__file__), "..", "targets", "names", "main.c")) as f:
            line = next(i for i, text in enumerate(f, 1) if "line of plain_one" in text)
        for spec in (f"main.c:{line}", f"names/main.c:{line}", f"names:main.c:{line}"):
            where = self.count_of(names(), spec)
            self.assertEqual(sum(where.values()), 5, where)
            self.assertTrue(all(name.startswith("plain_one") for name in where), where)

    def test_source_file_in_place_of_a_module(self):
        """It is no module that one could wait for."""
        target, _ = self.started(names())
        trace = ktrace("attach", "-p", target.pid, "-k", "main.c:plain_one")
        self.assertEqual(trace.status, 1, trace)
        self.assertIn("main.c is a source file, not a module", trace.err)
        self.assertIn("give plain_one, names:plain_one or main.c:LINE", trace.err)
        self.check_untouched(target)
        self.assertEqual(target.end(), 0)

    def test_address(self):
        self.assertEqual(self.count_of(names(), "{plain_one}"), {"plain_one": 5})

    def test_module_address(self):
        for path in (names(), names("-no-pie", "-fno-pie")):
            self.assertEqual(self.count_of(path, f"names:{address_in_file(path, 'plain_two'):#x}"), {"plain_two": 1})

    def test_module_symbol(self):
        for module in ("libc:", "libc.so.6:", LIBC + ":"):
            where = self.count_of(names(), module + "fflush")
            self.assertEqual(sum(where.values()), 1, where)

    def test_glob(self):
        self.assertEqual(self.count_of(names(), "plain_*"), {"plain_one": 5, "plain_two": 1})
        self.assertEqual(self.count_of(names(), "names:plain_t?o"), {"plain_two": 1})
        self.assertEqual(self.count_of(names(), "plain_[!t]*", kind="-r"), {"plain_one": 5})

    def test_static_functions_of_two_files(self):
        trace = self.hits(names(), "-j", "same_name")
        self.assertEqual(sorted(s["hits"] for s in trace.summaries()), [3, 4], trace)
        self.assertIn("Attached 2 probes from 1 spec", trace.err)

    def test_clones(self):
        path = names()
        self.assertIn("cloned.constprop", execute("nm", path))
        where = self.count_of(path, "cloned")
        self.assertEqual(sum(where.values()), 6, where)

    def test_inlined(self):
        for flags in (["-O2"], ["-O2", "-gdwarf-4"]):
            path = names(*flags)
            for kind in ("-k", "-j"):
                trace = self.hits(path, kind, "inlined_twice")
                self.assertEqual(sum(s["hits"] for s in trace.summaries()), 3, trace)
                self.assertEqual(len(trace.summaries()), 2, trace)

    def inlines(self, spec, compiler, *flags):
        """An entry probe's counts of inlined functions that begin at one instruction, and the truth."""
        path = build("inlines", "-O2", "-g", *flags, sources=["names/inlines.c"], compiler=compiler)
        target, _ = self.started(path)
        tracer = self.attach(target, "-j", spec, "--format", "json")
        target.tell()
        side, weight = target.truth(r"done side (\d+) weight (\d+)").groups()
        trace = tracer.stop()
        for summary in trace.summaries():
            self.assertTrue(adds_up(summary), summary)
        self.check_untouched(target)
        self.assertEqual(target.end(), 0)
        seen = [(e["symbol"], e["args"]) for e in trace.events("entry")]
        return trace, seen, {"side": int(side), "weight": int(weight)}

    def test_inlined_at_one_instruction(self):
        for compiler in ("gcc", "clang"):
            if not shutil.which(compiler):
                continue
            for version in ("-gdwarf-4", "-gdwarf-5"):
                with self.subTest(compiler=compiler, version=version):
                    trace, seen, box = self.inlines("nest_*", compiler, version)
                    self.assertEqual(sorted((s["symbol"], s["hits"]) for s in trace.summaries()),
                                     [("nest_inner", 2), ("nest_outer", 2)], trace)
                    self.assertIn("Attached 2 probes from 1 spec", trace.err)
                    self.assertEqual(sorted(name for name, _ in seen), ["nest_inner"] * 2 + ["nest_outer"] * 2)
                    for name, arguments in seen:
                        wanted = {"out"} if name == "nest_outer" else {"in", "level"}
                        self.assertEqual(set(arguments), wanted, trace)
                        if name == "nest_inner":
                            self.assertEqual(arguments["level"], 7, trace)
                        self.assertEqual(arguments["out" if name == "nest_outer" else "in"], box, trace)

    def test_inlined_twice_at_one_instruction(self):
        """clang lets both begin at the same one, gcc at two."""
        for compiler in ("gcc", "clang"):
            if not shutil.which(compiler):
                continue
            with self.subTest(compiler=compiler):
                trace, seen, _ = self.inlines("twin", compiler)
                self.assertEqual([s["hits"] for s in trace.summaries()], [1, 1], trace)
                self.assertEqual([set(arguments) for _, arguments in seen], [{"n"}] * 2, trace)
                if compiler == "clang":  # gcc does not say where the second has it
                    self.assertEqual(sorted(arguments["n"] for _, arguments in seen), [5, 6], trace)

    def test_inlined_has_no_return(self):
        target, _ = self.started(names())
        trace = ktrace("attach", "-p", target.pid, "-r", "inlined_twice")
        self.assertEqual(trace.status, 1, trace)
        self.assertRegex(trace.err, r"inlined")
        self.check_untouched(target)

    def cast(self, path):
        """EXPRs of an object whose type only another unit knows."""
        target, _ = self.started(path)
        shown = ["((struct other *)arg0)->weight", "((other_t *)arg0)->weight", "((other_t *)arg0)->in->number",
                 "str(((struct other *)arg0)->name)", "sizeof(struct other)", "sizeof(other_t)", "sizeof (struct other *)",
                 "sizeof(((other_t *)arg0)->name)", "sizeof(args.other)", "sizeof(short) + 1"]
        options = [option for each in shown for option in ("--print", each)]
        tracer = self.attach(target, "-k", "take", *options, "--format", "json")
        target.tell()
        size = int(target.truth(r"done size (\d+)")[1])
        trace = tracer.stop()
        self.check_untouched(target)
        self.assertEqual(target.end(), 0)
        values = trace.events("pre")[0]["values"]
        self.assertEqual([values[each] for each in shown], [1234, 1234, 41, "other", size, size, 8, 12, 8, 3], trace)

    def test_casts_to_types_of_another_unit(self):
        for version in ("-gdwarf-4", "-gdwarf-5"):
            self.cast(build("casts", "-g", version, sources=["names/casts.c", "names/casts_types.c"]))

    def test_casts_to_types_of_another_module(self):
        sources = os.path.join(os.path.dirname(__file__), "..", "targets", "names")
        directory = tempfile.mkdtemp(dir=room())
        library, path = os.path.join(directory, "libcasts.so"), os.path.join(directory, "casts")
        require("gcc")
        execute("gcc", "-shared", "-fPIC", "-g", f"{sources}/casts_types.c", "-o", library)
        execute("gcc", "-g", f"{sources}/casts.c", "-o", path, library, "-Wl,-rpath," + directory)
        self.cast(path)

    def test_versioned(self):
        require("gcc")
        directory = tempfile.mkdtemp(dir=room())
        with open(os.path.join(directory, "v.c"), "w") as f:
            f.write('int old(int n) { return n; } int new(int n) { return n + 1; }\n'
                    '__asm__(".symver old, versioned@V_1"); __asm__(".symver new, versioned@@V_2");\n')
        with open(os.path.join(directory, "v.map"), "w") as f:
            f.write("V_1 { global: versioned; local: *; }; V_2 { global: versioned; } V_1;\n")
        with open(os.path.join(directory, "m.c"), "w") as f:
            f.write('#include <stdio.h>\nint now(int), before(int);\n'
                    '__asm__(".symver now, versioned@V_2"); __asm__(".symver before, versioned@V_1");\n'
                    'int main(void) { char l[9]; puts("ready"); fflush(stdout);\n'
                    'while (fgets(l, 9, stdin)) { volatile int n = now(1) + now(2) + before(3); (void)n; puts("done");'
                    ' fflush(stdout); } return 0; }\n')
        library, path = os.path.join(directory, "libversioned.so"), os.path.join(directory, "main")
        execute("gcc", "-shared", "-fPIC", "-O2", "-g", os.path.join(directory, "v.c"), "-o", library,
                "-Wl,--version-script=" + os.path.join(directory, "v.map"))
        execute("gcc", "-O2", os.path.join(directory, "m.c"), "-o", path, library, "-Wl,-rpath," + directory)
        self.assertEqual(sum(self.count_of(path, "versioned@V_1").values()), 1)
        self.assertEqual(sum(self.count_of(path, "versioned@V_2").values()), 2)
        self.assertEqual(sum(self.count_of(path, "libversioned:versioned@V_2").values()), 2)

    def test_file_mapped_twice(self):
        target = self.start(program("remaps"))
        tracer = self.attach(target, "-k", "do_work", "--count", "--format", "json")
        target.tell()
        self.assertEqual(target.truth(r"calls (\d+) clean (\d)").groups(), ("10", "1"))
        trace = tracer.stop()
        self.assertEqual([s["hits"] for s in trace.summaries()], [10], trace)
        self.check_untouched(target)
        self.assertEqual(target.end(), 0)

    def test_text_in_memory_of_its_own(self):
        target = self.start(program("moved_text"))
        tracer = self.attach(target, "-j", "work", "-r", "moved_text:outer", "--stack=3")
        target.tell()
        target.truth("^calls 10$")
        trace = tracer.stop()
        self.assertRegex(trace.out, r"work\(n=9\)\n    #0  work\+0x0 .*\n    #1  outer\+.*\n    #2  main\+")
        self.assertRegex(trace.out, r"outer\(n=9\) returned 19 ")
        self.assertIn("20 events, none lost", trace.err)
        self.check_untouched(target, generates_code=True)
        self.assertEqual(target.end(), 0)

    def test_several_kinds_at_one_address(self):
        target, _ = self.started(names())
        tracer = self.attach(target, "-k", "plain_one", "-j", "plain_one", "-r", "plain_one", "-k", "plain_one",
                             "-r", "plain_one", "--format", "json")
        target.tell()
        target.truth("^done")
        trace = tracer.stop()
        self.assertEqual(len(trace.events()), 25, trace)
        for kind, each in (("pre", 10), ("entry", 5), ("return", 10)):
            self.assertEqual(len(trace.events(kind)), each, trace)
        self.assertEqual([s["probe"] for s in trace.summaries()], [1, 2, 3, 4, 5])
        for s in trace.summaries():
            self.assertEqual((s["hits"], s["events"]), (5, 5))


class Pieces(SpecTest):
    """GCC makes a piece of a part of a function, which that calls: to probe both would count a call twice."""

    def test_a_piece_is_no_function_of_that_name(self):
        path = build("pieces", "-O2", "-fpartial-inlining")
        symbols = execute("nm", path)
        inlined = re.search(r" (inlined\.part\S*)\n", symbols)
        if " whole.part.0\n" not in symbols or not inlined:
            raise unittest.SkipTest("the compiler makes no pieces")
        for kind in ("-k", "-r"):
            self.assertEqual(self.count_of(path, "whole", kind), {"whole": 10})
            self.assertEqual(self.count_of(path, "whol*", kind), {"whole": 10})
            self.assertEqual(self.count_of(path, "whole.part.0", kind), {"whole.part.0": 30})
            self.assertEqual(self.count_of(path, "inlined", kind), {inlined[1]: 20})

    def test_a_piece_is_not_counted_beside_inlined_instances(self):
        path = build("pieces", "-O2", "-g", "-fpartial-inlining")
        if " inlined.part." not in execute("nm", path):
            raise unittest.SkipTest("the compiler makes no pieces")
        self.assertEqual(self.count_of(path, "inlined"), {"inlined": 20})


class Refusals(SpecTest):
    def refused(self, options, status, *texts):
        target, _ = self.started(names())
        trace = ktrace("attach", "-p", target.pid, *options)
        self.assertEqual(trace.status, status, trace)
        self.assertEqual(trace.out, "", trace)
        self.assertTrue(trace.err.startswith("ktrace: "), trace)
        for text in texts:
            self.assertRegex(trace.err, text)
        self.check_untouched(target)
        target.tell()
        target.truth("^done")
        self.assertEqual(target.end(), 0)
        return trace

    @unittest.skipUnless(platform.machine() == "x86_64", "these are x86's traps")
    def test_refused_place_of_a_glob(self):
        """One of many functions begins with int3: none is probed, or all the others are."""
        target = self.start(program("plugged"))
        probe = ["-j", "plugged:*", "--count", "--format", "json"]
        trace = ktrace("attach", "-p", target.pid, *probe)
        self.assertEqual(trace.status, 1, trace)
        self.assertRegex(trace.err, "^ktrace: breaks: it is a breakpoint .*; --allow-missing goes on without it\n")
        self.check_untouched(target)
        tracer = self.attach(target, *probe, "--allow-missing")
        target.tell("do_work 7")
        target.truth("^done 7")
        trace = tracer.stop()
        self.assertEqual(trace.status, 0, trace)
        self.assertRegex(trace.err, "^ktrace: breaks: it is a breakpoint ")
        self.assertEqual(trace.summary("do_work")["hits"], 7)
        self.assertNotIn("breaks", [s["symbol"] for s in trace.summaries()])
        self.check_untouched(target)

    def test_refused_unknown_symbol(self):
        self.refused(["-k", "plain_onne"], 1, "plain_onne", "plain_one")
        self.refused(["-k", "inlined_twise"], 1, r"did you mean inlined_twice\b")  # it has no code of its own

    def test_refused_whole_or_not_at_all(self):
        self.refused(["-k", "plain_one", "-r", "plain_two", "-k", "no_such_thing"], 1, "no_such_thing")

    def test_refused_unknown_line(self):
        self.refused(["-k", "main.c:99999"], 1, r"main.c:99999 has no code(?s:.*)the nearest line with code is main.c:\d+")
        self.refused(["-k", "nosuch.c:3"], 1, "nosuch.c")

    def test_refused_line_of_a_program_without_debug_information(self):
        """The debug information that a library may have does not list its files."""
        target, _ = self.started(names("-g0"))
        trace = ktrace("attach", "-p", target.pid, "-k", "other.c:3")
        self.assertEqual(trace.status, 1, trace)
        self.assertRegex(trace.err, "(names has no|nothing loaded has) debug information.* was built without -g")

    def test_refused_offset_in_a_library(self):
        """The program is named only where it has such a function, too."""
        trace = self.refused(["-k", "getenv+0x100000"], 1, "getenv.*is behind the function's end")
        self.assertNotIn("the program's own", trace.err)

    def test_refused_address_of_nothing(self):
        self.refused(["-k", "0x10"], 1, "0x10")

    def test_refused_data(self):
        self.refused(["-k", "length"], 1, "length")

    def test_refused_symbol_and_address(self):
        self.refused(["-k", "plain_one+0x4:0x1234"], 2)

    def test_refused_syntax(self):
        for spec, column in (("plain_one+", 9), ("plain_one+x", 10), ("names:", 5), ("", 0)):
            trace = self.refused(["-k", spec], 2)
            lines = trace.err.splitlines()
            if spec:
                mark = next(l for l in lines if re.fullmatch(r"[ ~^]*\^[~^]*.*", l) and "^" in l)
                head = next(l for l in lines if spec in l)
                self.assertEqual(mark.index("^") - head.index(spec), column, trace)

    def test_refused_allow_missing(self):
        target, _ = self.started(names())
        tracer = self.attach(target, "-k", "plain_one", "-k", "no_such_thing", "--allow-missing", "--count",
                             "--format", "json")
        target.tell()
        target.truth("^done")
        trace = tracer.stop()
        self.assertEqual(trace.status, 0, trace)
        self.assertIn("no_such_thing", trace.err)
        self.assertEqual(trace.summary("plain_one")["hits"], 5)

    def test_refused_module_not_loaded(self):
        target, _ = self.started(names())
        tracer = self.attach(target, "-k", "plain_one", "-k", "libnowhere.so:thing", "--count", "--format", "json")
        target.tell()
        target.truth("^done")
        trace = tracer.stop()
        self.assertEqual(trace.status, 1, trace)
        self.assertIn("libnowhere.so", trace.err)
        self.assertEqual(trace.summary("plain_one")["hits"], 5)
