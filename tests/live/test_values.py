"""Values of all kinds and languages. The targets print the line of each call as ktrace has to."""
import json
import os
import re

import workshop
from live import LiveTest, ktrace

LANGUAGES = os.path.join(workshop.SOURCES, "languages")


class ValueTest(LiveTest):
    def made(self, source, *command):
        """A program of tests/targets/languages, made by this command."""
        workshop.require(command[0])
        made = os.path.join(workshop.room(), re.sub(r"[^\w.]+", "-", source + "-".join(command)))
        if not os.path.exists(made):
            workshop.execute(*command, "-o", made, os.path.join(LANGUAGES, source))
        return made

    def truth(self, path, pattern=r"\("):
        return [line for line in workshop.execute(path).splitlines() if re.search(pattern, line)]

    def shown(self, path, *options):
        """The payloads of the events."""
        trace = ktrace("run", *options, "--", path)
        self.assertEqual(trace.status, 0, trace)
        return trace.payloads

    def check_entries(self, path, *functions):
        """Each call of these is shown as the program says."""
        truth = self.truth(path)
        self.assertGreaterEqual(len(truth), len(functions))
        self.assertEqual(self.shown(path, "--full", *[o for f in functions for o in ("-j", f)]), truth)


class BitFields(ValueTest):
    def test_all_forms(self):
        for compiler in ("gcc", "clang"):
            for version in ("2", "3", "4", "5"):
                for level in ("-O0", "-O1"):
                    with self.subTest((compiler, version, level)):
                        path = self.made("bit_fields.c", compiler, level, "-g", "-gdwarf-" + version)
                        self.check_entries(path, "by_pointer", "by_value")

    def test_in_expressions(self):
        path = self.made("bit_fields.c", "clang", "-O1", "-g", "-gdwarf-4")
        printed = self.shown(path, "-j", "by_pointer", "--if", "args.s->m < 0 && args.c->m == 8239493",
                             "--print", "args.s->m,args.s->n,args.s->o,args.p->c")
        self.assertEqual(printed, ["by_pointer(s->m=-8239493, s->n=-400000, s->o=500000001, p->c=-500000000000)"])


class References(ValueTest):
    """Fortran passes addresses, has arrays that begin at any index, and lengths of texts behind all parameters."""

    def test_ada(self):
        """Arrays by value, too, those with bounds beside them, and records with variants. Optimized code may not say where."""
        for level in ("-O0", "-O2"):
            path = self.made("arrays.adb", "gnatmake", "-q", "-g", level, "-D", workshop.room())
            lines = [re.sub(r"\.[^(]*", "", line, count=1) for line in self.shown(path, "-j", "arrays__of_*") if "__B" not in line]
            truth = self.truth(path)
            self.assertEqual(len(lines), len(truth))
            for line, wanted in zip(lines, truth):
                pattern = re.escape(line).replace("<not\\ known>", ".*") if level != "-O0" else re.escape(line)
                self.assertRegex(wanted, f"^{pattern}$")
            self.assertLess(sum("<not known>" in line for line in lines), len(lines) / 2)

    def test_fortran(self):
        for flags in (("-O0",), ("-O2", "-fno-inline")):
            path = self.made("references.f90", "gfortran", "-g", "-J", workshop.room(), *flags)
            truth = self.truth(path)
            shown = self.shown(path, "--full", "-j", "shapes::show", "-j", "shapes::several")
            self.assertEqual([line.removeprefix("shapes::") for line in shown], truth)

    def test_indices_of_fortran(self):
        """The first one varies fastest, and none is 0."""
        path = self.made("references.f90", "gfortran", "-g", "-J", workshop.room(), "-O0")
        shown = self.shown(path, "-j", "shapes::show", "--if", "args.s == \"hello\"", "--print",
                           "args.a[1][3],args.a[2][1],args.p.x[1],args.p.x[3],args.n")
        self.assertEqual(shown, ["shapes::show(a[1][3]=13, a[2][1]=21, p.x[1]=1.5, p.x[3]=3.5, n=5)"])
        shown = self.shown(path, "-j", "shapes::several", "--print", "args.low[-1],args.low[1],args.first")
        self.assertEqual(shown, ['shapes::several(args.low[-1]=4, low[1]=6, first="one")'])


