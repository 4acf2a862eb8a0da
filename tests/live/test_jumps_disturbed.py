"""Jumps that others disturb: orders in the middle of planning and behind it, a kernel uprobe."""
import os
import re
import subprocess
import tempfile
import unittest

import test_jumps
from live import until

TRACEFS = "/sys/kernel/tracing"
HAS_UPROBES = test_jumps.HAS_JUMPS and os.access(f"{TRACEFS}/uprobe_events", os.W_OK)


@unittest.skipUnless(test_jumps.HAS_JUMPS, test_jumps.NO_JUMPS)
class Switches(test_jumps.Jumps):
    """Orders that come in the middle of planning and planting, or one after the other."""

    MANY = 3000  # functions, each with a first instruction that is as long as a jump

    def start_many(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        with open(f"{folder}/many.c", "w") as source:
            source.write("#include <stdio.h>\nvolatile int g = 3;\n")
            for n in range(self.MANY):
                source.write(f"__attribute__((noinline, noclone)) int many{n}(int i) {{ return g + i + {n}; }}\n")
            source.write("int (*const all[])(int) = {" + ", ".join(f"many{n}" for n in range(self.MANY)) + "};\n")
            source.write("int main(void) { puts(\"ready\"); fflush(stdout); for (int i = 0;; i = (i + 1) % 1000)\n"
                         f"for (int n = 0; n < {self.MANY}; n++) if (all[n](i) != 3 + i + n) return 1; }}\n")
        subprocess.run(["gcc", "-O2", "-fcf-protection=none", "-o", f"{folder}/many", f"{folder}/many.c"], check=True)
        return self.start(f"{folder}/many")

    def test_jumps_that_are_switched_off_while_they_are_planned(self):
        """No byte of a jump is left behind the first byte of an instruction that is there again."""
        for wait in (0, 1, 2, 3, 4, 6, 8, 11):
            self.target = self.start_many() if wait == 0 else self.target
            self.tracer = self.attach(self.target, *test_jumps.JUMP, "-j", "many*:many[0-9]*", "--count", "--format", "json")
            for _ in range(wait):  # so many orders later
                self.ask("stats")
            self.ask("off")
            for _ in range(6):
                self.ask("stats")
            self.assertIsNone(self.target.process.poll(), "the target is dead")
            self.assertEqual(self.tracer.stop().status, 0)
            self.check_untouched(self.target)

    def test_jumps_that_are_asked_for_one_by_one(self):
        """Each finds room in the memory of those before."""
        self.begin_with_jumps(names=("counted",), threads=2)
        functions = ("atoi", "rand", "srand", "random", "puts", "putchar", "fputs", "fflush", "fopen", "fclose", "fgets", "perror",
                     "qsort", "bsearch", "getenv", "setenv", "system", "popen", "pclose", "abort", "remove", "rename")
        for name in functions:
            self.ask("add", "-j", f"libc.so.6:{name}", "--count")
            until(lambda: "under way" not in self.list()[name][0], f"it is decided for {name}")
        listed = self.list()
        self.assertNotIn("memory", str(listed))
        self.assertGreater(sum(listed[name][0] == "[OPTIMIZED]" for name in functions), 16, listed)
        self.finish(self.counts("work 100"))


@unittest.skipUnless(HAS_UPROBES, "the kernel sets no uprobes for this user")
class Uprobes(test_jumps.Jumps):
    """The kernel writes over the first byte of a jump, and puts the file's there when its probe goes."""

    EVENT = f"ktrace_test_{os.getpid()}"

    def place(self, symbol):
        """FILE:OFFSET of a function, in the words of uprobetracer.rst."""
        at, = (int(each, 16) for each in re.findall(rf"(?m)^([0-9a-f]{{16}}) j {symbol}\+0x0 ", self.ask("list")))
        with open(f"/proc/{self.target.pid}/maps") as maps:
            for fields in map(str.split, maps):
                start, end = (int(address, 16) for address in fields[0].split("-"))
                if start <= at < end:
                    return f"{fields[-1]}:{at - start + int(fields[2], 16):#x}"
        raise AssertionError(symbol)

    def tell_kernel(self, file, words):
        order = os.open(f"{TRACEFS}/{file}", os.O_WRONLY | os.O_APPEND)  # else what others have set goes
        os.write(order, words.encode())
        os.close(order)

    def test_jumps_that_a_uprobe_writes_over(self):
        self.begin_with_jumps()
        self.do("begin", "^running")
        self.tell_kernel("uprobe_events", f"p:{self.EVENT}/hit {self.place('loads')}\n")
        self.addCleanup(self.tell_kernel, "uprobe_events", f"-:{self.EVENT}/hit\n")
        try:
            self.tell_kernel(f"events/{self.EVENT}/hit/enable", "1")
            until(lambda: "something else has written there" in self.list()["loads"][0], "the jump is lifted")
        finally:
            self.tell_kernel(f"events/{self.EVENT}/hit/enable", "0")
        self.do("check 1000", "^right")
        truth = self.counts("end")
        trace = self.finish(truth, names=[name for name in test_jumps.ALL if name != "loads"])
        self.assertRegex(trace.err, r"(?m)^ktrace: loads\+0x0 \[jumper\]: something else has written there, a kernel uprobe")
