"""What Documentation/kprobes.txt says of registering, unregistering and of jprobes, on plugins that do it in every way."""
import os
import re
import unittest

from live import adds_up, fewer, ktrace
from test_plugins import SOURCES, PluginTest, built

# The kernel's own samples, best of 2.6.31: in its sources, or beside our plugins where a copy is there.
SAMPLES = next((path for path in (os.path.join(os.environ.get("KTRACE_LINUX", "/nowhere"), "samples", "kprobes"),
                                  os.path.join(SOURCES, "samples")) if os.path.isdir(path)), None)


class Modules(PluginTest):
    def test_as_a_module(self):
        trace, said = self.run_plugin(f"{built('as_a_module')} func=checked", "checked 4")
        self.assertEqual(said, ["checked 8"])
        at, flags, frames = "([0-9a-f]{16})", "(?:flags|pstate) = 0x[0-9a-f]+", r"(?:    .*\n)*"
        wanted = [f"planted at {at}, {at} and checked: {at}", f"before: p->addr = 0x{at}, (?:ip|pc) = ([0-9a-f]+), {flags}",
                  rf"    checked\+0x0 \[plugged\].*\n{frames}    main\+.*\n{frames}entry: n = 4 in plugged",
                  f"after: p->addr = 0x{at}, {flags}", r"checked returned 8 after \d+ ns", f"kprobe at {at} unregistered",
                  "Missed probing 0 instances of checked"]
        told = "\n".join(trace.payloads)
        found = re.fullmatch("\n".join(wanted), told)
        self.assertTrue(found, told)
        self.assertEqual(len({int(address, 16) for address in found.groups()}), 1, told)

    def test_what_else_modules_use(self):
        trace, _ = self.run_plugin(built("common"), "do_work 4")
        self.assertEqual(len(trace.payloads), 6, trace)
        self.assertRegex(trace.payloads[1], r"^WARNING: at \S+common.c:\d+$")  # once, of three times
        self.assertEqual([line for n, line in enumerate(trace.payloads) if n != 1],
                         ["do_work: 1"] * 4 + ["4 hits, sum 6, listed 6, empty 1, SIGKILL 9"])

    @unittest.skipUnless(SAMPLES, "KTRACE_LINUX names no kernel's sources")
    def test_samples_of_a_kernel(self):
        """Its own samples, unchanged; do_fork is a function of the target's."""
        for name in ("kprobe", "jprobe", "kretprobe"):
            source = f"{SAMPLES}/{name}_example.c"
            if not os.path.exists(source):
                continue
            with self.subTest(source=source):
                made = os.path.join(os.path.dirname(built("as_a_module")), f"{name}_example.so")
                done = ktrace("plugin", "build", source, "-o", made)
                self.assertEqual((done.status, done.err), (0, ""), done)
                options = " func=do_fork" if name == "kretprobe" else ""
                trace, said = self.run_plugin(made + options, "do_fork 17")
                self.assertEqual(said, ["forked 42"])
                told = {"kprobe": ("pre_handler: p->addr = 0x", "post_handler: p->addr = 0x", "unregistered"),
                        "jprobe": ("jprobe: clone_flags = 0x11", "unregistered"),
                        "kretprobe": ("do_fork returned 42 and took", "Missed probing 0 instances of do_fork")}[name]
                for each in told:
                    self.assertIn(each, trace.out)


class Entries(PluginTest):
    def test_what_an_entry_changes_stays_with_it(self):
        trace, said = self.run_plugin(built("entry_copy"), "mixed 1", "mixed 1")
        self.assertEqual(said, ["mixed 1099511627776"] * 2)
        self.assertEqual(trace.payloads, ["ruined 64 words", "registers 1 stack 1"] * 2)