class Variants(ValueTest):
    def check(self, path):
        truth = [re.escape(line).replace(r"\*", "0x[0-9a-f]+") for line in self.truth(path)]
        shown = self.shown(path, "--full", "-j", "variants::shape")
        self.assertEqual(len(shown), len(truth))
        for line, wanted in zip(shown, truth):
            self.assertRegex(line.removeprefix("variants::"), f"^{wanted}$")

    def test_rust(self):
        for flags in ((), ("-C", "symbol-mangling-version=v0")):
            self.check(self.made("variants.rs", "rustc", "-g", "--crate-name", "variants", *flags))

    def test_in_json(self):
        path = self.made("variants.rs", "rustc", "-g", "--crate-name", "variants")
        trace = ktrace("run", "-j", "variants::shape", "--print", "*args.s,*args.o", "--format", "json", "--", path)
        values = [json.loads(line)["values"] for line in trace.lines if line.startswith("{") and '"entry"' in line]
        self.assertEqual([list(v.values()) for v in values],
                         [["Unit", "None"], [{"Circle": [1.5]}, {"Some": ["Unit"]}],
                          [{"Rect": {"w": 3, "h": 4}}, {"Some": [{"Rect": {"w": 5, "h": 6}}]}],
                          [{"Line": [-2, {"Some": [7]}]}, {"Some": [{"Line": [1, "None"]}]}]])


class Vectors(ValueTest):
    def test_of_32_and_64_bytes(self):
        with open("/proc/cpuinfo") as processors:
            has = processors.read().split()
        if "avx" not in has:
            self.skipTest("not the registers of this machine")
        wide = "avx512f" in has
        for compiler in ("gcc", "clang"):
            for level in ("-O0", "-O1"):
                with self.subTest((compiler, level)):
                    path = self.made("wide_vectors.c", compiler, "-g", level, "-mavx512f" if wide else "-mavx")
                    functions = ("sum", "boxed", *(("wide",) if wide else ()))
                    shown = self.shown(path, "--full", *[o for f in functions for o in ("-r", f)])
                    self.assertEqual([re.sub(" and took.*", "", line) for line in shown], self.truth(path))
                    if wide:
                        self.assertIn(self.shown(path, "-j", "unsized")[0],
                                      ("unsized(v=[1, 2, 3, 4, 5, 6, 7, 8], w=[9, 10])",
                                       "unsized(v=<not known>, w=<not known>)"))
                    shown = self.shown(path, "-j", "sum", "--if", "args.v[3] == 4 && args.n[2] < 0", "--print", "args.v[2]")
                    self.assertEqual(shown, ["sum(v[2]=3)"])


    def test_without_registers_for_them(self):
        """They are passed in another way, which nothing says; the result then takes a parameter's register."""
        for compiler in ("gcc", "clang"):
            for level in ("-O0", "-O1"):
                with self.subTest((compiler, level)):
                    path = self.made("split_vectors.c", compiler, "-w", "-g", level)
                    shown = self.shown(path, "-r", "scaled", "-r", "measured")
                    for line, truth in zip(shown, self.truth(path), strict=True):
                        line = re.sub(" and took.*", "", line)
                        self.assertRegex(truth, re.escape(line).replace("<not\\ known>", r".+"), line)


class Sizes(ValueTest):
    def test_texts_of_structures(self):
        for compiler in ("gcc", "clang"):
            path = self.made("sizes.c", compiler, "-g", "-O0")
            shown = self.shown(path, "-j", "by_value --print args.o,*args.p", "-j",
                               "flexible --print args.m->count,args.m->name,args.m->data[2]")
            self.assertEqual(shown, [line.replace("*p", "*args.p") for line in self.truth(path)])

    def test_sizes_that_only_the_program_knows(self):
        """Elements of such an array are known, its end and its rows are not."""
        path = self.made("sizes.c", "gcc", "-g", "-O0")
        shown = self.shown(path, "-k", "sizes.c:35 --print var.b[2],var.n")
        self.assertRegex("\n".join(shown), r"^variable\+0x\w+ b\[2\]=23 n=3$")
        for where, what in (("sizes.c:35", "var.b"), ("variable", "args.a[1][0]"), ("flexible", "args.m->data")):
            trace = ktrace("run", "-k", f"{where} --print {what}", "--", path)
            self.assertEqual(trace.status, 125, trace)
            self.assertRegex(trace.err, "the size of .* is not known")


