"""Children of traced processes: clean and uncounted without -f, counted exactly with it."""
import os
import re
import resource
import signal
import subprocess
import unittest
from types import SimpleNamespace

from live import (KTRACE, LIMIT, NO_WATCHES, LiveTest, Target, adds_up, debug_registers_trap, ktrace, mappings_left, program,
                  until)


def descriptors(tracer):
    """How many files the tracing process has open."""
    return len(os.listdir(f"/proc/{tracer.tracing}/fd"))


def descriptors_at_rest(target, tracer):
    """The same, once ktrace answers and makes no more jumps: it has opened all that it needs."""
    def is_at_rest():
        answer = ktrace("ctl", "-p", target.pid, "list", "-v")
        assert answer.status == 0, answer
        return "under way" not in answer.out

    until(is_at_rest, "it is at rest")
    return descriptors(tracer)


class Processes(LiveTest):
    def keep(self, target, advice):
        """Nothing of what ktrace has mapped gets into the target's children."""
        target.tell(f"{advice} 0 0")
        self.assertGreater(int(target.truth(r"kept (\d+)")[1]), 0, "ktrace has mapped nothing")

    def children(self, way, count, calls, *options, follow, all_clean=True, advice=None):
        target = self.start(program("processes"))
        follow_option = ["-f"] if follow else []
        tracer = self.attach(target, *options, *follow_option, "--count", "--format", "json")
        if advice:
            self.keep(target, advice)
        target.tell(f"{way} {count} {calls}")
        truth = target.truth(r"children (\d+) clean (\d+) calls (\d+) own (\d+)")
        if all_clean:
            self.assertEqual(truth[2], truth[1], target.lines.seen)
        trace = tracer.stop()
        self.assertEqual(trace.status, 0, trace)
        summary = trace.summary("do_work")
        self.assertEqual(summary["hits"], int(truth[3] if follow else truth[4]), trace)
        self.assertTrue(adds_up(summary), summary)
        self.check_untouched(target)
        # It works on as if it had not been traced.
        target.tell(f"{way} 2 {calls}")
        self.assertEqual(target.truth(r"children (\d+) clean (\d+) calls")[2], "2", target.lines.seen)
        self.assertEqual(target.end(), 0)
        return trace

    def alone(self, way, count=20, calls=3):
        return self.children(way, count, calls, "-k", "do_work", follow=False)

    def followed(self, way, count=20, calls=3):
        # Who is traced cannot be clean, but for what exec makes of it and ktrace has nothing in.
        return self.children(way, count, calls, "-k", "do_work", follow=True, all_clean=False)

    def test_fork_alone(self):
        self.alone("fork")

    def test_fork_alone_with_returns(self):
        self.children("fork", 20, 3, "-r", "do_work", follow=False)

    def test_vfork_alone(self):
        self.alone("vfork")

    def test_vfork_alone_with_returns(self):
        self.children("vfork", 20, 3, "-r", "do_work", follow=False)

    def test_vfork_exit_alone(self):
        self.alone("vforkexit")

    def test_spawn_alone(self):
        self.alone("spawn")

    def test_system_alone(self):
        self.alone("system")

    def test_clone_vm_alone(self):
        self.alone("clonevm")

    def test_clone_alone(self):
        self.alone("clone")

    def test_grandchild_alone(self):
        self.alone("grandchild")

    def test_exec_alone(self):
        self.alone("exec")

    def test_fork_inside_alone(self):
        trace = self.children("inside", 20, 3, "-k", "do_work", "-r", "fork_here", follow=False)
        summary = trace.summary("fork_here")
        self.assertEqual((summary["hits"], summary["events"]), (20, 20), trace)

    def test_fork_followed(self):
        self.followed("fork")

    def test_vfork_followed(self):
        self.followed("vfork")

    def test_vfork_exit_followed(self):
        self.followed("vforkexit")

    def test_vfork_followed_with_returns(self):
        trace = self.children("vfork", 20, 3, "-r", "do_work", follow=True, all_clean=False)
        summary = trace.summary("do_work")
        self.assertEqual(summary["events"], summary["hits"], trace)

    def test_spawn_followed(self):
        self.followed("spawn")

    def test_system_followed(self):
        self.followed("system")

    def test_clone_vm_followed(self):
        self.followed("clonevm")

    def test_clone_followed(self):
        self.followed("clone")

    def test_grandchild_followed(self):
        self.followed("grandchild")

    def test_exec_followed(self):
        self.followed("exec")

    def test_fork_inside_followed(self):
        trace = self.children("inside", 20, 3, "-k", "do_work", "-r", "fork_here", follow=True, all_clean=False)
        summary = trace.summary("fork_here")
        # A call that a fork's child was born in began before it was there: it is not one of its calls.
        self.assertEqual((summary["hits"], summary["events"]), (20, 20), trace)

    def kept_from_children(self, follow):
        """The children have the traps, and not what these lead to, but for what ktrace gives them of it."""
        for advice in ("dontfork", "wipeonfork"):
            for way in ("fork", "grandchild", "clone", "inside"):
                with self.subTest(f"{advice}, {way}"):
                    trace = self.children(way, 10, 3, "-r", "do_work", "-r", "fork_here", follow=follow,
                                          all_clean=not follow, advice=advice)
                    self.assertNotIn("memory of ktrace's", trace.err)

    def test_memory_that_is_kept_from_children(self):
        self.kept_from_children(follow=False)

    def test_memory_that_is_kept_from_children_followed(self):
        self.kept_from_children(follow=True)

    def test_children_that_cannot_have_our_memory(self):
        """They are not followed, which is said, and are clean."""
        target = self.start(program("processes"))
        tracer = self.attach(target, "-k", "do_work", "-f", "--count", "--format", "json")
        self.keep(target, "dontfork")
        resource.prlimit(target.pid, resource.RLIMIT_AS, (1, resource.RLIM_INFINITY))
        target.tell("fork 5 3")
        truth = target.truth(r"children 5 clean (\d+) calls \d+ own (\d+)")
        self.assertEqual(truth[1], "5", target.lines.seen)
        trace = tracer.stop()
        self.assertEqual((trace.status, trace.summary("do_work")["hits"]), (0, int(truth[2])), trace)
        self.assertEqual(trace.err.count("lack memory of ktrace's"), 1, trace)
        self.check_untouched(target)
        self.assertEqual(target.end(), 0)

    def test_constructor_after_exec(self):
        target = self.start(program("processes"))
        tracer = self.attach(target, "-k", "early", "-k", "do_work", "-f", "--count", "--format", "json")
        target.tell("exec 5 7")
        target.truth(r"children 5 clean \d+ calls")
        trace = tracer.stop()
        self.assertEqual(trace.summary("early")["hits"], 5, trace)
        self.assertEqual(trace.summary("do_work")["hits"], 5 * 7 + 10, trace)
        self.assertEqual(target.end(), 0)

    def bomb(self, follow):
        target = self.start(program("processes"))
        follow_option = ["-f"] if follow else []
        tracer = self.attach(target, "-k", "do_work", *follow_option, "--count", "--format", "json")
        opened = descriptors_at_rest(target, tracer)
        target.tell("bomb 200 10")
        truth = target.truth(r"children (\d+) clean (\d+) calls (\d+) own (\d+)")
        until(lambda: descriptors(tracer) <= opened, "nothing is open for children that have ended")
        trace = tracer.stop()
        self.assertEqual(trace.status, 0, trace)
        if not follow:
            self.assertEqual(truth[2], "200", target.lines.seen)
        self.assertEqual(trace.summary("do_work")["hits"], int(truth[3] if follow else truth[4]), trace)
        self.check_untouched(target)
        self.assertEqual(target.end(), 0)

    def test_bomb_alone(self):
        self.bomb(False)

    def test_bomb_followed(self):
        self.bomb(True)

    def test_bomb_with_returns(self):
        target = self.start(program("processes"))
        tracer = self.attach(target, "-r", "do_work", "-f", "--count", "--format", "json")
        target.tell("bomb 200 10")
        truth = target.truth(r"children (\d+) clean (\d+) calls (\d+) own (\d+)")
        trace = tracer.stop()
        summary = trace.summary("do_work")
        self.assertEqual(summary["hits"], int(truth[3]), trace)
        self.assertTrue(adds_up(summary), summary)
        self.check_untouched(target)
        self.assertEqual(target.end(), 0)

    def test_detach_amid_children(self):
        """Detaching while processes are born leaves none of them with a trap."""
        target = self.start(program("processes"))
        for follow in ([], ["-f"]) * 5:
            tracer = self.attach(target, "-k", "do_work", *follow, "--max-events", "40")
            target.tell("bomb 60 10")
            trace = tracer.finish()
            self.assertEqual(trace.status, 0, trace)
            truth = target.truth(r"children (\d+) clean (\d+) calls")
            if not follow:
                self.assertEqual(truth[2], "60", target.lines.seen)
            # Whether a followed child finds itself clean depends on when it looks; a signal never ends one.
            killed = [line for line in target.lines.seen if re.search(r"status 0x\w*[1-9a-f]$", line)]
            self.assertEqual(killed, [])
            self.assertEqual(len(trace.payloads), 40, trace)
            self.check_untouched(target)
        self.assertEqual(target.end(), 0)

    def test_run_follows_exec(self):
        """A probe that waits for a module is armed in whatever program has it."""
        trace = ktrace("run", "-k", "processes:do_work", "-k", "processes:early", "-f", "--count", "--format", "json",
                       "--", "/bin/sh", "-c", f"{program('processes')} work 11; {program('processes')} work 31; exit 7")
        self.assertEqual(trace.status, 7, trace)
        self.assertIn("early 1 do_work 11", trace.out)
        json_lines = [line for line in trace.lines if line.startswith("{")]
        trace.out = "\n".join(json_lines)
        self.assertEqual(trace.summary("do_work")["hits"], 42, trace)
        self.assertEqual(trace.summary("early")["hits"], 2, trace)


