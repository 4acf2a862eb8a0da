"""Options of handlers, against what the target is known to do: filters, selection, values, tables, and their sums."""
import collections
import os
import re
import signal
import subprocess
import time

from live import ARGUMENTS, KTRACE, LIMIT, MACHINE, RESULT, TOOK, LiveTest, adds_up, ktrace, program, until, wait_until_let_go
from workshop import offset_of, room

COMMON = {"type", "time_ns", "pid", "tid", "comm", "probe", "symbol", "offset", "module"}
COUNTS = {"hits", "events", "filtered", "unselected", "missed", "unreturned", "dropped"}
AGES_NS = 10**15  # longer than any call takes, however slow the machine is
NAMES = ["alpha", "beta", "gamma"]


class OptionTest(LiveTest):
    def traced(self, line, *options, status=0, trace_format="json"):
        """The trace of what the target does at one line."""
        target = self.start(program("options"))
        tracer = self.attach(target, "--format", trace_format, *options)
        target.tell(line)
        target.truth("^done$")
        trace = tracer.stop()
        self.assertEqual(trace.status, status, trace)
        if trace_format == "json":
            for summary in trace.summaries():
                self.assertTrue(adds_up(summary), summary)
        self.check_untouched(target)
        self.assertEqual(target.end(), 0)
        self.target = target
        return trace

    def ended(self, line, *options):
        """The same, where ktrace ends by itself."""
        target = self.start(program("options"))
        tracer = self.attach(target, "--format", "json", *options)
        target.tell(line)
        trace = tracer.finish()
        target.truth("^done$")
        self.check_untouched(target)
        self.assertEqual(target.end(), 0)
        return trace


class Filters(OptionTest):
    def test_if(self):
        trace = self.traced("calls 100", "-k", "work", "-j", "work", "--if", 'args.n % 10 == 3 && args.name != "beta"')
        expected = [n for n in range(100) if n % 10 == 3 and n % 3 != 1]
        self.assertEqual([e["args"]["n"] for e in trace.events("entry")], expected)
        for summary in trace.summaries():
            self.assertEqual((summary["hits"], summary["events"], summary["filtered"]),
                             (100, len(expected), 100 - len(expected)))

    def test_if_at_return(self):
        trace = self.traced("calls 100", "-r", "work", "--if", "retval > 100")
        expected = [n * (n % 4) for n in range(100) if n * (n % 4) > 100]
        self.assertEqual([e["retval"] for e in trace.events("return")], expected)
        self.assertEqual(trace.summary("work")["filtered"], 100 - len(expected))

    def test_if_at_entry_of_return(self):
        # A call that is filtered at entry takes no instance: with room for one only the first of the recursion counts.
        trace = self.traced("deep 50", "-r", "recurse", "--maxactive", "1", "--if", "args.depth == 7")
        summary = trace.summary("recurse")
        self.assertEqual((summary["hits"], summary["events"], summary["filtered"], summary["missed"]), (51, 1, 50, 0))

    def test_if_duration(self):
        trace = self.traced("calls 50", "-r", "work", "--if", f"duration >= 0 && duration < {AGES_NS}")
        self.assertEqual(trace.summary("work")["events"], 50)
        trace = self.traced("calls 50", "-r", "work", "--if", "duration > 20000m")
        self.assertEqual(trace.summary("work")["filtered"], 50)

    def test_if_enum(self):
        trace = self.traced("calls 40", "-j", "work", "--if", "args.op == OP_SEEK")
        self.assertEqual([e["args"]["op"] for e in trace.events()], ["OP_SEEK"] * 10)

    def test_fault_is_false(self):
        for condition in ("*(int *)8 == 0", "*(int *)8 != 0", 'str((char *)8) == ""'):
            self.assertEqual(self.traced("calls 3", "-k", "work", "--if", condition).summary("work")["filtered"], 3)


