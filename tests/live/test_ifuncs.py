"""Probes of indirect functions (ifuncs): of what their resolvers choose, before and after these have run."""
import os
import re
import tempfile

from live import ktrace
from specs import SpecTest, names
from workshop import build, execute, room

CHOOSING = """
static int first(int n) { __asm__ volatile(""); return n + 1; }
static int second(int n) { __asm__ volatile(""); return n + 1; }
int plain_step(int n) { __asm__ volatile(""); return n; }
static int (*choose(void))(int) { return first; }
static int (*choose_other(void))(int) { return second; }
int late_step(int n) __attribute__((ifunc("choose")));
int never_step(int n) __attribute__((ifunc("choose_other")));
"""
CALLING = """
#include <stdio.h>
int late_step(int n);
int main(void) {
    int c;
    printf("ready\\n"), fflush(stdout);
    while ((c = getchar()) != EOF)
        if (c == '\\n') printf("done %d\\n", late_step(1)), fflush(stdout);
}
"""


class Ifuncs(SpecTest):
    def strlen(self, path, attached, warm=False, module=""):
        """strlen is called with the same pointer three times a line."""
        given = ["-j", module + "strlen", "--format", "json", "--print", "arg0"]
        if attached:
            target, _ = self.started(path)
            if warm:
                target.tell()
                target.truth("^done")
            tracer = self.attach(target, *given)
            target.tell()
            pointer = target.truth(r"strlen (0x[0-9a-f]+)")[1]
            trace = tracer.stop()
            self.check_untouched(target)
        else:
            with tempfile.TemporaryFile() as stdin:
                stdin.write(b"line\n")
                stdin.seek(0)
                out = os.path.join(room(), "events")
                trace = ktrace("run", "-o", out, *given, "--", path, stdin=stdin)
                pointer = re.search(r"strlen (0x[0-9a-f]+)", trace.out)[1]
                with open(out) as f:
                    trace.out = f.read()
        self.assertEqual(trace.status, 0, trace)
        seen = [e["values"]["arg0"] for e in trace.events("entry")]
        seen = [hex(v) if isinstance(v, int) else v for v in seen]
        self.assertEqual(seen.count(pointer), 3, trace)

    FLAGS = ["-fno-builtin"]

    def test_ifunc_not_called_yet(self):
        self.strlen(names(*self.FLAGS, "-Wl,-z,lazy"), attached=True)

    def test_ifunc_called_before(self):
        self.strlen(names(*self.FLAGS, "-Wl,-z,lazy"), attached=True, warm=True)

    def test_ifunc_bound_at_start(self):
        self.strlen(names(*self.FLAGS, "-Wl,-z,now"), attached=True)

    def test_ifunc_from_the_start_lazy(self):
        self.strlen(names(*self.FLAGS, "-Wl,-z,lazy"), attached=False)

    def test_ifunc_from_the_start_now(self):
        self.strlen(names(*self.FLAGS, "-Wl,-z,now"), attached=False)

    def test_ifunc_static(self):
        path = names(*self.FLAGS, "-static")
        self.strlen(path, attached=True)
        self.strlen(path, attached=False)

    def test_ifunc_static_pie(self):
        path = names(*self.FLAGS, "-static-pie")
        self.strlen(path, attached=True)
        self.strlen(path, attached=False)

    def test_ifunc_of_the_kernel(self):
        """libc's time() is a function of the vdso."""
        for binding in ("lazy", "now"):
            self.assertEqual(self.count_of(names(f"-Wl,-z,{binding}"), "libc:time", "-j"), {"time": 3})

    def test_ifunc_is_listed_as_waiting_until_it_is_chosen(self):
        folder = tempfile.mkdtemp(dir=room())
        for name, text in (("choosing.c", CHOOSING), ("calling.c", CALLING)):
            with open(os.path.join(folder, name), "w") as f:
                f.write(text)
        library = os.path.join(folder, "libchoosing.so")
        execute("gcc", "-O1", "-shared", "-fPIC", os.path.join(folder, "choosing.c"), "-o", library)
        target = self.start(build("calling", "-O1", library, "-Wl,-z,lazy", f"-Wl,-rpath,{folder}",
                                  sources=[os.path.join(folder, "calling.c")]))
        tracer = self.attach(target, "-k", "libchoosing:*_step", "--count", "--engine", "trap")
        self.assertIn("Attached 3 probes from 1 spec ", tracer.errors.seen[-1])

        def listed():
            answer = ktrace("ctl", "-p", target.pid, "list")
            self.assertEqual((answer.status, answer.err), (0, ""))
            return [(line.startswith("0" * 16), line.split(" ", 1)[1]) for line in sorted(answer.lines)]
        waiting = (True, "k never_step+0x0 [libchoosing.so] [PENDING]")
        plain = (False, "k plain_step+0x0 [libchoosing.so]")
        self.assertEqual(sorted(listed()), [plain, (True, "k late_step+0x0 [libchoosing.so] [PENDING]"), waiting])
        target.tell()
        target.truth("done 2")
        self.assertEqual(sorted(listed()), [(False, "k late_step+0x0 [libchoosing.so]"), plain, waiting])
        added = ktrace("ctl", "-p", target.pid, "add", "-k", "libchoosing.so:never_step", "--count")
        self.assertEqual(added.out, "2 k libchoosing.so:never_step: 0 locations: it waits until the process chooses an "
                                    "implementation\n")
        trace = tracer.stop()
        self.assertEqual(trace.status, 0, trace)
        self.check_untouched(target)
        self.assertEqual(target.end(), 0)

    def test_ifunc_by_module(self):
        self.strlen(names(*self.FLAGS, "-Wl,-z,now"), attached=True, module="libc:")
