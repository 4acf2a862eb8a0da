"""Options inside a probe's quotes: they are for it alone, and stand in place of the command's of the same name."""
from live import ktrace, program
from test_options import OptionTest


class OwnOptions(OptionTest):
    def test_each_probe_has_its_own(self):
        trace = self.traced("calls 12", "-j", "work --print n, half --if n >= 6", "-r", "work --stats --by args.op",
                            "-k", "work --every=4")
        entries = trace.events("entry")
        self.assertEqual([e["values"] for e in entries], [{"n": n, "half": n / 2.0} for n in range(6, 12)])
        self.assertEqual(trace.events("return"), [])
        self.assertEqual(len(trace.events("pre")), 3)
        by_kind = {s["kind"]: s for s in trace.summaries()}
        self.assertEqual(len(by_kind["r"]["by"]), 4, by_kind)
        self.assertEqual((by_kind["j"]["filtered"], by_kind["k"]["unselected"]), (6, 9))

    def test_those_of_the_command_are_for_the_others(self):
        """And those of other names for all."""
        trace = self.traced("calls 10", "-j", "work --print n", "-k", "work", "--print", "arg0", "--if", "arg2 < 4")
        self.assertEqual([e["values"] for e in trace.events("entry")], [{"n": n} for n in range(4)])
        self.assertEqual([set(e["values"]) for e in trace.events("pre")], [{"arg0"}] * 4)

    def test_a_table_takes_the_place_of_another(self):
        trace = self.traced("calls 10", "-r", "work --hist", "-j", "work", "--count")
        by_kind = {s["kind"]: s for s in trace.summaries()}
        self.assertIn("hist", by_kind["r"])
        self.assertEqual(by_kind["j"]["count"], 10)

    def test_inside_different_functions(self):
        """The outermost call is inside of none of its own."""
        trace = self.traced("deep 3", "-j", "recurse --inside recurse --count", "-k", "recurse --inside main --count",
                            "-r", "recurse --count")
        by_kind = {s["kind"]: s for s in trace.summaries()}
        self.assertEqual({kind: s["events"] for kind, s in by_kind.items()}, {"j": 3, "k": 4, "r": 4})

    def test_an_expression_that_fits_other_probes_alone(self):
        """One of the command is no error where it fits some; one of a probe's own has to fit that one."""
        trace = self.traced("calls 2", "-j", "work", "-j", "recurse --count", "--print", "args.op")
        self.assertEqual(len(trace.events("entry")), 2)
        refused = ktrace("attach", "-p", self.start(program("options")).pid, "-j", "work", "-j",
                         "recurse --count --if args.op == 1", "--print", "args.op")
        self.assertEqual(refused.status, 1, refused)
        self.assertEqual(refused.err.splitlines(), [
            "ktrace: recurse --count --if args.op == 1: recurse has no parameter `op`",
            " " * len("ktrace: recurse --count --if ") + "^~~~~~~ its parameters are depth"])

    def test_a_watchpoint(self):
        trace = self.traced("calls 2", "-w", "global_limit --count")
        self.assertEqual(trace.summaries()[0]["kind"], "w", trace)

    def test_added_by_ctl(self):
        target = self.start(program("options"))
        tracer = self.attach(target, "--format", "json", "-k", "work --count")
        added = ktrace("ctl", "-p", target.pid, "add", "-j", "work --print n --first 2", "-r", "recurse --skip=7")
        self.assertEqual(added.status, 0, added)
        wrong = ktrace("ctl", "-p", target.pid, "add", "-j", "work --print nosuch")
        self.assertEqual(wrong.status, 1, wrong)
        self.assertTrue(wrong.err.startswith("ktrace: work --print nosuch: "), wrong)
        listed = ktrace("ctl", "-p", target.pid, "list").out
        self.assertNotIn("--", listed)
        for name in ("recurse", "3"):  # by the SPEC without its options, and by the number
            switched = ktrace("ctl", "-p", target.pid, "disable", name)
            self.assertEqual(switched.status, 0, switched)
        target.tell("calls 5")
        target.truth("^done$")
        trace = tracer.stop()
        self.assertEqual([e["values"] for e in trace.events("entry")], [{"n": 0}, {"n": 1}], trace)
        self.check_untouched(target)