class Selection(OptionTest):
    def check_selection(self, options, expected, calls=100):
        trace = self.traced(f"calls {calls}", "-j", "work", *options)
        self.assertEqual([e["args"]["n"] for e in trace.events()], expected)
        summary = trace.summary("work")
        self.assertEqual((summary["hits"], summary["events"], summary["unselected"] + summary["filtered"]),
                         (calls, len(expected), calls - len(expected)))

    def test_every(self):
        self.check_selection(["--every", "7"], list(range(6, 100, 7)))

    def test_first(self):
        self.check_selection(["--first", "4"], [0, 1, 2, 3])

    def test_third_only(self):
        self.check_selection(["--every", "3", "--first", "1"], [2])

    def test_after_the_filter(self):
        self.check_selection(["--if", "args.n % 2 == 1", "--every", "3", "--first", "5"], [5, 11, 17, 23, 29])

    def test_chance_with_seed(self):
        seen = []
        for _ in range(2):
            trace = self.traced("calls 1000", "-j", "work", "--chance", "0.25", "--seed", "42")
            seen.append([e["args"]["n"] for e in trace.events()])
            summary = trace.summary("work")
            self.assertEqual(summary["hits"], summary["events"] + summary["unselected"])
        self.assertEqual(seen[0], seen[1])
        self.assertTrue(180 < len(seen[0]) < 320, len(seen[0]))
        other = self.traced("calls 1000", "-j", "work", "--chance", "0.25", "--seed", "43")
        self.assertNotEqual([e["args"]["n"] for e in other.events()], seen[0])

    def test_over_all_threads(self):
        trace = self.traced("threads 4 250", "-k", "work", "--every", "10")
        self.assertEqual(trace.summary("work")["events"], 100)
        self.assertEqual(trace.summary("work")["unselected"], 900)

    def test_tables_see_all(self):
        trace = self.traced("calls 100", "-k", "work", "--count", "--every", "10", "--if", "args.n >= 20")
        summary = trace.summary("work")
        self.assertEqual((summary["hits"], summary["events"], summary["filtered"]), (100, 80, 20))

    def test_return_selection(self):
        trace = self.traced("calls 100", "-r", "work", "--if", "retval % 2 == 1", "--every", "2")
        odd = [n * (n % 4) for n in range(100) if n * (n % 4) % 2 == 1]
        self.assertEqual([e["retval"] for e in trace.events()], odd[1::2])


class Limits(OptionTest):
    def test_maxactive(self):
        trace = self.traced("deep 100", "-r", "recurse", "--maxactive", "8")
        summary = trace.summary("recurse")
        self.assertEqual((summary["hits"], summary["events"], summary["missed"]), (101, 8, 93))
        self.assertIn(" 8 events, 93 lost\n", trace.err)
        self.assertRegex(trace.err, r"(?m)^ktrace: recurse \[options\]: 93 missed \(more than 8 calls in flight\)\. "
                                    r"Missed probing 93 instances of recurse$")
        self.assertEqual(sorted(e["retval"] for e in trace.events()), list(range(93, 101)))

    def test_default_maxactive(self):
        # Each call that finds no room costs about as much as one that does: else this took some minutes.
        # By jumps there are up to 500 more for each thread.
        trace = self.traced("deep 20000", "-r", "recurse", "--engine", "trap")
        summary = trace.summary("recurse")
        self.assertEqual((summary["hits"], summary["events"], summary["missed"]), (20001, 4096, 15905))

    def test_max_events(self):
        trace = self.ended("calls 100000", "-k", "work", "--max-events", "17")
        self.assertEqual(trace.status, 0)
        self.assertEqual(len(trace.events()), 17)
        self.assertTrue(adds_up(trace.summary("work")))

    def test_max_events_of_tables(self):
        """Hits that tables count are events, too."""
        for table in ("--count", "--stats=arg0", "--hist=arg0", "--by=arg0"):
            with self.subTest(table):
                trace = self.ended("calls 100000", "-k", "work", table, "--max-events", "17")
                self.assertEqual((trace.status, trace.summary("work")["events"]), (0, 17), trace)

    def test_duration(self):
        target = self.start(program("options"))
        began = time.monotonic()
        trace = self.attach(target, "-k", "work", "--duration", "200ms").finish()
        self.assertEqual(trace.status, 0, trace)
        self.assertGreater(time.monotonic() - began, 0.15)
        self.check_untouched(target)

    def test_output_file(self):
        path = os.path.join(room(), "output")
        target = self.start(program("options"))
        tracer = self.attach(target, "-j", "work", "-o", path)
        target.tell("calls 3")
        target.truth("^done$")
        trace = tracer.stop()
        self.assertEqual(trace.out, "")
        with open(path) as f:
            self.assertEqual(len(f.readlines()), 3)

    def test_signals_one_after_the_other_lose_no_table(self):
        """As timeout(1) sends two, and a user who presses Ctrl-C twice: they may come when the trace has ended already."""
        target = self.start(program("options"))
        for _ in range(10):
            tracer = self.attach(target, "--format", "json", "-k", "work", "--by", "tid")
            while tracer.process.poll() is None:
                tracer.process.send_signal(signal.SIGINT)
            trace = tracer.finish()
            self.assertEqual(trace.status, 0, trace)
            self.assertEqual(len(trace.summaries()), 1, trace)
            wait_until_let_go(target.pid)
        self.check_untouched(target)
        self.assertEqual(target.end(), 0)

    def test_quiet(self):
        target = self.start(program("options"))
        # -q says nothing on standard error; that it is attached is seen by TracerPid.
        tracer = self.trace("-p", target.pid, "-q", "-k", "work", "--max-events", "3", wait=False)
        path = f"/proc/{target.pid}/status"
        traced = False
        while not traced:
            self.assertIsNone(tracer.process.poll())
            with open(path) as f:
                traced = "TracerPid:\t0" not in f.read()
        while tracer.process.poll() is None:  # it may be traced, and not armed yet
            target.tell("calls 3")
            target.truth("^done$")
        trace = tracer.finish()
        self.assertEqual((trace.status, trace.err.strip()), (0, ""), trace)
        self.assertEqual(len(trace.lines), 3)


