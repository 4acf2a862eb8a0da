"""Places of one name: the summary and the tables distinguish them."""
import os
import re

from live import KTRACE
from specs import SpecTest, names
from workshop import SOURCES, build, execute


def line_of(source, text):
    """FILE:LINE of the one line of a source that holds a text."""
    with open(os.path.join(SOURCES, source)) as f:
        numbers = [n for n, line in enumerate(f, 1) if text in line]
    assert len(numbers) == 1, numbers
    return f"{source}:{numbers[0]}"


class Namesakes(SpecTest):
    def told(self, path, *options):
        """{which: hits} of all places of one name."""
        summaries = self.hits(path, *options).summaries()
        self.assertEqual(len({s["symbol"] for s in summaries}), 1, summaries)
        return {s.get("which"): s["hits"] for s in summaries}

    def test_overloads(self):
        path = build("cxx_names", "-O1", "-g", compiler="g++")
        self.assertEqual(self.told(path, "-r", "shop::Till::add"),
                         {"shop::Till::add(int)": 3, "shop::Till::add(char const*)": 2})

    def test_inlined_instances(self):
        told = self.told(names(), "-j", "inlined_twice")
        wanted = {f"in {user} at {line_of('names/main.c', 'int ' + user)}": hits
                  for user, hits in (("first_user", 2), ("second_user", 1))}
        self.assertEqual({re.sub(r"at \S*(?=names/)", "at ", which): hits for which, hits in told.items()}, wanted)

    def test_static_functions_of_two_files(self):
        told = self.told(names(), "-j", "same_name")
        wanted = {f"at {line_of(source, 'int same_name(')}": hits
                  for source, hits in (("names/main.c", 3), ("names/other.c", 4))}
        self.assertEqual({re.sub(r"at \S*(?=names/)", "at ", which): hits for which, hits in told.items()}, wanted)

    def test_without_debug_information(self):
        path = names("-g0")
        addresses = re.findall(r"^(\w+) t same_name$", execute("nm", path), re.M)
        self.assertEqual({f"{int(a, 16):#x}" for a in addresses}, set(self.told(path, "-k", "same_name")))

    def test_text(self):
        path = build("cxx_names", "-O1", "-g", compiler="g++")
        target, _ = self.started(path)
        tracer = self.attach(target, "-v", "-r", "shop::Till::add", "--count")
        target.tell()
        target.truth("^done")
        asked = execute(KTRACE, "ctl", "-p", target.pid, "stats")
        trace = tracer.stop()
        self.assertEqual(target.end(), 0)
        for text in (asked, trace.err):
            self.assertRegex(text, r"r: 3 hits = .*; shop::Till::add\(int\)\n")
            self.assertRegex(text, r"r: 2 hits = .*; shop::Till::add\(char const\*\)\n")
        self.assertRegex(trace.out, r"(?m)^       3  shop::Till::add\(int\)$")

    def test_others_are_not_spoken_of(self):
        """One name, one place; and two probes at one place."""
        self.assertEqual(self.told(names(), "-j", "plain_one", "-j", "plain_one"), {None: 5})