class Enumerators(ValueTest):
    def test_names(self):
        path = self.made("enumerators.cc", "g++", "-g", "-O1")
        for name in ("hi", "Level::hi", "shop::Level::hi"):
            self.assertEqual(self.shown(path, "-j", "use", "--if", f"args.l == {name}", "--print", "args.l"), ["use(l=hi)"])
        for name in ("red", "shop::red", "Color::red", "shop::Color::red"):
            self.assertEqual(self.shown(path, "-j", "use", "--if", f"args.c == {name}", "--print", "args.n"), ["use(n=2)"])


class MemberPointers(ValueTest):
    def test_words_and_what_stands_behind_them(self):
        for compiler in ("g++", "clang++"):
            for level in ("-O0", "-O2"):
                with self.subTest((compiler, level)):
                    path = self.made("member_pointers.cc", compiler, "-g", "-no-pie", level)
                    truth = self.truth(path)
                    shown = self.shown(path, "-j", "function --print args.p,args.k", "-j", "held", "-j", "data --print args.p,args.k")
                    self.assertEqual(shown, truth)


class Bases(ValueTest):
    def test_casts(self):
        for compiler in ("g++", "clang++"):
            path = self.made("bases.cc", compiler, "-g", "-O1")
            values = re.findall(r"=(\d+)", self.truth(path)[0])
            shown = self.shown(path, "-j", "f", "--print", "((C*)args.p)->c,((struct D *)args.p)->d,((B*)args.r)->b,"
                               "(C*)args.none == 0")
            self.assertEqual(re.findall(r"=(\d+)(?=[,)])", shown[0]), values, shown)


class LibraryTypes(ValueTest):
    """Objects of the C++ library by what they hold. The optimizer changes where they are, not what they are made of."""

    FUNCTIONS = ("texts", "vectors", "arrays", "maps", "sets", "tables", "queues", "maybe", "variants", "compounds", "pointers",
                 "times", "persons", "wide", "flags")

    def check(self, *command):
        path = self.made("library_types.cc", *command, "-std=c++20", "-g")
        self.check_entries(path, *self.FUNCTIONS)
        return path

    def test_of_gcc(self):
        self.check("g++", "-O2")
        self.check_json_and_keys(self.check("g++", "-O0"))

    def test_of_clang(self):
        self.check("clang++", "-O2")

    def test_of_libcxx(self):
        if not os.path.exists("/usr/lib/llvm-14/include/c++"):
            self.skipTest("libc++ is not installed")
        self.check("clang++", "-O0", "-stdlib=libc++")

    def check_json_and_keys(self, path):
        trace = ktrace("run", "-j", "maps", "-j", "maybe", "--format", "json", "--", path)
        maps, maybe = [json.loads(line)["args"] for line in trace.lines if '"type":"entry"' in line]
        self.assertEqual(maps, {"m": [["a", 1], ["b", 2], ["c", 3]], "n": [[0, []], [1, [1, 2]]],
                                "o": [["k", 1.5], ["k", 2.5]]})
        self.assertEqual(maybe, {"a": 5, "b": "text", "c": None, "d": "x"})
        trace = ktrace("run", "-q", "-j", "texts --by args.b", "-j", "vectors --by args.n", "--", path)
        self.assertRegex(trace.out, "1  texts     a text that has more than fifteen bytes")
        self.assertRegex(trace.out, r'1  vectors   \["one", "a text that has more than fifteen bytes"\]')


