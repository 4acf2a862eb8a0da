"""Memory that is read without a stop: texts and structures behind pointers, whatever these point to.

The target (tests/targets/texts.c) counts a signal of its own as wrong.
"""
import collections
import re
import unittest

from live import ktrace, program
from test_agent import AgentTest
from test_jumps import HAS_RUNS, NO_RUNS
from test_kills import kill_both

READABLE, BAD = "hrstef", "0bnu"


@unittest.skipUnless(HAS_RUNS, NO_RUNS)
class AgentReads(AgentTest):
    def begin(self, *probes, threads=2, engine="auto"):
        self.target = self.start(program("texts"), threads)
        self.tracer = self.attach(self.target, "--engine", engine, *probes, "--format", "json")
        if engine == "auto":
            self.wait_for_jumps(*(name for name in ("said", "weighed") if any(name in word for word in probes)))

    def work(self, order):
        """How many calls of a kind there were."""
        calls, wrong = (int(n) for n in self.do(order, r"^did (\d+) (\d+)").groups())
        self.assertEqual(wrong, 0, "signals of the target's, and results")
        return calls

    def test_of_every_kind(self):
        """By thread, both engines see the same, and that is the truth where the memory can be read."""
        self.compare(1, READABLE + BAD)

    def test_of_threads(self):
        """But for what was unmapped: another thread may have mapped something there."""
        self.compare(3, READABLE + BAD.replace("u", ""))

    def compare(self, threads, kinds):
        seen = {}
        for engine in ("trap", "auto"):
            self.begin("-j", "said", "-j", "weighed --print i,item->number,item->name", "-r", "answered --print retval,i",
                       engine=engine, threads=threads)
            self.work(f"say 60 {kinds}")
            self.work(f"say 5 {READABLE}x")
            trace = self.end()
            said, weighed = self.of_threads(trace, "entry", "said"), self.of_threads(trace, "entry", "weighed")
            answered = self.of_threads(trace, "return", "answered")
            for args in (event["args"] for own in said for event in own):
                kind = chr(args["kind"])
                if kind in READABLE:
                    self.assertEqual(args["text"], "r" if kind == "r" else f"{kind} {args['i']}")
            for values in (event["values"] for own in answered for event in own):
                self.assertEqual(values["retval"], f"answer {values['i']}")
            seen[engine] = [sorted(re.sub("0x[0-9a-f]{6,}", "somewhere", str([e.get("args", e.get("values")) for e in own]))
                                   for own in threads) for threads in (said, weighed, answered)]
        self.assertEqual(seen["trap"], seen["auto"])

    def test_no_stop_for_a_text(self):
        self.begin("-j", "said", "-j", "weighed", threads=1)
        self.work("say 10 hst")
        before = self.switches()
        calls = self.work("say 6000 hst")
        self.assertLess(self.switches() - before, 6000, "one for a hit would be six times as many")
        trace = self.end()
        for symbol in ("said", "weighed"):
            self.assertEqual(sum(len(own) for own in self.of_threads(trace, "entry", symbol)), calls)

    def test_filters(self):
        self.filter(1, READABLE + BAD)

    def test_filters_of_threads(self):
        """Without what was unmapped: see test_of_threads."""
        self.filter(4, READABLE + BAD.replace("u", ""))

    def filter(self, threads, kinds):
        self.begin("-j", "said --if text == \"h 7\" || kind == 0x30", "-j", "weighed --if item->number == 9",
                   threads=threads)
        self.work(f"say 50 {kinds}")
        trace = self.end()
        wanted = {("h 7", "h"): 1, ("0x0", "0"): 50}
        for own in self.of_threads(trace, "entry", "said"):
            self.assertEqual(collections.Counter((e["args"]["text"], chr(e["args"]["kind"])) for e in own), wanted)
        for own in self.of_threads(trace, "entry", "weighed"):
            self.assertEqual([e["args"]["i"] for e in own], [9] * (len(READABLE) - 1))

    def test_both_are_killed(self):
        """The agent goes on reading by itself."""
        self.begin("-j", "said", "-j", "weighed", threads=4)
        self.target.tell(f"say 20000 {READABLE}")
        kill_both(self.tracer)
        self.assertEqual(self.target.truth(r"^did (\d+) (\d+)").groups(), (str(4 * 20000 * len(READABLE)), "0"))
        self.assertEqual(ktrace("repair", "-p", self.target.pid).status, 0)
        self.check_end()
