"""Typed arguments and results: every class of the psABI, by both compilers, optimized and not, DWARF 4 and 5."""
import json
import os
import re
import tempfile

from live import MACHINE, RESULT, TOOK, LiveTest, ktrace
from workshop import SOURCES, build, execute, room

ODD = r'"tab\t quote\" back\\ bell\x07 \xffé esc\x1b[31m"'
OWNER = "someone with a long name that is not kept inside"

# What -j shows. P stands for a pointer.
ENTRIES = {
    "take_small": "a=-5, b=200, c=-300, d=60000",
    "take_wide": "a=-7, b=4000000000, c=-9223372036854775808, d=18446744073709551615",
    "take_scalars": "yes=true, c='k', color=BLUE, level=high, p=P",
    "give_color": "n=1",
    "give_char": "n=2",
    "take_floats": "f=1.5, d=-2.25, l=3.5",
    "give_float": "d=5",
    "take_texts": f'plain="plain", odd={ODD}, none=0x0, wild=<fault 0x10>, edge="edge"..., bytes="raw"',
    "take_pair": "p={.x=1, .y=2}, r={.re=0.5, .im=40}",
    "give_real": "r={.re=1.5, .im=-2}, by=3",
    "take_mixed": "m={.n=41, .d=0.125}",
    "take_large": 'l={.a=[1, 2, 3, 4], .name="large"}, n=6',
    "take_bits": "b={.a=5, .b=-3, .c=4294967296}, e={.i=7, .f=1e-44}",
    "take_node": "node={.value=1, .next=P, .label=P}, "
                 'grid={.cells=[[1, 2, 3], [4, 5, -6]], .text="grid", .color=GREEN, .on=true}',
    "take_ten": r"a=1, b=2, c=3, d='\x04', e=5, f=6, g=7, h=8, i=9, j='\n'",
    "take_nothing": "",
    "give_nothing": "n=3",
    "take_vector": "v=[-5, 7], n=4",
    "take_huge": "n=1267650600228229401496703205376, by=-1",
    "take_stacked": 'a=1, b=2, c=3, d=4, e=5, l={.a=[6, 7, 8, 9], .name="large"}, m={.n=10, .d=0.5}, n={.n=11, .d=1.5}, '
                    'text="A"',
    "changes": 'n=5, text="a"',
}

# What -r shows.
RESULTS = {
    "take_small": "-4",
    "take_wide": "18446744073709551615",
    "take_scalars": "true",
    "give_color": "GREEN",
    "give_char": "'c'",
    "take_floats": "2.75",
    "give_float": "2.5",
    "give_long_double": "7.25",
    "take_texts": '"lain"',
    "take_pair": "{.x=42, .y=1}",
    "give_real": "{.re=4.5, .im=-2}",
    "take_mixed": "{.n=42, .d=0.25}",
    "take_large": '{.a=[1, 2, 3, 10], .name="large"}',
    "take_bits": "9",
    "take_node": "-5",
    "take_ten": "55",
    "take_nothing": None,
    "give_nothing": None,
    "take_vector": "[-1, 7]",
    "take_huge": "1267650600228229401496703205375",
    "take_stacked": "109",
    "changes": "830",
}


def arguments(*flags, compiler="g++"):
    return build("arguments", "-std=c++20", *flags, compiler=compiler)


class ArgumentTest(LiveTest):
    def run_once(self, path, *options):
        """A trace of one round, its output apart from the program's; values in full."""
        out = os.path.join(room(), "events")
        with tempfile.TemporaryFile() as stdin:
            stdin.write(b"go\n")
            stdin.seek(0)
            trace = ktrace("run", "-o", out, "--full", *options, "--", path, stdin=stdin)
        self.assertEqual(trace.status, 0, trace)
        self.assertEqual(trace.out, "ready\ndone\n")
        with open(out) as f:
            trace.out = f.read()
        return trace

    def payload(self, trace, start):
        """The only one that begins so: `f(` of an entry, `f returned` of a return, without its arguments."""
        returns = [re.sub(r"^([^(]+)\(.*\) returned ", r"\1 returned ", p) for p in trace.payloads if ") returned " in p]
        others = [p for p in trace.payloads if ") returned " not in p]
        found = [p for p in returns + others if p.startswith(start)]
        self.assertEqual(len(found), 1, f"{start}: {found}\n{trace}")
        return found[0]

    def matches(self, text, expected):
        pattern = re.sub(r"\bP\b", "0x[0-9a-f]+", re.escape(expected))
        self.assertRegex(text, "^" + pattern + "$")


