"""Probes of indirect functions (ifuncs): of what their resolvers choose, before and after these have run."""
import os
import re
import tempfile

from live import ktrace
from specs import SpecTest, names
from workshop import room


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

    def test_ifunc_by_module(self):
        self.strlen(names(*self.FLAGS, "-Wl,-z,now"), attached=True, module="libc:")
