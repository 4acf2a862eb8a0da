"""Targets that the freezer of a control group keeps from running: they make no system call for ktrace before they are thawed."""
import itertools
import os
import re
import signal
import unittest

from live import NO_WATCHES, debug_registers_trap, ktrace, told_of, until, wait_until_let_go
from survivor import PROBES, Survivor


def mount_of(kind, option=""):
    """Where the kernel shows such groups."""
    with open("/proc/self/mountinfo") as mounts:
        for line in mounts:
            fields, system = (part.split() for part in line.split(" - "))
            if system[0] == kind and fields[3] == "/" and option in ["", *system[2].split(",")]:
                return fields[4]
    return None


GROUPS = itertools.count()


class Group:
    """A control group with a freezer, `legacy`: of version 1."""

    def __init__(self, test, legacy):
        mount = mount_of("cgroup", "freezer") if legacy else mount_of("cgroup2")
        self.folder, self.legacy = f"{mount}/ktrace-test-{os.getpid()}-{next(GROUPS)}", legacy
        try:
            os.mkdir(self.folder)
        except OSError as error:
            raise unittest.SkipTest(f"no control groups of this kind can be made here: {error}")
        test.addCleanup(os.rmdir, self.folder)
        test.addCleanup(self.empty, mount)
        self.test = test

    def write(self, file, value):
        with open(f"{self.folder}/{file}", "w") as setting:
            setting.write(str(value))

    def take(self, pid):
        self.write("cgroup.procs", pid)
        self.test.addCleanup(self.thaw)  # before it is killed: one that is frozen may not be

    def empty(self, mount):
        for pid in told_of(self.folder, "cgroup.procs").split():
            with open(f"{mount}/cgroup.procs", "w") as procs:
                procs.write(pid)

    def freeze(self):
        self.write(*(("freezer.state", "FROZEN") if self.legacy else ("cgroup.freeze", 1)))
        file, text = ("freezer.state", "FROZEN") if self.legacy else ("cgroup.events", "frozen 1")
        until(lambda: text in told_of(self.folder, file), "the group is frozen")

    def thaw(self):
        self.write(*(("freezer.state", "THAWED") if self.legacy else ("cgroup.freeze", 0)))


class Frozen(Survivor):
    def both_kinds(self):
        """A running target in a group, for each of the versions."""
        for legacy in (False, True):
            with self.subTest(legacy=legacy):
                try:
                    group = Group(self, legacy)
                except unittest.SkipTest as reason:
                    print(reason)
                    continue
                self.begin("4")
                group.take(self.target.pid)
                yield group
                self.wait_random(60)
                wait_until_let_go(self.target.pid)
                self.check_end()

    def test_is_refused(self):
        """One sentence that says how to thaw it, at once."""
        for group in self.both_kinds():
            group.freeze()
            for command in (("attach", "-p", self.target.pid, *PROBES), ("repair", "-p", self.target.pid)):
                trace = ktrace(*command)
                self.assertEqual(trace.status, 1, trace)
                self.assertIn(f"process {self.target.pid} is frozen by its control group", trace.err)
                self.assertIn(f"thaw it: echo {'THAWED' if group.legacy else '0'} > {group.folder}/", trace.err)
            group.thaw()

    @unittest.skipUnless(debug_registers_trap(), NO_WATCHES)
    def test_probes_are_refused(self):
        """Those that come by ctl, for which the process would have to map memory."""
        for group in self.both_kinds():
            tracer = self.attach(self.target, "-w", "noted", "--count")
            group.freeze()
            trace = ktrace("ctl", "-p", self.target.pid, "add", "-k", "leaf")
            self.assertEqual(trace.status, 1, trace)
            self.assertIn("is frozen by its control group", trace.err)
            group.thaw()
            self.assertEqual(ktrace("ctl", "-p", self.target.pid, "add", "-k", "leaf", "--count").status, 0)
            self.assertEqual(tracer.stop().status, 0)

    def check_at_rest(self, group, err):
        """Its code is as it was, what is mapped is named, and taken out when the process is thawed."""
        self.assertIn(f"process {self.target.pid} cannot be stopped (its control group has frozen it)", err)
        self.assertIn(f"ktrace repair -p {self.target.pid} takes it out", err)
        self.check_text(self.target, has_code_without_file=True)
        group.thaw()
        self.wait_random(60)

    def test_frozen_at_the_end(self):
        """ktrace ends, with its tables. A trace that begins later, or a repair, takes out what is left."""
        def repair():
            repaired = ktrace("repair", "-p", self.target.pid)
            self.assertEqual(repaired.status, 0, repaired)
            self.assertIn(f"took out of process {self.target.pid}", repaired.err)

        def another():
            tracer = self.attach(self.target, *PROBES)
            self.wait_random(60)
            self.assertEqual(tracer.stop().status, 0)

        for then in (repair, another):
            for group in self.both_kinds():
                tracer = self.attach(self.target, *PROBES)
                self.wait_random(60)
                group.freeze()
                trace = tracer.stop()
                self.assertEqual(trace.status, 0, trace)
                self.assertTrue(re.search(r"ktrace: [1-9]\d* hits? at ", trace.err), trace)
                self.check_at_rest(group, trace.err)
                then()

    def test_tracing_process_is_killed(self):
        """All bytes are put back at once, the rest is left as at the end of a trace."""
        for group in self.both_kinds():
            # Killed while it maps memory for jumps, ktrace leaves that mapping.
            tracer = self.attach(self.target, "--engine", "trap", *PROBES)
            self.wait_random(60)
            group.freeze()
            os.kill(tracer.tracing, signal.SIGKILL)
            self.check_at_rest(group, tracer.finish().err)
            self.assertEqual(ktrace("repair", "-p", self.target.pid).status, 0)