class Keys(ArgumentTest):
    """The rows of --by are called by what events show."""
    KEYS = {
        "take_huge": ("args.n", "1267650600228229401496703205376", 1 << 100),
        "take_floats": ("args.l", "3.5", 3.5),
        "take_pair": ("args.p", "{.x=1, .y=2}", {"x": 1, "y": 2}),
        "take_bits": ("args.b", "{.a=5, .b=-3, .c=4294967296}", {"a": 5, "b": -3, "c": 4294967296}),
        "take_vector": ("args.v", "[-5, 7]", [-5, 7]),
        "take_scalars": ("args.color", "BLUE", "BLUE"),
        "take_ten": ("args.j", r"'\n'", "\n"),
    }

    def rows(self, *options):
        path = arguments("-O2", "-g")
        for name, (expr, text, value) in self.KEYS.items():
            yield self.run_once(path, "-j", name, "--by", expr, *options), name, text, value

    def test_text(self):
        for trace, name, text, _ in self.rows():
            self.assertEqual(trace.lines[-1], f"       1  {name:<{len('function')}}  {text}", name)

    def test_json(self):
        for trace, name, _, value in self.rows("--format", "json"):
            self.assertEqual(trace.summary(name)["by"], [{"key": value, "count": 1}], name)


class Types(ArgumentTest):
    def every_type(self, *flags, compiler="g++"):
        path = arguments(*flags, compiler=compiler)
        options = [o for name in ENTRIES for o in ("-j", name)] + [o for name in RESULTS for o in ("-r", name)]
        trace = self.run_once(path, *options)
        for name, expected in ENTRIES.items():
            self.matches(self.payload(trace, name + "("), f"{name}({expected})")
        for name, expected in RESULTS.items():
            text = self.payload(trace, name + " returned").rsplit(" and took ", 1)
            self.assertRegex(f"took {text[1]}", f"^{TOOK}$")
            self.matches(text[0], f"{name} returned" + (f" {expected}" if expected is not None else ""))

    def test_gcc_unoptimized(self):
        self.every_type("-O0", "-g")

    def test_gcc_optimized(self):
        self.every_type("-O2", "-g")

    def test_gcc_dwarf4(self):
        self.every_type("-O1", "-gdwarf-4")

    def test_gcc_dwarf4_unoptimized(self):
        self.every_type("-O0", "-gdwarf-4")

    def test_gcc_without_frame_pointer(self):
        self.every_type("-O0", "-g", "-fomit-frame-pointer", "-no-pie", "-fno-pie")

    def test_gcc_compressed_sections(self):
        self.every_type("-O2", "-g", "-gz")

    def test_gcc_split(self):
        # The .dwo file lies beside the objects: both are made in a directory of their own.
        directory = tempfile.mkdtemp(dir=room())
        made = os.path.join(directory, "arguments")
        execute("g++", "-std=c++20", "-O2", "-g", "-gsplit-dwarf", os.path.join(SOURCES, "arguments.cc"), "-o", made)
        trace = self.run_once(made, "-j", "take_node")
        self.matches(self.payload(trace, "take_node("), f"take_node({ENTRIES['take_node']})")

    def test_gcc_type_units(self):
        self.every_type("-O2", "-g", "-fdebug-types-section")

    def test_clang_unoptimized(self):
        self.every_type("-O0", "-g", compiler="clang++")

    def test_clang_optimized(self):
        self.every_type("-O2", "-g", compiler="clang++")

    def test_clang_dwarf4(self):
        self.every_type("-O1", "-gdwarf-4", compiler="clang++")


