"""Calls that begin and end in every way, at random: both engines see what the target (tests/targets/ways.cc) states, and
the same in the same order.
"""
import collections
import json
import random
import re
import unittest

from live import adds_up, ktrace, program
from test_jumps import HAS_RUNS, NO_RUNS, Jumps
from test_kills import kill_both


@unittest.skipUnless(HAS_RUNS, NO_RUNS)
class Ways(Jumps):
    def work(self, seed, rounds):
        """Gives what was entered and returned so far, by function."""
        wrong, functions = self.do(f"work {seed} {rounds}", r"^did (\d+) (.*)").groups()
        self.assertEqual(wrong, "0", "the target's own results")
        return {name: (int(entered), int(returned))
                for name, entered, returned in re.findall(r"(\w+) (\d+) (\d+)", functions)}

    def begin(self, engine, *options, threads=1, every=0):
        self.names = ("way_",)
        self.target = self.start(program("ways"), threads, every)
        self.tracer = self.attach(self.target, "--engine", engine, "-r", "ways:way_*", *options)
        self.work(1, 100)  # ktrace sees where calls return to
        if engine != "trap":
            self.wait_for_jumps("way_plain", "way_outer", "way_recursive", "way_tail")

    def returns_seen(self, engine, seed, rounds=600, **threads):
        """Gives what each thread's returns were, in order."""
        self.begin(engine, "--format", "json", **threads)
        truth = self.work(seed, rounds)
        trace = self.tracer.stop()
        self.assertEqual(trace.status, 0, trace.err)
        for name, (entered, returned) in truth.items():
            summary = trace.summary(name)
            self.assertTrue(adds_up(summary), summary)
            seen = tuple(summary[key] for key in ("hits", "events", "unreturned"))
            self.assertEqual(seen, (entered, returned, entered - returned), (name, "seed", seed, summary))
        self.check_end()
        returns = collections.defaultdict(list)
        for event in map(json.loads, trace.out.splitlines()):
            if event["type"] == "return":
                returns[event["tid"]].append((event["symbol"], event["args"]["n"], event["retval"]))
        return sorted(returns.values(), key=lambda own: (len(own), own))

    def test_both_engines_see_the_same(self):
        seed = random.randrange(1 << 30)
        seen = [self.returns_seen(engine, seed, threads=2) for engine in ("auto", "trap")]
        self.assertTrue(seen[0] == seen[1], f"seed {seed}")

    def test_both_are_killed(self):
        """What is left goes on by itself, and can be taken out."""
        self.begin("auto", "--stats", threads=4, every=300)
        self.target.tell("work 5 5000")
        kill_both(self.tracer)
        self.assertEqual(self.target.truth(r"^did (\d+)")[1], "0")
        self.assertEqual(ktrace("repair", "-p", self.target.pid).status, 0)
        self.check_end()

    def test_threads_under_signals(self):
        self.returns_seen("auto", random.randrange(1 << 30), threads=4, every=300)


if __name__ == "__main__":
    unittest.main()