class Values(OptionTest):
    # EXPR → what it is at visit(&tree, &first, 0xdeadbeef).
    EXPRESSIONS = {
        "args.tree->items->id": 300,
        "tree->items->next->name": "second",
        "tree->items->next->id": -2,
        "tree->table[0]->weight": -0.25,
        "tree->table[1]->flags": 0x81,
        "(*args.tree).info.depth": 7,
        "tree->info.ratio * 2": 1.0,
        "str(args.tree->label)": "a tree",
        "str(args.first->name, 3)": "fir",
        "args.first->history": [1, -2, 3, -4],
        "args.first->history[3]": -4,
        "*(args.first->history + 1)": -2,
        "first->low + first->high": 24,
        "first->low << first->high": 9 << 15,
        "mask": 0xdeadbeef,
        "(int32)mask": 0xdeadbeef - 2**32,
        "~mask": ~0xdeadbeef & 0xffffffff,
        "-mask": -0xdeadbeef & 0xffffffff,
        "mask >> 4": 0xdeadbeef >> 4,
        "mask & 0xff | 0x100 ^ 1": (0xdeadbeef & 0xff) | (0x100 ^ 1),
        "(uint8)mask": 0xef,
        "(int8)mask": 0xef - 256,
        "tree->big": 2**64 - 1,
        "(int64)tree->big": -1,
        "tree->big > 0": 1,
        "(int64)tree->big > 0": 0,
        "7 / 2": 3,
        "-7 / 2": -3,
        "-7 % 3": -1,
        "7 / 2.0": 3.5,
        "1.5e1 + 'a'": 112.0,
        "0x10 + 010": 24,
        "1 ? 2 : 3": 2,
        "first == tree->items && !0": 1,
        "first->id == 300 ? str(first->name) : \"other\"": "first",
        "var.global_limit": 17,
        "var.static_total": -3,
        "var.per_thread": 99,
        "(long)args.mask + 1": 0xdeadbeef + 1,
        "arg2": 0xdeadbeef,
        "func": "visit",
        "comm": "options",
        "\"text\"": "text",
    }

    def test_expressions(self):
        trace = self.traced("visit", "-j", "visit", *[o for e in self.EXPRESSIONS for o in ("--print", e)])
        values = trace.events()[0]["values"]
        for text, expected in self.EXPRESSIONS.items():
            got = values[text]
            if isinstance(expected, int) and isinstance(got, bool):
                got = int(got)
            self.assertEqual(got, expected, text)

    def test_identities(self):
        trace = self.traced("visit", "-k", "visit", "--print", f"pid, tid, nsecs, reg(\"{ARGUMENTS[2]}\"), arg0, args.tree, func")
        event = trace.events()[0]
        values = event["values"]
        self.assertEqual((values["pid"], values["tid"]), (self.target.pid, self.target.pid))
        self.assertEqual(values[f'reg("{ARGUMENTS[2]}")'], "0xdeadbeef")
        self.assertRegex(values["args.tree"], "^0x[0-9a-f]+$")
        self.assertGreater(values["nsecs"], 0)
        self.assertLess(abs(event["time_ns"] - time.time_ns()), 600 * 10**9)

    def test_faults(self):
        trace = self.traced("visit", "-k", "visit", "--print", "*(int *)16, str((char *)0), ((struct tree *)8)->big, 1 / 0",
                            trace_format="text")
        self.assertEqual(trace.payloads, ['visit+0x0 *(int *)16=<fault 0x10> str((char *)0)=<fault 0x0> '
                                          '((struct tree *)8)->big=<fault 0x38> 1 / 0=<n/a>'])

    def test_dereferenced_structure(self):
        trace = self.traced("visit", "-k", "visit", "--print", "*args.first, buf(args.tree->label, 3)", trace_format="text")
        self.assertRegex(trace.payloads[0],
                         r'^visit\+0x0 \*args.first=\{\.id=300, \.flags=129, \.low=9, \.high=15, \.weight=1\.5, '
                         r'\.name="first", \.next=0x[0-9a-f]+, \.history=\[1, -2, 3, -4\]\} '
                         r'buf\(args.tree->label, 3\)="a t"$')

    def test_not_applicable(self):
        trace = self.traced("visit", "-k", "visit", "-k", "work", "--print", "args.mask")
        self.assertEqual(trace.events()[0]["values"]["args.mask"], 0xdeadbeef)
        trace = self.traced("calls 1", "-k", "visit", "-k", "work", "--print", "args.mask", trace_format="text")
        self.assertEqual(trace.payloads, ["work+0x0 mask=<n/a>"])

    def test_fits_nowhere(self):
        target = self.start(program("options"))
        for options, column in ((["-k", "work", "--print", "tid, args.nnn"], 5), (["-k", "work", "--if", "retval > 3"], 0),
                                (["-j", "work", "--stats=args.name->x"], 0)):
            trace = ktrace("attach", "-p", target.pid, *options)
            self.assertEqual(trace.status, 1, trace)
            self.assertIn("^", trace.err)
            self.check_untouched(target)

    def test_syntax_errors(self):
        target = self.start(program("options"))
        for text, column in (("args.n ==", 9), ("(1 + 2", 6), ("str(", 4), ("args.", 5), ("a[1", 3), ("\"open", 0), ("@x", 0)):
            trace = ktrace("attach", "-p", target.pid, "-k", "work", "--if", text)
            self.assertEqual(trace.status, 2, trace)
            first, second = trace.err.splitlines()[:2]
            self.assertEqual(second.index("^") - first.index(text), column, trace)