class Classes(ArgumentTest):
    def check(self, path):
        trace = self.run_once(path, "-j", "Account::pay", "-r", "Account::pay", "-j", "Account::is_owned_by",
                              "-r", "Account::is_owned_by", "-r", "Account::owner")
        pay = self.payload(trace, "Account::pay(")
        self.assertRegex(pay, r'to="a shop", cents=58, where=\{\.x=3, \.y=4\}, times=4\)$')
        self.assertRegex(pay, r"this=\{.*\.cents_=1000\}")
        self.assertRegex(self.payload(trace, "Account::pay returned"), "returned 942 and")
        self.assertRegex(self.payload(trace, "Account::is_owned_by("), f'whom="{OWNER}", part="someone"\\)$')
        self.assertRegex(self.payload(trace, "Account::is_owned_by returned"), "returned true and")
        owners = [p for p in trace.payloads if "Account::owner" in p]
        self.assertEqual(len(owners), 2)
        for owner in owners:
            self.assertIn(f'returned "{OWNER}" and', owner)

    def test_classes_unoptimized(self):
        self.check(arguments("-O0", "-g"))

    def test_classes_optimized(self):
        self.check(arguments("-O2", "-g"))

    def test_classes_clang(self):
        self.check(arguments("-O2", "-g", "-fstandalone-debug", compiler="clang++"))

    def test_declared_only(self):
        # Without -fstandalone-debug clang leaves the definition of std::string to the library's debug information.
        trace = self.run_once(arguments("-O0", "-g", compiler="clang++"), "-j", "Account::pay")
        self.assertRegex(self.payload(trace, "Account::pay("), r"to=(0x[0-9a-f]+|\"a shop\"), cents=58")

    def test_text_conditions(self):
        trace = self.run_once(arguments("-O2", "-g"), "-j", "Account::pay", "--if", 'args.to == "a shop"', "--print",
                              "args.to, args.this->cents_, args.where.y, str(args.this->owner_._M_dataplus._M_p, 7)")
        self.assertTrue(self.payload(trace, "Account::pay(").endswith(
            '(to="a shop", this->cents_=1000, where.y=4, '
            'str(args.this->owner_._M_dataplus._M_p, 7)="someone"...)'), trace)
        trace = self.run_once(arguments("-O2", "-g"), "-j", "Account::pay", "--if", 'args.to == "another"')
        self.assertEqual(trace.payloads, [])


class Json(ArgumentTest):
    def test_json_values(self):
        trace = self.run_once(arguments("-O2", "-g"), "--format", "json", "-j", "take_*", "-r", "take_*", "-r", "give_*",
                              "-r", "changes")
        entries = {e["symbol"]: e["args"] for e in trace.events("entry")}
        returns = {e["symbol"]: e for e in trace.events("return")}
        self.assertEqual(entries["take_small"], {"a": -5, "b": 200, "c": -300, "d": 60000})
        self.assertEqual(entries["take_wide"]["d"], 2**64 - 1)
        self.assertEqual(entries["take_wide"]["c"], -2**63)
        scalars = dict(entries["take_scalars"])
        self.assertRegex(scalars.pop("p"), "^0x[0-9a-f]+$")
        self.assertEqual(scalars, {"yes": True, "c": "k", "color": "BLUE", "level": "high"})
        self.assertEqual(entries["take_floats"], {"f": 1.5, "d": -2.25, "l": 3.5})
        texts = entries["take_texts"]
        self.assertEqual((texts["plain"], texts["none"], texts["wild"], texts["edge"]),
                         ("plain", "0x0", {"fault": "0x10"}, "edge"))
        self.assertTrue(texts["odd"].startswith('tab\t quote" back\\ bell\x07 '), texts)
        self.assertEqual(entries["take_pair"], {"p": {"x": 1, "y": 2}, "r": {"re": 0.5, "im": 40}})
        self.assertEqual(entries["take_large"]["l"]["a"], [1, 2, 3, 4])
        self.assertEqual(entries["take_node"]["grid"],
                         {"cells": [[1, 2, 3], [4, 5, -6]], "text": "grid", "color": "GREEN", "on": True})
        self.assertEqual(returns["take_pair"]["retval"], {"x": 42, "y": 1})
        self.assertEqual(returns["give_color"]["retval"], "GREEN")
        self.assertNotIn("retval", returns["take_nothing"])
        self.assertEqual(returns["changes"]["args"], {"n": 5, "text": "a"})
        self.assertEqual(returns["changes"]["retval"], 830)
        # Arguments at the return are those at entry.
        for name, args in entries.items():
            self.assertEqual(json.dumps(returns[name]["args"]), json.dumps(args))


