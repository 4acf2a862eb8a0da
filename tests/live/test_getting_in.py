"""Getting in: processes by their names, in lists, by a thread's number; without a probe."""
import os
import re
import shutil
import tempfile

from live import LiveTest, ktrace, program, thread_folders


class Named(LiveTest):
    """Processes that run a copy of a program, by a name that no other process has."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.name = f"kt{os.getpid()}"
        self.path = os.path.join(folder.name, self.name)
        shutil.copy(program("calls"), self.path)

    def count_calls(self, tracer, *targets):
        """Each makes 200 calls, and ktrace must have seen those of all."""
        for _ in targets:
            tracer.errors.until(r"Attached 1 probe")
        for target in targets:
            target.tell()
            target.truth("do_work")
        trace = tracer.stop()
        self.assertEqual(trace.summary("do_work")["hits"], 200 * len(targets), trace)
        for target in targets:
            self.check_untouched(target)
            self.assertEqual(target.end(), 0)
        return trace

    def test_all_of_a_name(self):
        first, second = self.start(self.path, 1, 200), self.start(self.path, 1, 200)
        tracer = self.trace("-p", self.name, "-j", "do_work", "--format", "json", wait=False)
        trace = self.count_calls(tracer, first, second)
        self.assertIn(f"ktrace: {self.name} is processes {min(first.pid, second.pid)}, {max(first.pid, second.pid)}\n",
                      trace.err)

    def test_one_of_a_name_is_found_by_all_commands(self):
        target = self.start(self.path, 1, 200)
        tracer = self.trace("-p", self.name, "-j", "do_work", "--format", "json", wait=False)
        tracer.errors.until(r"Attached 1 probe")
        for command in (["ctl", "list"], ["list", "do_work"]):
            shown = ktrace(command[0], "-p", self.name, *command[1:])
            self.assertEqual((shown.status, shown.err), (0, ""), shown)
            self.assertIn("do_work", shown.out)
        trace = tracer.stop()
        self.assertEqual(trace.status, 0, trace)
        repaired = ktrace("repair", "-p", self.name)
        self.assertEqual(repaired.status, 0, repaired)
        self.check_untouched(target)

    def test_a_list_with_blanks(self):
        first, second = self.start(self.path, 1, 200), self.start(self.path, 1, 200)
        tracer = self.trace("-p", f" {first.pid} {second.pid}, {first.pid}\n", "-j", "do_work", "--format", "json", wait=False)
        self.count_calls(tracer, first, second)

    def test_the_number_of_a_thread(self):
        target = self.start(program("crowd"), 2)
        thread = max(int(os.path.basename(folder)) for folder in thread_folders(target.pid))
        self.assertNotEqual(thread, target.pid)
        tracer = self.trace("-p", thread, "-j", "do_work", "--count", "--format", "json")
        target.tell()
        target.truth("do_work")
        trace = tracer.stop()
        self.assertEqual(trace.summary("do_work")["hits"], 1, trace)
        self.assertIn(f"ktrace: {thread} is a thread of process {target.pid}, all of which is traced; "
                      f"--if 'tid == {thread}' picks the thread\n", trace.err)

    def test_a_process_and_nothing_to_probe(self):
        """The command that is shown works."""
        target = self.start(self.path, 1, 200)
        shown = ktrace("attach", "-p", self.name)
        self.assertEqual((shown.status, shown.out), (2, ""), shown)
        said = re.fullmatch(rf"ktrace: no probe is given for process {target.pid} \({self.name}\): {self.name} has "
                            rf"(\d+) functions that can be probed, ktrace list -p {target.pid} shows them; "
                            rf"to begin: ktrace (attach -p {target.pid} --ret \w+ --stats)\n", shown.err)
        self.assertTrue(said, shown)
        listed = ktrace("list", "-p", target.pid).out.splitlines()
        self.assertEqual(int(said[1]), len({line.split()[0] for line in listed if f" [{self.name}]" in line}))
        trace = ktrace(*said[2].split(), "--duration", "1ms")
        self.assertEqual(trace.status, 0, trace)
        self.check_untouched(target)
