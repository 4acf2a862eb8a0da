"""Processes that lay something in ktrace's way: what it reads of them must not hold it up or lead it elsewhere."""
import re
import resource

from live import LiveTest, adds_up, ktrace, program

MEMORY = 1 << 20  # KiB that ktrace may take, with the sanitizers too; the tables claim 5 GiB


class Crafted(LiveTest):
    def check(self, way, pages):
        """repair and attach end, say what they found, and the process works on."""
        target = self.start(program("crafted"), way)
        said = ktrace("repair", "-p", target.pid)
        self.assertEqual(said.status, 0, said)
        taken = re.search(r"left: \d+ traps?, (\d+) page|(nothing) to repair", said.err)
        self.assertEqual(taken and taken[1], pages, said)
        tracer = self.attach(target, "-k", "do_work", "--count", "--format", "json")
        target.tell()
        target.truth(r"calls 10\b")
        trace = tracer.stop()
        self.assertEqual((trace.status, trace.summary("do_work")["hits"]), (0, 10), trace)
        self.assertTrue(adds_up(trace.summary("do_work")))
        self.assertLess(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, MEMORY)
        target.tell()
        target.truth(r"calls 20\b")
        self.assertEqual(target.end(), 0)

    def test_nothing(self):
        self.check("nothing", None)

    def test_tables_of_millions(self):
        self.check("entries", "1")

    def test_slots_everywhere(self):
        self.check("slots", "1")

    def test_nonsense(self):
        self.check("nonsense", "1")

    def test_a_thread_that_stays_in_a_page(self):
        target = self.start(program("crafted"), "stays")
        said = ktrace("repair", "-p", target.pid)
        self.assertEqual(said.status, 0, said)
        self.assertIn("1 page", said.err)

    def test_thousands_of_pages(self):
        self.check("pages", "64")