class Registering(PluginTest):
    def test_order(self):
        for kinds in ("jj", "jkrkj", "rjkjrk", "kkjjrrjk"):
            with self.subTest(kinds=kinds):
                trace, _ = self.run_plugin(f"{built('order')} kinds={kinds}", "do_work 1", "checked 1", "do_work 1")
                hits = [f"{kind}{n}" + (" of 0" if kind == "j" else "") for n, kind in enumerate(kinds)]
                self.assertEqual(trace.payloads, [*hits, "anew 0", *hits[1:], hits[0]])

    def test_arrays(self):
        trace, _ = self.run_plugin(built("arrays"), "do_work 2", "checked 1", "do_work 1", "checked 2", "do_work 1", "checked 3",
                                   "do_work 1", "checked 4")
        self.assertEqual(trace.payloads, [
            "arrays -2 -2 -2", "addresses 0 0 0", "twice -22 -22 -22", "both -22 -22", "address 0 0, NULL -22 -22",
            "good 0 0 0", "1: seen 2 2 2", "enable 0 0 0", "2: seen 4 4 4", "disable 0 0 0, flags 2 2 2", "3: seen 5 5 5",
            "cleared 1 1 1", "and 1, the others 1 1", "two again 0 -2", "4: seen 6 5 5"])


class Unregistering(PluginTest):
    # How many calls begin and return, how often the instruction is seen before and after, how many entries; of 14 calls.
    COUNTS = {"not": (14, 14, 14, 14, 14), "begins": (3, 0, 14, 14, 14), "returns": (10, 2, 14, 14, 14),
              "other": (5, 0, 14, 14, 14), "again": (15, 10, 14, 14, 14), "before": (14, 14, 1, 0, 14),
              "after": (14, 14, 4, 4, 14), "entry": (14, 14, 14, 14, 2), "fault": (14, 14, 14, 14, 14)}
    TOLD = {"begins": ["call 3 of recurse by plugged, still"], "returns": ["call 9 of recurse by plugged, still"],
            "again": ["again 0"]}

    def test_from_handlers(self):
        """Their own probe, and others', with calls in flight."""
        for how, counts in self.COUNTS.items():
            with self.subTest(how=how):
                again = "1" if how == "fault" else "0"  # where no handler is there to mend it any more
                trace, said = self.run_plugin(f"{built('leaves')} how={how}", "recurse 9", "recurse 3", "read_at 0",
                                              f"read_at {again}", options=("--format", "json"))
                self.assertEqual(said, ["depth 9", "depth 3", "read 5", "read 5"])
                told = [event["message"] for event in trace.events("log")]
                faults = ["fault 1"] if how == "fault" else ["fault 1", "fault 2"]
                self.assertEqual(told, [*self.TOLD.get(how, []), *faults,
                                        "begun %d returned %d before %d after %d entered %d" % counts], trace)
                for summary in trace.summaries():
                    self.assertTrue(adds_up(summary), summary)

    def test_under_load(self):
        """What handlers take out, put in, switch off and on, while 16 threads run through it."""
        target = self.target()
        target.tell("load 16")
        target.truth("loaded")
        tracer = self.plug(target, built("restless"), options=("-k", "do_work", "--count"))
        self.until_hits(target, "do_work", fewer(20000))
        trace = tracer.stop()
        self.assertEqual(trace.status, 0, trace)
        self.check_untouched(target)
        target.tell("enough")
        target.truth(r"worked \d+")
        self.assertEqual(target.end(), 0)
        found = re.match(r"hits (\d+), orders (\d+), failed 0, wrong 0; seen 1$", trace.payloads[-1])
        self.assertTrue(found, trace)
        self.assertEqual(int(found[2]), int(found[1]) // 16)

    def until_hits(self, target, symbol, least):
        """Until a location has been hit so often, by ctl stats."""
        while True:
            answer = ktrace("ctl", "-p", target.pid, "stats", "--format", "json")
            self.assertEqual(answer.status, 0, answer)
            if any(s["symbol"] == symbol and s["hits"] >= least for s in answer.summaries()):
                return


if __name__ == "__main__":
    unittest.main()
