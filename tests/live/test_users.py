"""Who traces whom, and where: users without rights, namespaces, chroots, programs that an upgrade has replaced."""
import ctypes
import os
import shutil
import signal
import struct
import subprocess
import tempfile
import unittest

from live import (KTRACE, LIMIT, NO_WATCHES, LiveTest, children_of, debug_registers_trap, is_asleep, ktrace, mappings_left,
                  program, until, wait_until_asleep, wait_until_let_go)
from survivor import PROBES
import workshop

NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]


def inside(folder, command):
    """Runs a command in user, mount and process namespaces of its own, with an empty file system at `folder`."""
    return ["unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork", "--mount-proc", "sh", "-c",
            f"mount -t tmpfs none {folder} && {command}"]


def namespaces_allowed():
    return subprocess.run(inside("/mnt", "true"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


def be_judged():
    """By a seccomp filter that lets all calls pass (seccomp(2))."""
    set_seccomp, by_filter, return_constant, allow = 22, 2, 6, 0x7fff0000
    code = ctypes.create_string_buffer(struct.pack("HBBI", return_constant, 0, 0, allow))
    program_of_one = struct.pack("HP", 1, ctypes.addressof(code))
    if ctypes.CDLL(None).prctl(set_seccomp, by_filter, program_of_one) != 0:
        raise OSError("no seccomp here")


class UsersTest(LiveTest):
    def room(self):
        folder = tempfile.mkdtemp(prefix="ktrace-users-")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        os.chmod(folder, 0o755)
        return folder

    def become_nobody(self):
        if os.geteuid() != 0 or not shutil.which("setpriv"):
            raise unittest.SkipTest("needs root, to become nobody")

    def tracer_of_nobody(self, *arguments):
        if "-w" in arguments and not debug_registers_trap():
            self.skipTest(NO_WATCHES)
        tracer = subprocess.Popen([*NOBODY, KTRACE, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  stdin=subprocess.DEVNULL)
        self.addCleanup(tracer.communicate)
        self.addCleanup(tracer.kill)
        line = tracer.stderr.readline()
        if b"Permission denied" in line:
            raise unittest.SkipTest("nobody may not run what was built here")
        self.assertIn(b"Attached", line)
        return tracer


class Users(UsersTest):
    def test_children_keep_the_rights_of_their_programs(self):
        """A set-user-id program gives no rights to a process whose tracer has no privileges: the child is let go before."""
        self.become_nobody()
        folder = self.room()
        owned = shutil.copy(shutil.which("id"), folder)
        os.chmod(owned, 0o4755)
        if subprocess.run([*NOBODY, owned, "-u"], stdout=subprocess.PIPE).stdout != b"0\n":
            raise unittest.SkipTest(f"set-user-id is of no use in {folder}")
        target = self.start(*NOBODY, program("rights"), cwd=folder)
        tracer = self.tracer_of_nobody("attach", "-p", target.pid, "-k", "do_work", "--count", "--format", "json")
        for way in ("spawn", "vfork", "fork", "system"):
            for path in (owned, "./id"):
                target.tell(f"{way} {path}")
                self.assertEqual(target.truth(r"^rights .*")[0], "rights 0", f"{way} {path}")
        tracer.send_signal(signal.SIGINT)
        self.assertEqual(tracer.wait(LIMIT), 0)
        self.check_untouched(target)
        self.assertEqual(target.end(), 0)

    def check_traced(self, target, pid):
        """The target works 50 times under probes; it is known to ktrace as `pid`."""
        tracer = self.trace("-p", pid, "-r", "do_work", "--count", "--format", "json")
        target.tell()
        target.truth(r"^do_work 50 ")
        trace = tracer.stop()
        self.assertEqual(trace.status, 0, trace)
        summary = trace.summary("do_work")
        self.assertEqual((summary["hits"], summary["events"]), (50, 50), trace)
        return trace

    def contained(self):
        """A target in namespaces of its own, of a program that is only there, and its id as the test sees it."""
        if not namespaces_allowed():
            raise unittest.SkipTest("no user namespaces here")
        decoy = shutil.copy(shutil.which("true"), os.path.join(self.room(), "app"))
        target = self.start(*inside(os.path.dirname(decoy), f"cp {program('calls')} {decoy} && exec {decoy} 1 50"))
        return target, children_of(target.pid)[0]

    def test_in_namespaces_of_its_own(self):
        target, pid = self.contained()
        trace = self.check_traced(target, pid)
        self.assertEqual(trace.summary("do_work")["module"], "app", trace)
        self.assertEqual(target.end(), 0)

    def test_namesakes_in_both_mount_namespaces(self):
        """Both file systems number the two files alike: it is the target's own that is read."""
        if os.geteuid() != 0 or not namespaces_allowed():
            raise unittest.SkipTest("needs root, to mount a file system")
        folder = self.room()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "none", folder], stderr=subprocess.PIPE, check=False)
        if mounted.returncode != 0:
            raise unittest.SkipTest(mounted.stderr)
        self.addCleanup(subprocess.run, ["umount", "--lazy", folder], check=True)
        decoy = shutil.copy(shutil.which("true"), os.path.join(folder, "app"))
        target = self.start(*inside(folder, f"cp {program('calls')} {decoy} && exec {decoy} 1 50"))
        pid = children_of(target.pid)[0]
        self.assertEqual(os.stat(f"/proc/{pid}/root{decoy}").st_ino, os.stat(decoy).st_ino)
        self.check_traced(target, pid)
        self.assertEqual(target.end(), 0)

    def test_both_in_namespaces(self):
        """ktrace in the container, too, where the target is process 1."""
        target, pid = self.contained()
        tracer = subprocess.Popen(["nsenter", "--target", str(pid), "--user", "--mount", "--pid", KTRACE, "attach", "-p", "1",
                                   "-r", "do_work", "--max-events", "50"],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        self.addCleanup(tracer.kill)
        said = tracer.stderr.readline()
        self.assertIn(b"Attached 1 probe to 1 (app)", said)
        target.tell()
        target.truth(r"^do_work 50 ")
        out, err = tracer.communicate(timeout=LIMIT)
        self.assertEqual((tracer.returncode, out.count(b") returned ")), (0, 50), err)
        self.assertEqual(target.end(), 0)

    def test_in_a_chroot(self):
        if os.geteuid() != 0:
            raise unittest.SkipTest("needs root, to change the root")
        folder = self.room()
        made = workshop.build("calls", "-O2", "-g", "-static", "-pthread")
        shutil.copy(made, os.path.join(folder, "app"))
        target = self.start("chroot", folder, "/app", "1", "50")
        tracer = self.attach(target, "-r", "do_work", "--stack=2", "--format", "json")
        target.tell()
        target.truth(r"^do_work 50 ")
        trace = tracer.stop()
        self.assertEqual(trace.summary("do_work")["events"], 50, trace)
        self.assertEqual(trace.events("return")[0]["stack"][0]["module"], "app", trace)
        self.assertEqual(target.end(), 0)

    def replaced(self, replace):
        folder = self.room()
        app = shutil.copy(program("calls"), os.path.join(folder, "app"))
        target = self.start(app, "1", "50")
        replace(app)
        self.check_traced(target, target.pid)
        self.assertEqual(target.end(), 0)

    def test_deleted_program(self):
        self.replaced(os.unlink)

    def test_replaced_program(self):
        """An upgrade: another program has its name now."""
        def upgrade(app):
            shutil.copy(shutil.which("true"), app + ".new")
            os.rename(app + ".new", app)
        self.replaced(upgrade)

    def need_filter(self, what, name="sandboxed"):
        if subprocess.run([program(name), what], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL).returncode:
            raise unittest.SkipTest("no seccomp here")

    def traced_by_nobody(self, target):
        """What ktrace without privileges says on standard error of the target's next 50 calls, all of which it has seen."""
        tracer = self.tracer_of_nobody("attach", "-p", target.pid, "-r", "do_work", "--count", "--format", "json")
        target.tell()
        target.truth(r"^do_work 50 ")
        tracer.send_signal(signal.SIGINT)
        out, err = tracer.communicate(timeout=LIMIT)
        self.assertIn(b'"hits":50', out)
        return err

    def confined(self, what, prefix=(), name="sandboxed"):
        self.need_filter(what, name)
        return self.start(*prefix, program(name), what)

    def check_unfiltered(self, what):
        """Root's system calls in the target are not judged by the target's filter."""
        if os.geteuid() != 0:
            raise unittest.SkipTest("needs root, to suspend a filter")
        target = self.confined(what)
        self.check_traced(target, target.pid)
        self.check_untouched(target)
        target.tell()
        target.truth(r"^do_work 50 ")
        self.assertEqual(target.end(), 0)

    def test_filter_that_refuses(self):
        self.check_unfiltered("errno")

    def test_filter_that_traps(self):
        self.check_unfiltered("trap")

    def test_filter_that_kills(self):
        self.check_unfiltered("kill")

    def test_strict_filter(self):
        self.check_unfiltered("strict")

    def test_filter_that_comes_later(self):
        """One of the program's own that would end it for what ktrace does when it leaves."""
        self.become_nobody()
        self.need_filter("kill")
        for what in ("errno", "kill"):
            with self.subTest(what):
                target = self.start(*NOBODY, program("sandboxed"), what, "later")
                self.assertIn(b"seccomp filter", self.traced_by_nobody(target))
                target.tell()
                target.truth(r"^do_work 50 ")
                self.assertEqual(target.end(), 0)

    def test_filter_that_comes_before_a_kill(self):
        """Who takes out what a killed ktrace has left does not know the filter either."""
        self.become_nobody()
        self.need_filter("kill")
        for killed in ("tracing process", "both"):
            with self.subTest(killed):
                target = self.start(*NOBODY, program("sandboxed"), "kill", "later")
                tracer = self.tracer_of_nobody("attach", "-p", target.pid, "-r", "do_work", "--count")
                target.tell()
                target.truth(r"^do_work 50 ")
                tracing = children_of(tracer.pid)[0]
                if killed == "both":
                    tracer.send_signal(signal.SIGSTOP)  # it has begun with nothing when it is killed
                os.kill(tracing, signal.SIGKILL)
                if killed == "both":
                    tracer.kill()
                err = tracer.communicate(timeout=LIMIT)[1]
                if killed == "both":
                    repair = subprocess.run([*NOBODY, KTRACE, "repair", "-p", str(target.pid)], stderr=subprocess.PIPE)
                    self.assertEqual(repair.returncode, 1, "it could not take out all")
                    err = repair.stderr
                self.assertIn(b"seccomp filter", err)
                self.assertNotIn(b"page", err)
                target.tell()
                target.truth(r"^do_work 50 ")
                self.assertEqual(target.end(), 0)

    def test_filter_of_another_thread(self):
        """It would end the process for what ktrace does: a thread that has none does it, though it sleeps."""
        self.become_nobody()
        self.need_filter("kill")
        target = self.start(*NOBODY, program("sandboxed"), "kill", "beside")
        for _ in range(20):
            wait_until_asleep(target.pid)
            self.assertNotIn(b"seccomp", self.traced_by_nobody(target))
            self.check_untouched(target)
        self.assertEqual(target.end(), 0)

    def test_filter_of_another_thread_under_a_filter(self):
        """Root whose own calls are judged by a filter, as in a container, may suspend none either."""
        if os.geteuid() != 0:
            raise unittest.SkipTest("needs root, which may suspend filters otherwise")
        self.need_filter("kill")
        target = self.start(program("sandboxed"), "kill", "beside")
        for _ in range(5):
            wait_until_asleep(target.pid)
            done = subprocess.run([KTRACE, "attach", "-p", str(target.pid), "-r", "do_work", "--duration", "1ms"],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                                  preexec_fn=be_judged, timeout=LIMIT)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.check_untouched(target)
            target.tell()
            target.truth(r"^do_work 50 ")
        self.assertEqual(target.end(), 0)

    def test_who_sleeps_in_shared_memory(self):
        """A process that shares the target's memory is stopped once: it may be about to execute a set-user-id program."""
        self.become_nobody()
        target = self.start(*NOBODY, program("borrowers"))
        target.tell("doze")
        child = int(target.truth(r"borrowing (\d+)")[1])
        wait_until_asleep(child)
        tracer = self.tracer_of_nobody("attach", "-p", target.pid, "-k", "do_work")
        until(lambda: is_asleep(child) or target.lines.told("ended"), "it sleeps on, or is over")
        target.tell()
        self.assertEqual(target.truth(r"ended (\d+)")[1], "0")
        tracer.send_signal(signal.SIGINT)
        tracer.communicate(timeout=LIMIT)
        self.assertEqual(target.end(), 0)

    def test_killed_where_nothing_may_be_mapped(self):
        """Probes that need no room and watchpoints can be had; the guardian alone takes them out."""
        self.become_nobody()
        path = program("sandboxed_static")
        for probe in (("-k", f"do_work+{workshop.offset_of(path, 'do_work', '(?:jmp|adrp)')}"), ("-w", "noted")):
            with self.subTest(probe):
                target = self.confined("errno", NOBODY, "sandboxed_static")
                tracer = self.tracer_of_nobody("attach", "-p", target.pid, *probe)
                os.kill(children_of(tracer.pid)[0], signal.SIGKILL)
                tracer.communicate(timeout=LIMIT)
                wait_until_let_go(target.pid)
                target.tell()
                target.truth(r"^do_work 50 ")
                self.check_untouched(target)
                self.assertEqual(target.end(), 0)

    def test_filters_without_privileges(self):
        """No room can be had: that is said, and the target goes on. (A filter that kills is as deadly as it says.)"""
        self.become_nobody()
        for what, says in (("errno", "may not map memory"), ("zero", "answers as if it had"), ("trap", "may not map memory"),
                           ("strict", "strict mode")):
            target = self.confined(what, NOBODY)
            done = subprocess.run([*NOBODY, KTRACE, "attach", "-p", str(target.pid), "-k", "do_work"], text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, timeout=LIMIT)
            self.assertEqual(done.returncode, 1, done)
            self.assertIn(says, done.stderr)
            self.assertIn("root", done.stderr)
            target.tell()
            target.truth(r"^do_work 50 ")
            self.check_untouched(target)
            self.assertEqual(target.end(), 0)


class Hidden(UsersTest):
    """A process that /proc does not show is not said to be none."""

    def test_where_proc_is_not_mounted(self):
        if os.geteuid() != 0 or not namespaces_allowed():
            raise unittest.SkipTest("needs root and namespaces")
        target = self.start(program("survivor"), "1")
        for command in (["attach", "-p", target.pid, "-k", "do_work"], ["repair", "-p", target.pid]):
            line = " ".join(map(str, [KTRACE, *command]))
            done = subprocess.run(["unshare", "--mount", "sh", "-c", f"mount -t tmpfs none /proc && {line}"], text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, timeout=LIMIT)
            self.assertEqual(done.returncode, 1, done)
            self.assertIn(f"process {target.pid} cannot be looked at: /proc/{target.pid}/status: No such file", done.stderr)
            self.assertIn("mount /proc", done.stderr)
        self.assertEqual(target.end(), 0)


class Limits(UsersTest):
    """A user, or a container, has as many processes and threads as it may have."""
    FULL = "no (process|thread) can be started: this user, or this control group, has as many"

    def begin(self):
        self.become_nobody()
        target = self.start(*NOBODY, program("survivor"), "4")
        self.check_right(target)
        return target

    def check_right(self, target):
        """All of its threads have gone on, and calculated what they should."""
        target.tell("check 20")
        target.truth(r"^right \d+$")

    def test_from_the_start(self):
        target = self.begin()
        for command, status in ((["attach", "-p", target.pid, "-k", "do_work"], 1), (["repair", "-p", target.pid], 1),
                                (["run", "-k", "do_work", "--", program("survivor")], 125)):
            # A sanitizer looks for leaks in a process of its own, which is not to be had either.
            done = subprocess.run([*NOBODY, "prlimit", "--nproc=1", KTRACE, *map(str, command)], text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, timeout=LIMIT,
                                  env=dict(os.environ, ASAN_OPTIONS="detect_leaks=0"))
            self.assertEqual(done.returncode, status, done)
            self.assertRegex(done.stderr, self.FULL)
        self.check_right(target)
        self.check_untouched(target)
        self.assertEqual(target.end(), 0)

    def test_when_the_tracing_process_is_killed(self):
        """The other one takes out what is left all the same."""
        target = self.begin()
        # Killed while it maps memory for jumps, ktrace leaves that mapping.
        tracer = self.tracer_of_nobody("attach", "-p", target.pid, "--engine", "trap", *PROBES)
        subprocess.run([*NOBODY, "prlimit", "--nproc=1", "--pid", str(tracer.pid)], check=True)
        left = mappings_left(target.pid)
        os.kill(children_of(tracer.pid)[0], signal.SIGKILL)
        said = tracer.stderr.read().decode()
        self.assertEqual(tracer.wait(LIMIT), 1, said)
        self.assertRegex(said, rf"took out of process {target.pid} .* [1-9]\d* traps?, {left} mappings")
        self.check_right(target)
        wait_until_let_go(target.pid)
        self.check_untouched(target)
        self.assertEqual(target.end(), 0)


class Changes(UsersTest):
    """A traced process gives up rights, or goes elsewhere: the trace goes on, and nothing is left when it ends, however."""

    def begin(self, prefix=(), engine="auto"):
        target = self.start(*prefix, program("confines"))
        tracer = subprocess.Popen([*prefix, KTRACE, "attach", "-p", str(target.pid), "-r", "do_work", "--max-events", "50",
                                   "--engine", engine], stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        self.addCleanup(tracer.communicate)
        self.addCleanup(tracer.kill)
        line = tracer.stderr.readline()
        if prefix and b"Permission denied" in line:
            self.skipTest("nobody may not run what was built here")
        self.assertIn(b"Attached", line)
        return target, tracer

    def change(self, target, order, possible):
        target.tell(order)
        error = int(target.truth(r"^\w+ (\d+)$")[1])
        if error and not possible:
            self.skipTest(f"{order} is not possible here")
        self.assertEqual(error, 0, order)

    def work(self, target, times):
        target.tell(f"work {times // 2}")
        target.truth(rf"^worked {times}$")

    def check(self, orders, prefix=(), possible=True):
        def detach(tracer):
            tracer.send_signal(signal.SIGINT)

        def kill_tracing(tracer):
            os.kill(children_of(tracer.pid)[0], signal.SIGKILL)

        for end in (None, detach, subprocess.Popen.kill, kill_tracing):
            with self.subTest(orders=orders, end=end):
                # Killed while it maps memory for jumps, ktrace leaves that mapping.
                target, tracer = self.begin(prefix, "trap" if end is kill_tracing else "auto")
                self.work(target, 20)
                for order in orders:
                    self.change(target, order, possible)
                self.work(target, 20 if end else 30)
                left = mappings_left(target.pid)
                if end:
                    end(tracer)
                out, err = tracer.communicate(timeout=LIMIT)
                wait_until_let_go(target.pid)
                if end in (None, detach):
                    self.assertEqual((tracer.returncode, out.count(b") returned ")), (0, 40 if end else 50), err)
                if end is kill_tracing and prefix and "undumpable" in orders:
                    self.assertIn(f"as root, by: ktrace repair -p {target.pid}".encode(), err)
                    self.work(target, 20)
                    self.assertEqual(ktrace("repair", "-p", target.pid).status, 0)
                elif end is kill_tracing:
                    self.assertIn(f", {left} mappings".encode(), err)
                self.work(target, 20)
                self.check_untouched(target)
                self.assertEqual(target.end(), 0)

    def test_of_dumpability(self):
        self.check(["undumpable"])

    def test_of_dumpability_without_privileges(self):
        """What ktrace has opened before stays open to it; its guardian comes too late, and says so."""
        self.become_nobody()
        self.check(["undumpable"], NOBODY)

    def test_of_what_may_be_read(self):
        """Libraries that it loads from then on are not seen: that is said, and the trace goes on."""
        self.become_nobody()
        target, tracer = self.begin(NOBODY)
        for order in ("undumpable", "load libm.so.6", "fork 5", "spawn 5"):
            target.tell(order)
            target.truth(r"^\w+ \d+$")
        added = subprocess.run([*NOBODY, KTRACE, "ctl", "-p", str(target.pid), "add", "-k", "main"],
                               stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
        self.assertEqual(added.returncode, 1, added)
        self.assertIn(b"it has made itself not dumpable", added.stderr)
        self.work(target, 50)
        out, err = tracer.communicate(timeout=LIMIT)
        self.assertIn(b"may not be read any more: it has made itself not dumpable", err)
        self.assertEqual((tracer.returncode, out.count(b") returned ")), (0, 50), err)
        self.work(target, 20)
        self.check_untouched(target)
        self.assertEqual(target.end(), 0)

    def test_of_the_user(self):
        self.become_nobody()
        self.check(["user 65534"])
        self.check(["user 65534", "undumpable"])

    def test_of_capabilities(self):
        self.check(["unprivileged"])

    def test_of_the_root(self):
        self.become_nobody()
        self.check([f"root {self.room()}"])

    def test_of_namespaces(self):
        self.become_nobody()
        self.check(["unshare"], possible=False)

    def test_of_namespaces_to_others(self):
        self.become_nobody()
        other = self.start("unshare", "--mount", "--ipc", "--uts", "sh", "-c",
                           f"mount -t tmpfs none {self.room()} && echo ready && exec cat")
        self.check([f"join {other.pid}"], possible=False)
        other.end()

    def test_of_the_user_namespace(self):
        for prefix in ((), NOBODY) if os.geteuid() == 0 else ((),):
            self.check(["user_namespace"], prefix, possible=False)
