"""The C library's functions without their debug information: names, flags, errno, and what they write."""
import json
import os
import tempfile

from live import LIBC, LiveTest, ktrace
from workshop import build, execute, room

FUNCTIONS = ("open", "openat", "mmap", "socket", "write", "read", "pthread_mutex_trylock", "memcmp", "snprintf")


class CLibrary(LiveTest):
    @classmethod
    def setUpClass(cls):
        cls.target = build("c_library", "-O1", "-fno-builtin")

    def bare(self):
        """A folder with a C library of which no debug information is found."""
        folder = tempfile.mkdtemp(dir=room())
        execute("objcopy", "--remove-section=.note.gnu.build-id", "--remove-section=.gnu_debuglink",
                LIBC, os.path.join(folder, "libc.so.6"))
        return folder

    def said(self, *options, env=None, functions=FUNCTIONS):
        """The events of the calls of `functions`, and the lines that the target has printed."""
        probes = [each for name in functions for each in ("-r", f"libc:{name}")]
        trace = ktrace("run", "-o", f"{room()}/events", *probes, *options, "--", self.target, env=env)
        self.assertEqual(trace.status, 0, trace)
        with open(f"{room()}/events", encoding="utf-8") as file:
            return file.read().splitlines(), trace.out.splitlines()

    def test_is_shown_as_the_program_wrote_it(self):
        bare = dict(os.environ, LD_LIBRARY_PATH=self.bare())
        for env in (None, bare):
            events, lines = self.said(env=env)
            shown = [event.split(" ", 2)[2].split(" and took ")[0] for event in events]
            self.assertEqual([line for line in shown if line in lines], lines)

    def test_has_results_that_compare_and_arguments_by_name(self):
        bare = dict(os.environ, LD_LIBRARY_PATH=self.bare())
        events, lines = self.said("--if", "retval < 0 && args.oflag == O_RDONLY", "--format", "json", env=bare,
                                  functions=("open",))
        self.assertTrue(lines[0].endswith(" -1 ENOENT"), lines)
        event = json.loads(events[0])
        self.assertEqual((event["retval"], event["errno"]), (-1, "ENOENT"))
        self.assertEqual(event["args"], {"file": "/nonexistent", "oflag": "O_RDONLY"})
        self.assertEqual([json.loads(each)["type"] for each in events[1:]], ["summary"])
