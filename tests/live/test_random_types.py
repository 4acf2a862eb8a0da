"""Arguments and results of random types: what ktrace shows of each is what the program was made with."""
import json
import os
import random
import tempfile

import workshop
from live import LiveTest, ktrace
from random_types import Generator, leaves, without_empty

FUNCTIONS = 45
LEAST = 2000  # values, of all programs
# Those with which something was found once.
KEPT = [2, 303, 1343584014]


class RandomTypes(LiveTest):
    def made(self, seed, is_cxx, folder):
        source, expected = Generator(seed, is_cxx).program(FUNCTIONS)
        path = os.path.join(folder, "types.cc" if is_cxx else "types.c")
        with open(path, "w") as f:
            f.write(source)
        return path, expected

    def check(self, command, source, expected):
        """How many values were shown, all of them the right ones. One that is not known is left out."""
        program = source + ".out"
        workshop.execute(*command, "-w", "-g", source, "-o", program)
        probes = [option for name, _, _ in expected for option in ("-r", name)]
        trace = ktrace("run", "-q", *probes, "--format", "json", "--", program)
        self.assertEqual(trace.status, 0, trace.err)
        events = [json.loads(line) for line in trace.lines if '"type":"return"' in line]
        self.assertEqual([event["symbol"] for event in events], [name for name, _, _ in expected])
        shown = 0
        for event, (name, arguments, result) in zip(events, expected):
            for parameter, value in event["args"].items():
                self.assertEqual(without_empty(value), without_empty(arguments[parameter]),
                                 f"{command} {source}: {parameter} of {name}")
                shown += leaves(value)
            if "retval" in event:
                self.assertEqual(without_empty(event["retval"]), without_empty(result),
                                 f"{command} {source}: result of {name}")
                shown += leaves(result)
        return shown

    def check_all(self, seed):
        shown = 0
        with tempfile.TemporaryDirectory(prefix="ktrace-types-") as folder:
            for is_cxx, compilers in ((False, ("gcc", "clang")), (True, ("g++", "clang++"))):
                source, expected = self.made(seed, is_cxx, folder)
                for compiler in compilers:
                    workshop.require(compiler)
                    for level in ("-O0", "-O2"):
                        standard = ("-std=c++17",) if is_cxx else ()
                        with self.subTest(seed=seed, compiler=compiler, level=level):
                            shown += self.check((compiler, level, "-Wno-psabi", *standard), source, expected)
        return shown

    def test_of_a_new_seed(self):
        """KTRACE_SEED=N is that of a run that has failed."""
        seed = int(os.environ.get("KTRACE_SEED", random.SystemRandom().randrange(1 << 32)))
        print(f"seed {seed}")
        self.assertGreaterEqual(self.check_all(seed), LEAST)

    def test_of_seeds_that_have_found_something(self):
        for seed in KEPT:
            self.check_all(seed)