class Debugger(LiveTest):
    """A program that traces children of its own: one that is not followed is its own from its birth."""

    def check(self, way, times=40):
        # A parent that hits a probe behind fork gives ktrace time to let the child go; one without a probe does not.
        for options in (("-w", "word"), ("-k", "do_work"), ("-r", "fork")):
            with self.subTest(options):
                target = self.start(program("tracer"))
                tracer = self.attach(target, *options, "--count", "--format", "json")
                target.tell(f"{way} {times}")
                self.assertEqual(target.truth(rf"{way} {times} refused (\d+) bad (\d+)").groups(), ("0", "0"))
                self.assertEqual(tracer.stop().status, 0)
                self.check_untouched(target)
                self.assertEqual(target.end(), 0)

    def test_seizes(self):
        self.check("seize")

    def test_attaches(self):
        self.check("attach")

    @unittest.skipUnless(debug_registers_trap(), NO_WATCHES)
    def test_is_asked(self):
        self.check("traceme")

    def test_followed_children_have_a_tracer(self):
        target = self.start(program("tracer"))
        tracer = self.attach(target, "-k", "do_work", "-f", "--count")
        target.tell("seize 5")
        target.truth("seize 5 refused 5 bad 0")
        self.assertEqual(tracer.stop().status, 0)
        self.check_untouched(target)
        self.assertEqual(target.end(), 0)


