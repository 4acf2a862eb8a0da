"""Names of the source that the symbol table does not have, or has in another spelling. The targets say how often each
function was called."""
import os
import re

import workshop
from live import LiveTest, ktrace

LANGUAGES = os.path.join(workshop.SOURCES, "languages")


class Names(LiveTest):
    def check(self, path, prefix="", also=()):
        """Each function is found by its name, and by what is suggested for one that is spelled wrongly."""
        truth = re.findall(r"^(\S+) called (\d+)$", workshop.execute(path), re.M)
        self.assertTrue(truth)
        for name, called in [(prefix + name, called) for name, called in truth] + list(also):
            with self.subTest(name):
                self.assertEqual(self.hits(path, name), int(called))
        for name, _ in truth:
            if re.search(r"[*?]", name):
                continue
            refused = ktrace("run", "-j", prefix + name + "x", "--", path)
            suggested = re.search(r"did you mean (.*)\?", refused.err)
            self.assertTrue(suggested, refused)
            for near in re.split(", | and (?!\\d+ more)", re.sub(r" and \d+ more", "", suggested[1])):
                self.assertIsNotNone(self.hits(path, near), near)

    def hits(self, path, name):
        """Of all functions that have this name."""
        trace = ktrace("run", "-j", name, "--count", "--format", "json", "--", path)
        self.assertIn("Attached", trace.err)
        return sum(int(n) for n in re.findall(r'"hits":(\d+)', trace.out))

    def made(self, source, *command):
        workshop.require(command[0])
        made = os.path.join(workshop.room(), "-".join([os.path.basename(c) for c in command]).replace("=", "-"))
        workshop.execute(*command, os.path.join(LANGUAGES, source), "-o", made)
        return made

    def test_nested_functions_and_labels(self):
        for flags in (("-O0", "-gdwarf-4"), ("-O1", "-gdwarf-5"), ("-O2", "-g")):
            self.check(self.made("nested.c", "gcc", *flags))

    def test_without_a_symbol_table(self):
        path = self.made("nested.c", "gcc", "-g", "-O1")
        workshop.execute("strip", "-s", "--keep-section=.debug_*", path, "-o", path + "-stripped")
        self.check(path + "-stripped")
        trace = ktrace("run", "-j", "my_open", "--stack", "--", path + "-stripped")
        self.assertRegex(trace.out, r"#1  main\+0x[0-9a-f]+ \[")
        self.assertIn("int outer(int k)", ktrace("list", path + "-stripped", "outer").out)

    def test_other_prefix(self):
        workshop.require("objcopy")
        path = self.made("nested.c", "gcc", "-g", "-O1")
        workshop.execute("objcopy", "--redefine-sym", "outer=x_outer", "--redefine-sym", "main=xx_main", path)
        self.check(path, also=[("main", 1), ("x_outer", 1)])

    def test_statics_of_link_time_optimization(self):
        """Two files have a static function of one name; the linker's compiler renames one or both."""
        if not os.path.exists(workshop.execute("gcc", "-print-prog-name=lto1").strip()):
            self.skipTest("gcc has no link-time optimization here")
        folder = workshop.room()
        for file, name in (("one.c", "one"), ("two.c", "two")):
            with open(os.path.join(folder, file), "w") as f:
                f.write(f'__attribute__((noinline)) static int twin(int n) {{ __asm__ volatile(""); return n + {len(file)}; }}\n'
                        f"int {name}(int n) {{ return twin(n) + twin(n + 1); }}\n")
        with open(os.path.join(folder, "main.c"), "w") as f:
            f.write("int puts(const char *); int one(int); int two(int);\n"
                    'int main(int n, char **v) { return one(n) + two(n) ? puts("twin called 4") < 0 : 0; }\n')
        for compiler in ("gcc", "clang"):
            if compiler == "clang" and not os.path.exists("/usr/lib/llvm-14/lib/LLVMgold.so"):
                continue
            path = os.path.join(folder, "lto-" + compiler)
            workshop.require(compiler)
            workshop.execute(compiler, "-O2", "-g", "-flto", *[os.path.join(folder, f"{f}.c") for f in ("one", "two", "main")],
                             "-o", path)
            self.check(path)

    def test_fortran(self):
        for flags in (("-O0", "-g"), ("-O2", "-fno-inline", "-g")):
            self.check(self.made("procedures.f90", "gfortran", "-J", workshop.room(), *flags))

    def test_rust(self):
        for flags in ((), ("-C", "symbol-mangling-version=v0"), ("-O", "-C", "symbol-mangling-version=v0")):
            self.check(self.made("generics.rs", "rustc", "-g", "--crate-name", "generics", *flags), "generics::")

    def test_go(self):
        workshop.require("go")
        made = os.path.join(workshop.room(), "generics-go")
        workshop.execute("go", "build", "-o", made, os.path.join(LANGUAGES, "generics.go"))
        self.check(made)
