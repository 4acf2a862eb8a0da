"""errno: read at a return, in expressions by its names, and set with an injected failure, in each thread its own."""
import errno

from live import LiveTest, ktrace, program
from workshop import build

ABSENT = "/nonexistent"


class Errno(LiveTest):
    def said(self, path, *options, target=None):
        """The events; `results` has what the target printed: (result, errno) of open, of close, and so of its thread."""
        target = self.start(target or program("errors"))
        tracer = self.attach(target, "--format", "json", *options)
        target.tell(path)
        self.results = [tuple(map(int, target.truth(rf"^{name} (-?\d+) errno (\d+)").groups()))
                        for name in ("open", "close") * 2]
        trace = tracer.stop()
        self.assertEqual(trace.status, 0, trace)
        self.check_untouched(target)
        self.assertEqual(target.end(), 0)
        return trace.events()

    def test_is_read_at_the_return(self):
        events = self.said(ABSENT, "-r", "libc:open", "-r", "libc:close", "--print", "errno")
        self.assertEqual([e["values"]["errno"] for e in events], [number for _, number in self.results])
        self.assertEqual(self.results, [(-1, errno.ENOENT), (-1, errno.EBADF)] * 2)

    def test_is_read_at_an_entry(self):
        events = self.said("/", "-j", "libc:open", "-k", "libc:close", "--print", "errno, errno == E2BIG")
        self.assertEqual([list(e["values"].values()) for e in events], [[7, 1]] * 4)

    def test_decides_at_the_return(self):
        events = self.said(ABSENT, "-r", "libc:open", "-r", "libc:close", "--if", "retval == -1 && errno == EBADF")
        self.assertEqual([e["symbol"] for e in events], ["close", "close"])

    def test_is_set_where_a_function_is_skipped(self):
        for kind in ("-j", "-r", "-k"):
            events = self.said("/", kind, "libc:open", "--skip=-1", "--set-errno", "ENOSPC")
            self.assertEqual(self.results, [(-1, errno.ENOSPC), (-1, errno.EBADF)] * 2)
            self.assertEqual([e["set"] for e in events], [{"errno": errno.ENOSPC}] * 2)

    def test_is_set_at_a_return(self):
        self.said("/", "-r", "libc:close", "--set-ret", "-1", "--set-errno", "EIO")
        self.assertEqual(self.results, [(0, 7), (-1, errno.EIO)] * 2)

    def test_of_static_programs(self):
        for flags in (("-static", "-pthread"), ("-static-pie", "-pthread")):
            self.said("/", "-j", "open", "--skip=-1", "--set-errno", "EMFILE", target=build("errors", *flags))
            self.assertEqual(self.results[0], (-1, errno.EMFILE))

    def test_is_not_known_in_a_static_program_that_is_stripped(self):
        target = self.start(build("errors", "-static", "-pthread", "-s"))
        refused = ktrace("attach", "-p", target.pid, "-k", f"0x{self.entry(target):x}", "--print", "errno")
        self.assertEqual(refused.status, 1, refused)
        self.assertIn("errno is not known: no module has the C library's __errno_location", refused.err)

    def entry(self, target):
        """The address of the program's first instruction."""
        with open(f"/proc/{target.pid}/exe", "rb") as file:
            return int.from_bytes(file.read(32)[24:32], "little")

    def test_from_the_first_instruction(self):
        """The loader has filled the slot when the probes are armed."""
        ran = ktrace("run", "-qo", "/dev/null", "-j", "libc:open", "--skip=-1", "--set-errno", "ENOSPC", "cat", "/",
                     env={"LC_ALL": "C", "PATH": "/bin:/usr/bin"})
        self.assertEqual((ran.status, ran.err), (1, "cat: /: No space left on device\n"))
