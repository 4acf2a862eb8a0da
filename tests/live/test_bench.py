"""ktrace bench prints the table of kprobes.txt for this machine."""
import re
import subprocess

from live import KTRACE, LIMIT, LiveTest, ktrace


class Bench(LiveTest):
    def test_bench(self):
        trace = ktrace("bench")
        self.assertEqual(trace.status, 0, trace)
        self.assertEqual(trace.out.count("microseconds a hit"), 1, trace)
        rows = dict(re.findall(r"^(k|j|r|kr|jr) .*? (\d+\.\d\d) +\d\.\d\d +\d\.\d\d +\d\.\d\d$", trace.out, re.M))
        self.assertEqual(list(rows), ["k", "j", "r", "kr", "jr"], trace)
        with open("/dev/full", "w") as full:
            failed = subprocess.run([KTRACE, "bench"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=LIMIT)
        self.assertEqual(failed.returncode, 1)
        self.assertIn("No space left on device", failed.stderr)
        for each in rows.values():
            self.assertGreater(float(each), 0, trace)