SOME_REGISTERS = {"x86_64": ("ax", "bx", "cx", "dx", "si", "di", "bp", "sp", "r8", "r15", "ip", "flags"),
                  "aarch64": ("x0", "x1", "x2", "x15", "x28", "x29", "x30", "sp", "pc", "pstate")}


class Post(OptionTest):
    def test_post(self):
        # The first of two that swap the bytes of the argument.
        at = offset_of(program("options"), "next_step", r"(?:bswap|rev)\b")
        swapped = {"x86_64": 'reg("ax")', "aarch64": 'reg("x9")'}[MACHINE]
        trace = self.traced("next_step 20", "-k", f"next_step+{at}", f"--post={swapped},(uint64){swapped} >> 56", "--print",
                            f"arg0, {swapped}")
        pre, post = trace.events("pre"), trace.events("post")
        self.assertEqual(len(pre), 20)
        self.assertEqual(len(post), 20)
        self.assertEqual([e["values"]["arg0"] for e in pre], list(range(20)))
        self.assertEqual([e["values"][swapped] for e in pre], [hex(n) for n in range(20)])
        self.assertEqual([e["values"][swapped] for e in post], [hex(n << 56) for n in range(20)])
        self.assertEqual([e["values"][f"(uint64){swapped} >> 56"] for e in post], list(range(20)))
        self.assertEqual(trace.summary("next_step")["hits"], 20)
        self.assertEqual(trace.summary("next_step")["events"], 20)

    def test_many_at_one_address(self):
        probes = ["-k", "next_step"] * 150
        trace = self.traced("next_step 20", *probes, "--post=arg0")
        for kind in ("pre", "post"):
            counts = collections.Counter(e["probe"] for e in trace.events(kind))
            self.assertEqual(counts, {number: 20 for number in range(1, 151)}, kind)
        order = [(e["type"], e["probe"]) for e in trace.events()]
        one_hit = [(kind, number) for kind in ("pre", "post") for number in range(1, 151)]
        self.assertEqual(order, one_hit * 20)

    def test_regs(self):
        for kind in ("-k", "-j", "-r"):
            trace = self.traced("visit", kind, "visit", "--regs")
            regs = trace.events()[0]["regs"]
            for name in SOME_REGISTERS[MACHINE]:
                self.assertRegex(regs[name], "^0x[0-9a-f]+$")
            if kind == "-r":
                self.assertEqual(int(regs[RESULT], 16) & 0xffffffff, 0xdeadbeef)
            else:
                self.assertEqual(regs[ARGUMENTS[2]], "0xdeadbeef")
        trace = self.traced("visit", "-k", "visit", "--regs", trace_format="text")
        self.assertRegex(trace.payloads[0], r"^visit\+0x0 .*\b%s=0x[0-9a-f]+ %s=0x" % SOME_REGISTERS[MACHINE][:2])


