"""Programs that are probed by every form of SPEC, and what their probes count."""
from live import LiveTest, adds_up
from workshop import build

NAMES = ["names/main.c", "names/other.c"]


def names(*flags, compiler="gcc"):
    return build("names", "-O2", "-g", *flags, sources=NAMES, compiler=compiler)


class SpecTest(LiveTest):
    def started(self, path, *command):
        """A target that is about to work, and the address that it printed."""
        target = self.start(path, *command, ready=None)
        address = target.truth(r"^ready ?(\S*)")[1]
        return target, address

    def hits(self, path, *options, rounds=1, status=0):
        """The summaries after `rounds` lines, in the order of ktrace, from attach."""
        target, address = self.started(path)
        options = [o.replace("{plain_one}", address) for o in options]
        tracer = self.attach(target, *options, "--count", "--format", "json")
        for _ in range(rounds):
            target.tell()
            target.truth("^done")
        trace = tracer.stop()
        self.assertEqual(trace.status, status, trace)
        for summary in trace.summaries():
            self.assertTrue(adds_up(summary), summary)
        self.check_untouched(target)
        self.assertEqual(target.end(), 0)
        return trace

    def count_of(self, path, spec, kind="-k", **options):
        """All hits of a SPEC, and where: {symbol: hits}."""
        trace = self.hits(path, kind, spec, **options)
        where = {}
        for s in trace.summaries():
            name = s["symbol"] + (f"+{s['offset']:#x}" if s["offset"] else "")
            where[name] = where.get(name, 0) + s["hits"]
        return where
