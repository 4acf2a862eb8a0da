"""ktrace profile: where the time of a program goes that says so itself."""
import os
import re
import signal
import tempfile
import unittest
import xml.etree.ElementTree

from live import SLOW, LiveTest, has_sanitizers, ktrace, program, state_of, told_of, until

SVG = "{http://www.w3.org/2000/svg}"


def calls(sample):
    return [frame.get("symbol") for frame in sample["stack"]]


def is_traced(target):
    return "TracerPid:\t0\n" not in told_of(f"/proc/{target.pid}", "status")


class Profile(LiveTest):
    @unittest.skipIf(SLOW, "where looks share one slow processor with the program, shares are off by three to five points")
    @unittest.skipIf(has_sanitizers(), "looks of a ktrace with sanitizers take so long that shares are off by four points")
    def test_known_shares(self):
        target = self.start(program("shares"))
        profile = self.trace("-p", target.pid, "-F", "997", "--duration", "4s", "--format", "json", command="profile", wait=False)
        until(lambda: is_traced(target), "it is looked at")
        target.tell()  # the truth from now on,
        target.truth("work")
        until(lambda: not is_traced(target), "it is looked at no more")
        target.tell()  # until now
        truth = [int(ns) for ns in target.truth(r"work (\d+) tidy (\d+) asleep (\d+)").groups()]
        seen = profile.finish()
        self.assertEqual(seen.status, 0, seen)
        samples = seen.objects
        every = sum(each["on"] + each["off"] for each in samples)
        self.assertGreater(every, 2000)  # fewer are off by three points now and then, as drawn lots are
        for name, known in zip(("work", "tidy", "sleep_for"), truth):
            share = sum(each["on"] + each["off"] for each in samples if name in calls(each)) / every
            self.assertAlmostEqual(share, known / sum(truth), delta=0.03, msg=f"{name} of {every} looks")
        asleep = [each for each in samples if each["off"] and "sleep_for" in calls(each)]
        self.assertLessEqual({each.get("syscall") for each in asleep}, {"clock_nanosleep", "restart_syscall"})

    def test_tables(self):
        target = self.start(program("shares"))
        seen = ktrace("profile", "-p", target.pid, "-F", "499", "--duration", "300ms")
        self.assertEqual(seen.status, 0, seen)
        functions, waits = seen.out.split("\n\n")
        self.assertRegex(functions, r"\A +self +total  function")
        self.assertRegex(functions, r"(?m)^ +[\d.]+% +[\d.]+%  work( \[shares\])?$")
        self.assertRegex(waits, r"\A +time  system call +caller \[shares\]\n +[\d.]+(ms|s)  \w+ +sleep_for\n")
        self.assertRegex(seen.err, r"ktrace: \d+ looks at threads in (\d+ ms|[\d.]+ s): [\d.]+% on the processor, [\d.]+% waiting")

    def test_folded_stacks(self):
        target = self.start(program("shares"))
        for options, function in (((), "work"), (("--waiting",), "sleep_for")):
            seen = ktrace("profile", "-p", target.pid, "-F", "499", "--duration", "200ms", "--format", "folded", *options)
            lines = seen.out.splitlines()
            self.assertTrue(lines)
            for line in lines:
                self.assertRegex(line, r"^shares(;[^;]+)+ \d+$")
            self.assertTrue(any(re.search(rf";main;{function}(;|\s)", line) for line in lines), seen)

    def test_a_flame_graph(self):
        target = self.start(program("shares"))
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "graph.svg")
            seen = ktrace("profile", "-p", target.pid, "-F", "499", "--duration", "300ms", "-o", path)
            self.assertEqual((seen.status, seen.out), (0, ""), seen)
            root = xml.etree.ElementTree.parse(path).getroot()
        every = int(root.get("data-looks"))
        found = {}
        for call in root.iter(SVG + "g"):
            name, looks, share = re.fullmatch(r"(.*) \((\d+) looks, ([\d.]+)%\)", call.find(SVG + "title").text).groups()
            self.assertEqual(int(looks), int(call.get("data-looks")))
            self.assertAlmostEqual(100 * int(looks) / every, float(share), delta=0.051)
            self.assertAlmostEqual(float(call.find(SVG + "rect").get("width").rstrip("%")), float(share), delta=0.051)
            found.setdefault(name, (int(call.get("data-row")), int(looks)))
        self.assertEqual(found["all"], (0, every))
        self.assertEqual(found["shares"], (1, every))
        self.assertEqual(found["work"][0], found["main"][0] + 1)
        self.assertGreater(found["work"][1], 0)

    def test_a_thread_that_waits_is_not_stopped(self):
        target = self.start(program("looks"))
        seen = ktrace("profile", "-p", target.pid, "--duration", "300ms", "--format", "json")
        by_name = {}
        for each in seen.objects:
            by_name.setdefault(each["comm"], []).append(each)
        for name in ("looks", "twin-1", "twin-2", "register"):  # always in one place
            self.assertEqual(len([each for each in by_name[name] if each["off"]]), 1, name)
            self.assertEqual(sum(each["on"] for each in by_name[name]), 0, name)
        self.assertEqual(calls(by_name["register"][0])[:3], ["syscall", "wait_by_register", "by_register"])
        self.assertGreater(sum(each["on"] for each in by_name["runner"]), 0)
        target.tell()
        self.assertEqual(target.truth(r"interrupted (\d+)")[1], "0")

    def test_a_stopped_process_runs_nothing(self):
        target = self.start(program("looks"))
        os.kill(target.pid, signal.SIGSTOP)
        folders = [f"/proc/{target.pid}/task/{tid}" for tid in os.listdir(f"/proc/{target.pid}/task")]
        until(lambda: all(state_of(folder) == "T" for folder in folders), "it is stopped")
        seen = ktrace("profile", "-p", target.pid, "--duration", "100ms", "--format", "json")
        self.assertEqual({each["comm"] for each in seen.objects}, {"looks", "register", "runner", "twin-1", "twin-2"})
        self.assertEqual(sum(each["on"] for each in seen.objects), 0)
        self.assertEqual({state_of(folder) for folder in folders}, {"T"})

    def test_it_ends_with_the_process(self):
        target = self.start(program("shares"))
        profile = self.trace("-p", target.pid, "--duration", "100s", "--format", "json", command="profile", wait=False)
        until(lambda: is_traced(target), "it is looked at")
        target.process.stdin.close()
        target.process.wait()
        self.assertEqual(profile.finish().status, 0)


if __name__ == "__main__":
    unittest.main()