class Tables(OptionTest):
    def rows(self, trace, what="count", symbol="work"):
        return {tuple(r["key"]) if isinstance(r["key"], list) else r["key"]: r[what] for r in trace.summary(symbol)["by"]}

    def test_count_by_argument(self):
        trace = self.traced("calls 101", "-k", "work", "--by", "args.op")
        self.assertEqual(self.rows(trace), {"OP_READ": 26, "OP_WRITE": 25, "OP_SEEK": 25, "OP_CLOSE": 25})
        self.assertEqual(trace.events(), [])

    def test_count_by_string(self):
        trace = self.traced("calls 30", "-k", "work", "--count", "--by", "args.name, args.n % 2")
        expected = collections.Counter((NAMES[n % 3], n % 2) for n in range(30))
        self.assertEqual(self.rows(trace), dict(expected))

    def test_count_by_thread(self):
        trace = self.traced("threads 4 25", "-k", "work", "--by", "tid")
        self.assertEqual(sorted(self.rows(trace).values()), [25] * 4)
        trace = self.traced("threads 4 25", "-k", "work", "--by", "comm")
        self.assertEqual(self.rows(trace), {f"t{n}": 25 for n in range(4)})

    def test_count_by_function(self):
        trace = self.traced("calls 10", "-k", "work", "-k", "next_step", "--by", "func")
        self.assertEqual(self.rows(trace), {"work": 10})

    def test_count_by_result(self):
        trace = self.traced("calls 40", "-r", "work", "--by", "retval % 3")
        self.assertEqual(self.rows(trace), dict(collections.Counter(n * (n % 4) % 3 for n in range(40))))

    def test_stats(self):
        trace = self.traced("calls 100", "-k", "work", "--stats=args.n")
        stats = trace.summary("work")["stats"]
        self.assertEqual((stats["count"], stats["avg"], stats["min"], stats["max"]), (100, 49.5, 0, 99))
        for key, exact in (("p50", 49), ("p90", 89), ("p99", 98)):
            self.assertLessEqual(abs(stats[key] - exact), 1 + exact * 0.05, stats)

    def test_stats_of_floats(self):
        stats = self.traced("calls 9", "-k", "work", "--stats=args.half").summary("work")["stats"]
        self.assertEqual((stats["count"], stats["avg"], stats["min"], stats["max"]), (9, 2.0, 0, 4))

    def test_stats_by(self):
        trace = self.traced("calls 40", "-k", "work", "--stats=args.n", "--by", "args.op")
        stats = self.rows(trace, "stats")
        self.assertEqual({k: (v["count"], v["min"], v["max"]) for k, v in stats.items()},
                         {"OP_READ": (10, 0, 36), "OP_WRITE": (10, 1, 37), "OP_SEEK": (10, 2, 38), "OP_CLOSE": (10, 3, 39)})

    def test_stats_of_durations(self):
        stats = self.traced("calls 100", "-r", "work", "--stats").summary("work")["stats"]
        self.assertEqual(stats["count"], 100)
        self.assertLessEqual(stats["min"], stats["p50"])
        self.assertLessEqual(stats["p50"], stats["p90"])
        self.assertLessEqual(stats["p90"], stats["p99"])
        self.assertLessEqual(stats["p99"], stats["max"])
        self.assertGreaterEqual(stats["min"], 0)

    def test_hist(self):
        trace = self.traced("calls 100", "-k", "work", "--hist=args.n")
        self.assertEqual([(h["low"], h["high"], h["count"]) for h in trace.summary("work")["hist"]],
                         [(0, 0, 1), (1, 1, 1), (2, 3, 2), (4, 7, 4), (8, 15, 8), (16, 31, 16), (32, 63, 32), (64, 127, 36)])

    def test_hist_of_results(self):
        trace = self.traced("calls 100", "-r", "work", "--hist=retval")
        self.assertEqual(sum(h["count"] for h in trace.summary("work")["hist"]), 100)

    def test_tables_as_text(self):
        trace = self.traced("calls 40", "-k", "work", "--by", "args.op", trace_format="text")
        self.assertRegex(trace.out, r"^   count  function  args\.op\n")
        self.assertRegex(trace.out, r"(?m)^      10  work      OP_READ$")
        trace = self.traced("calls 40", "-k", "work", "--stats=args.n", trace_format="text")
        self.assertRegex(trace.out, r"total    count      avg .*function \[options\]  \(args\.n\)\n     780       40    19\.50 ")
        trace = self.traced("calls 40", "-k", "work", "--hist=args.n", trace_format="text")
        self.assertRegex(trace.out, r"\[32, 64\) +8 \|@+ *\|")

    def test_one_table_of_all_functions(self):
        """Nested calls are in the total once; functions that were not called are not shown."""
        trace = self.traced("deep 50", "-r", "recurse", "-r", "recurse --if args.depth==50", "-r", "work", "--stats")
        every, outermost = (row["stats"] for row in trace.objects if row["type"] == "row")
        self.assertEqual((every["count"], outermost["count"], every["total"]), (51, 1, outermost["total"]), trace)
        self.assertEqual(set(every["error"]), set(every) - {"count", "error"})
        trace = self.traced("calls 40", "-k", "work", "-k", "recurse", "-j", "work", "--count", trace_format="text")
        self.assertEqual(trace.out, "   count  function [options]\n      40  work (-k)\n      40  work (-j)\n")

    def test_the_rest_is_one_row(self):
        trace = self.traced("calls 40", "-k", "work", "--by", "args.n", "--top", "2", trace_format="text")
        self.assertEqual(len(trace.lines), 4, trace)
        self.assertEqual(trace.lines[-1], "      38  38 more", trace)

    def test_intervals(self):
        """Each table has the hits since the one before, and the last one all of them."""
        target = self.start(program("options"))
        tracer = self.attach(target, "-k", "work", "--count", "--interval", "1ms", "--format", "json")
        for _ in range(2):
            size = os.fstat(tracer.out.fileno()).st_size
            target.tell("calls 50")
            target.truth("^done$")
            until(lambda: os.fstat(tracer.out.fileno()).st_size > size, "an interval has ended")
        trace = tracer.stop()
        counts = [o["count"] for o in trace.objects if o.get("interval")]
        self.assertGreaterEqual(len(counts), 2, trace)
        self.assertLessEqual(sum(counts), 100)  # some may have come after the last one
        self.assertEqual(trace.rows()["work"]["count"], 100)
        self.assertEqual(target.end(), 0)

    def test_stats_need_an_expression(self):
        target = self.start(program("options"))
        trace = ktrace("attach", "-p", target.pid, "-k", "work", "--stats")
        self.assertEqual(trace.status, 2, trace)