class Borrowers(LiveTest):
    """Processes that run in a traced one's memory: at vfork, or for good."""

    def borrowing(self, target, way):
        target.tell(way)
        return int(target.truth(r"borrowing (\d+)")[1])

    def check_ended(self, target):
        status, calls, _ = map(int, target.truth(r"ended (\d+) calls (\d+) own (\d+)").groups())
        self.assertEqual(status, 0)
        self.assertGreater(calls, 0)
        return calls

    def check_works(self, target):
        self.check_untouched(target)
        self.borrowing(target, "vfork")
        target.tell()
        self.check_ended(target)
        self.assertEqual(target.end(), 0)

    def test_detach_at_vfork(self):
        """The only thread of the process waits for a child that ktrace stops: it must run on for that."""
        for options in (["-k", "do_work"], ["-r", "do_work", "-f"]):
            target = self.start(program("borrowers"))
            tracer = self.attach(target, *options, "--count")
            child = self.borrowing(target, "vfork")
            tracer.process.send_signal(signal.SIGINT)
            until(lambda: ktrace("ctl", "-p", target.pid, "list").status != 0, "ktrace detaches")
            self.assertTrue(os.path.exists(f"/proc/{child}"))
            target.tell()
            self.check_ended(target)
            self.assertEqual(tracer.finish().status, 0)
            self.check_works(target)

    def test_ctl_add_at_vfork(self):
        """A thread that is to map room for more probes waits for a child that stops at one."""
        target = self.start(program("borrowers"))
        tracer = self.attach(target, "-k", "do_work", "--count")
        self.borrowing(target, "vfork")
        added = subprocess.Popen([KTRACE, "ctl", "-p", str(target.pid), "add", "-k", "libc:getppid", "-k", "libc:qsort"],
                                 stdin=subprocess.DEVNULL)
        target.tell()
        self.check_ended(target)
        self.assertEqual(added.wait(LIMIT), 0)
        self.assertEqual(tracer.stop().status, 0)
        self.check_works(target)

    def sharing(self, way, *options):
        """The child is there before ktrace comes, and lives on behind its end."""
        target = self.start(program("borrowers"), "beside")
        self.borrowing(target, way)
        tracer = self.attach(target, "-k", "do_work", "-r", "do_work", "--count", "--format", "json", *options)
        before = self.hits(target)
        until(lambda: self.hits(target) > before + 20, "threads of the process come by")
        trace = tracer.stop()
        self.assertEqual(trace.status, 0, trace)
        self.check_untouched(target)
        target.tell()
        self.check_ended(target)
        self.check_works(target)
        return trace

    def hits(self, target):
        return int(re.search(r"(\d+) hits", ktrace("ctl", "-p", target.pid, "stats").out)[1])

    def test_attach_at_vfork(self):
        self.sharing("vfork")

    def test_attach_at_vfork_followed(self):
        self.sharing("vfork", "-f")

    def test_attach_to_shared_memory(self):
        self.sharing("clone")

    def test_attach_to_shared_memory_followed(self):
        self.sharing("clone", "-f")

    def test_killed_behind_the_end_of_who_was_attached_to(self):
        """A process that was born in its memory later on goes on with it: the guardian knows of that one, too."""
        target = self.start(program("borrowers"))
        # Killed while it maps memory for jumps, ktrace leaves that mapping.
        tracer = self.attach(target, "--engine", "trap", "-k", "do_work", "-f", "--count")
        child = self.borrowing(target, "leave")
        target.process.wait(LIMIT)
        left = mappings_left(child)
        os.kill(tracer.tracing, signal.SIGKILL)
        trace = tracer.finish()
        self.assertRegex(trace.err, rf"took out of process {child} .* [1-9]\d* traps?, {left} mappings")
        self.check_untouched(SimpleNamespace(pid=child))
        target.process.stdin.close()
        until(lambda: not os.path.exists(f"/proc/{child}"), "the child ends with its input")

    def siblings(self, order, *options, both=False):
        """Children whose parent is not their maker, and is traced only with `both`; many stop before the event that reports
        of them."""
        target = Target(program("siblings"), ready=None)
        self.addCleanup(target.kill)
        maker = int(target.truth(r"^ready (\d+)")[1])
        pids = f"{target.pid},{maker}" if both else maker
        tracer = self.trace("-p", pids, "-k", "do_work", "--count", "--format", "json", *options)
        if both:
            tracer.errors.until(r"Attached \d+ probe")
        target.tell(order)
        calls, own = map(int, target.truth(r"calls (\d+) own (\d+)").groups())
        trace = tracer.stop()
        self.assertEqual((trace.status, "changed meanwhile" in trace.err), (0, False), trace)
        self.assertEqual(target.end(), 0)
        return calls, own, trace.summary("do_work")["hits"]

    def test_siblings_that_share_the_memory(self):
        _, own, hits = self.siblings("share 1000")
        self.assertEqual(hits, own)

    def test_siblings_that_share_the_memory_followed(self):
        calls, _, hits = self.siblings("share 1000", "-f")
        self.assertEqual(hits, calls)

    def test_siblings_with_a_copy(self):
        for both in False, True:
            _, own, hits = self.siblings("copy 300", both=both)
            self.assertEqual(hits, own)

    def test_siblings_with_a_copy_followed(self):
        for both in False, True:
            calls, _, hits = self.siblings("copy 300", "-f", both=both)
            self.assertEqual(hits, calls)

    def test_both_are_asked_for(self):
        """Who is asked for by name is counted, though another one was first in the same memory."""
        target = self.start(program("borrowers"))
        child = self.borrowing(target, "clone")
        tracer = self.trace("-p", f"{target.pid},{child}", "-k", "do_work", "--count", "--format", "json")
        until(lambda: self.hits(target) > 100, "the child is counted")
        self.assertEqual(tracer.stop().status, 0)
        target.tell()
        self.check_ended(target)
        self.check_works(target)