class AtReturn(ArgumentTest):
    def test_arguments_as_at_entry(self):
        for flags in (("-O0", "-g"), ("-O2", "-g")):
            trace = self.run_once(arguments(*flags), "-r", "changes", "--if", "args.n == 5 && retval == 830", "--print",
                                  'args.n, args.text, retval - args.n, arg0')
            self.assertRegex(trace.payloads[0],
                             rf'^changes\(n=5, text="a", retval - args.n=825, arg0=5\) returned 830 and {TOOK}$')


class Variables(ArgumentTest):
    def line(self, text):
        with open(os.path.join(SOURCES, "arguments.cc")) as f:
            return next(i for i, line in enumerate(f, 1) if text in line)

    def test_locals_at_a_line(self):
        spec = f"arguments.cc:{self.line('line of middle')}"
        for compiler, flags in (("g++", ("-O0", "-g")), ("g++", ("-O2", "-g")), ("clang++", ("-O0", "-g"))):
            trace = self.run_once(arguments(*flags, compiler=compiler), "-k", spec, "--print", "var.local, var.n, args.n")
            self.assertEqual(len(trace.payloads), 1, trace)
            self.assertRegex(trace.payloads[0], r"^middle\+0x[0-9a-f]+ local=10 n=5 n=5$")

    def test_unknown_variable(self):
        path = arguments("-O0", "-g")
        trace = ktrace("run", "-k", f"arguments.cc:{self.line('line of middle')}", "--print", "var.locle", "--", path)
        self.assertEqual(trace.status, 125, trace)
        self.assertIn("locle", trace.err)
        self.assertIn("local", trace.err)


class WithoutDwarf(ArgumentTest):
    def test_registers_in_hex(self):
        path = arguments("-O2")
        trace = self.run_once(path, "-j", "take_ten", "-r", "take_ten")
        self.assertRegex(self.payload(trace, "take_ten("),
                         r"^take_ten\(arg0=0x1, arg1=0x2, arg2=0x3, arg3=0x4, arg4=0x5, arg5=0x6\)$")
        self.assertRegex(self.payload(trace, "take_ten returned"), rf"^take_ten returned 55 and {TOOK}$")

    def test_lines_alone_are_no_types(self):
        for compiler in ("g++", "clang++"):
            trace = self.run_once(arguments("-O2", "-g1", compiler=compiler), "-j", "take_ten", "-r", "take_ten")
            self.assertRegex(self.payload(trace, "take_ten("),
                             r"^take_ten\(arg0=0x1, arg1=0x2, arg2=0x3, arg3=0x4, arg4=0x5, arg5=0x6\)$")
            self.assertRegex(self.payload(trace, "take_ten returned"), rf"^take_ten returned 55 and {TOOK}$")

    def test_numbers_are_signed(self):
        trace = self.run_once(arguments("-O2"), "-k", "take_small", "--if", "(int32)arg0 == -5", "--print",
                              "(int8)arg0, (uint8)arg0, (int64)(int32)arg0 - 1")
        self.assertEqual(trace.payloads,
                         ["take_small+0x0 (int8)arg0=-5 (uint8)arg0=251 (int64)(int32)arg0 - 1=-6"])

    def test_names_need_dwarf(self):
        target = self.start(arguments("-O2"))
        trace = ktrace("attach", "-p", target.pid, "-j", "take_ten", "--if", "args.a > 3")
        self.assertEqual(trace.status, 1, trace)
        self.assertRegex(trace.err, "DWARF|debug information")
        self.check_untouched(target)

    def test_assembly_has_no_types(self):
        target = self.start(build("assembly", "-O1", "-g", sources=["assembly/main.c", f"assembly/work_{MACHINE}.s"]))
        tracer = self.attach(target, "-j", "asm_work", "-r", "asm_work")
        target.tell()
        target.truth("result 42")
        entry, back = tracer.stop().payloads
        self.assertRegex(entry, r"^asm_work\(arg0=0x3, arg1=0x27, .*arg5=0x[0-9a-f]+\)$")
        self.assertRegex(back, rf"^asm_work\(arg0=0x3, .*\) returned 42 and {TOOK}$")
        tracer = self.attach(target, "-k", "asm_work", "--print", "arg1", f"--post=arg1, reg(\"{RESULT}\")")
        target.tell()
        target.truth("result 42")
        self.assertEqual(tracer.stop().payloads, ["asm_work+0x0 arg1=39", f'asm_work+0x0 post arg1=39 reg("{RESULT}")=0x2a'])
        self.check_untouched(target)
        self.assertEqual(target.end(), 0)