class Output(OptionTest):
    def test_json_schema(self):
        trace = self.traced("calls 2", "-k", "work", "-j", "work", "-r", "work", "--post", "--print", "args.n")
        keys = {"pre": {"values"}, "post": set(), "entry": {"values"},
                "return": {"retval", "entry_ns", "duration_ns", "error_ns", "values"}}
        for event in trace.events():
            self.assertEqual(set(event), COMMON | keys[event["type"]], event)
            self.assertEqual((event["symbol"], event["offset"], event["module"]), ("work", 0, "options"))
            self.assertEqual((event["pid"], event["tid"], event["comm"]), (self.target.pid, self.target.pid, "options"))
        self.assertEqual(collections.Counter(e["type"] for e in trace.events()),
                         {"pre": 2, "post": 2, "entry": 2, "return": 2})
        self.assertEqual([e["probe"] for e in trace.events("entry")], [2, 2])
        for summary in trace.summaries():
            self.assertEqual(set(summary), {"type", "probe", "kind", "symbol", "offset", "module"} | COUNTS)
        self.assertEqual([(s["probe"], s["kind"]) for s in trace.summaries()], [(1, "k"), (2, "j"), (3, "r")])
        times = [e["time_ns"] for e in trace.events()]
        self.assertEqual(times, sorted(times))

    def test_text_payloads(self):
        trace = self.traced("calls 2", "-k", "work", "-j", "work", "-r", "work", "--print", "n", trace_format="text")
        payloads = [re.sub(TOOK, "took a while", p) for p in trace.payloads]
        self.assertEqual(payloads[3:], ["work+0x0 n=1", "work(n=1)", "work(n=1) returned 1 and took a while"])
        trace = self.traced("calls 1", "-r", "work", trace_format="text")
        self.assertRegex(trace.lines[0], rf"^\d\d:\d\d:\d\d\.\d{{6}} options/\d+ work\(op=OP_READ, name=\"alpha\", n=0, half=0\) "
                                         rf"returned 0 and {TOOK}$")
        trace = self.traced("calls 1", "-r", "work", "-j", "work", "--no-args", trace_format="text")
        self.assertEqual([re.sub(TOOK, "took a while", p) for p in trace.payloads],
                         ["work()", "work() returned 0 and took a while"])
        trace = self.traced("visit", "-j", "visit", trace_format="text")
        self.assertRegex(trace.payloads[0], r"^visit\(tree=0x[0-9a-f]+, first=0x[0-9a-f]+, mask=3735928559\)$")
        trace = self.traced("visit", "-j", "visit", "--full", trace_format="text")
        self.assertRegex(trace.payloads[0], r"^visit\(tree=\{.*\}, first=\{\.id=300, .*\}, mask=3735928559\)$")
        trace = self.traced("calls 1", "-r", "work", trace_format="text")
        self.assertRegex(trace.err, r"(?m)^ktrace: 1 hit at 1 of 1 place in [\d.]+ [mu]?s: 1 event, none lost$")
        self.assertNotIn("hits =", trace.err)
        self.assertNotIn("Missed probing", trace.err)
        self.assertRegex(trace.err, r"Attached 1 probe to \d+ \(options\), 1 thread\n")

    def test_offset_payload(self):
        place = f"next_step+{4 if MACHINE == 'aarch64' else 3:#x}"  # of an instruction
        trace = self.traced("next_step 1", "-k", place, "--print", "tid", trace_format="text")
        self.assertEqual(trace.payloads, [f"{place} tid={self.target.pid}"])

    def test_sums_of_everything(self):
        trace = self.traced("threads 4 500", "-k", "work", "-j", "work", "-r", "work", "-r", "work", "--if",
                            "args.n % 5 != 0", "--every", "3", "--first", "100")
        for summary in trace.summaries():
            self.assertEqual((summary["hits"], summary["filtered"]), (2000, 400), summary)
            self.assertEqual(summary["events"], 100)
            self.assertEqual(len([e for e in trace.events() if e["probe"] == summary["probe"]]), 100)

    def test_closed_pipe(self):
        target = self.start(program("options"))
        reader, writer = os.pipe()
        process = subprocess.Popen([KTRACE, "attach", "-p", str(target.pid), "-k", "work"], stdout=writer,
                                   stderr=subprocess.PIPE, text=True)
        os.close(writer)
        self.assertIn("Attached", process.stderr.readline())
        os.close(reader)
        target.tell("calls 5000")
        target.truth("^done$")
        process.communicate(timeout=LIMIT)
        self.check_untouched(target)
        self.assertEqual(target.end(), 0)