class OtherLanguages(ValueTest):
    """Texts, sequences and results of Rust and Go by what they hold."""

    def test_collections_of_rust(self):
        for flags in ((), ("-O",)):
            path = self.made("collections.rs", "rustc", "-g", "--crate-name", "collections", *flags)
            shown = self.shown(path, "--full", *[o for f in ("text", "slices", "nested", "shapes")
                                                 for o in ("-j", f"collections::{f}")])
            for line, wanted in zip(shown, self.truth(path), strict=True):
                self.assertIn(line.removeprefix("collections::"), (wanted, "slices(s=<not known>, t=<not known>)") if flags
                              else (wanted,))

    def test_values_of_go(self):
        workshop.require("go")
        made = os.path.join(workshop.room(), "values_of_go")
        for flags in ("", "-N -l"):
            with self.subTest(flags):
                workshop.execute("env", f"GOCACHE={workshop.room()}/cache", "GO111MODULE=off", "go", "build",
                                 f"-gcflags={flags}", "-o", made, os.path.join(LANGUAGES, "values.go"))
                functions = ("parse", "list", "words", "mixed", "compound", "array", "nothing")
                shown = self.shown(made, "--full", *[o for f in functions for o in ("-r", f"main.{f}")])
                shown = [re.sub(" and took.*", "", line) for line in shown]
                if flags:
                    self.assertEqual(shown, self.truth(made))
                else:  # parameters that nothing uses are nowhere
                    self.assertEqual([line.split(" returned")[1] for line in shown],
                                     [line.split(" returned")[1] for line in self.truth(made)])

    def test_interfaces_of_go(self):
        """By the type that they hold, as far as the debug information has it."""
        workshop.require("go")
        made = os.path.join(workshop.room(), "interfaces_of_go")
        for flags in ("", "-N -l"):
            with self.subTest(flags):
                workshop.execute("env", f"GOCACHE={workshop.room()}/cache", "GO111MODULE=off", "go", "build",
                                 f"-gcflags={flags}", "-o", made, os.path.join(LANGUAGES, "interfaces.go"))
                trace = ktrace("run", "--full", *[o for f in ("any", "drawn", "all", "failed") for o in ("-r", f"main.{f}")],
                               "--", made)
                shown = [re.sub(" and took.*", "", line) for line in trace.payloads]
                truth = [line for line in trace.out.splitlines() if line.startswith("main.")]
                self.assertEqual(len(truth), 28)
                self.assertEqual(shown, truth)
                trace = ktrace("run", "--format", "json", "-j", "main.drawn", "--", made)
                values = [json.loads(line)["args"]["s"] for line in trace.lines if '"type":"entry"' in line]
                self.assertEqual(values, [{"main.circle": {"radius": 1.5, "name": "round"}},
                                          {"*main.square": {"side": 2.5}}, None])


class Declarations(ValueTest):
    def test_of_functions_without_debug_information(self):
        """gcc writes those of what is called; the library's own names and types are not there."""
        room = os.path.join(workshop.room(), "declared")
        source = os.path.join(LANGUAGES, "declared.c")
        os.makedirs(room)
        workshop.execute("gcc", "-DLIBRARY", "-O1", "-fPIC", "-shared", source, "-o", f"{room}/libdeclared.so")
        workshop.execute("gcc", "-g", "-O1", source, "-o", f"{room}/declared", f"{room}/libdeclared.so",
                         "-Wl,-rpath,$ORIGIN")
        shown = self.shown(f"{room}/declared", "--full", "-r", "scaled", "-r", "moded", "-r", "halved")
        self.assertEqual([re.sub(" and took.*", "", line) for line in shown], self.truth(f"{room}/declared"))
        shown = self.shown(f"{room}/declared", "-r", "scaled", "--if", "retval < 0", "--print", "retval,arg0")
        self.assertEqual(len(shown), 1)


class Sanitizers(ValueTest):
    def test_notice_where_leaks_are_looked_for(self):
        path = self.made("bit_fields.c", "gcc", "-g", "-fsanitize=leak")
        said = "looks for leaks when it ends"
        self.assertIn(said, ktrace("run", "-j", "by_value", "--", path).err)
        off = dict(os.environ, LSAN_OPTIONS="detect_leaks=0")
        self.assertNotIn(said, ktrace("run", "-j", "by_value", "--", path, env=off).err)
        self.assertNotIn(said, ktrace("run", "-j", "by_value", "--", self.made("bit_fields.c", "gcc", "-g")).err)


class WideTexts(ValueTest):
    def test_behind_pointers_and_in_structures(self):
        for compiler in ("g++", "clang++"):
            for level in ("-O0", "-O2"):
                with self.subTest((compiler, level)):
                    path = self.made("wide.cc", compiler, level, "-g")
                    shown = self.shown(path, "--full", "-r", "wide", "-r", "held")
                    self.assertEqual([re.sub(" and took.*", "", line) for line in shown], self.truth(path))
                    found = [json.loads(line) for line in ktrace("run", "--format", "json", "-r", "wide", "--", path).lines
                             if '"type":"return"' in line]
                    self.assertEqual(found[0]["args"], {"w": "h\u00e4llo", "s": "utf\U0001f600", "l": "x\U0001f600\ny"})
                    self.assertEqual(found[1]["args"]["s"], [55296, 120, 0])


class PointersToFunctions(ValueTest):
    def test_names_of_functions_and_members(self):
        path = self.made("pointers.cc", "g++", "-g", "-O0", "-no-pie")
        self.check_entries(path, "call", "table", "bases", "data")
        self.assertEqual(self.shown(path, "-j", "bases", "--print", "args.v.id,args.d.id,((Root *)&args.d)->id"),
                         ["bases(v.id=7, d.id=9, ((Root *)&args.d)->id=9)"])
