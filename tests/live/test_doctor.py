"""The findings of `ktrace doctor`, against what the user may really do."""
import os
import shutil
import subprocess
import unittest

from live import KTRACE, LIMIT, LiveTest, debug_registers_trap, ktrace, program
from test_jumps import HAS_RUNS


def findings(out):
    """{what: word} of its lines."""
    lines = [line for line in out.splitlines() if not line.startswith(" ")]
    return {line[9:].split(":", 1)[0]: line[:9].strip() for line in lines}


class Doctor(LiveTest):
    def test_says_what_is_so(self):
        told = ktrace("doctor")
        self.assertEqual(told.status, 0, told)
        found = findings(told.out)
        self.assertEqual(found["ptrace"], "ok", told)
        self.assertEqual(found["writing into code"], "ok", told)
        self.assertEqual(found["watchpoints"] == "ok", debug_registers_trap(), told)
        self.assertEqual(found["jumps in place of traps"] == "ok", HAS_RUNS, told)
        target = self.start(program("calls"), 1, 1)
        tracer = self.attach(target, "-k", "do_work")
        self.assertEqual(tracer.stop().status, 0)
        self.assertIn(found["attaching to your processes"], ("ok", "limited"), told)
        tracer = self.attach(target, "-v", "-r", "do_work")
        target.tell()
        target.truth("do_work 1")
        timed = tracer.stop()
        self.assertEqual(found["durations on a busy machine"] == "ok", "records of context switches" in timed.err, timed)

    def test_scopes(self):
        """Yama's setting for a user without privileges; the test needs no Yama."""
        if os.geteuid() != 0 or not shutil.which("setpriv"):
            raise unittest.SkipTest("needs root, to become nobody")
        become = "exec setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all --no-new-privs"
        target = self.start("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", program("guarded"))
        for scope, word, fix, refused in (
                (1, "limited", "sudo sysctl kernel.yama.ptrace_scope=0", "ptrace_scope is 1"),
                (2, "no", "sudo ktrace", "ptrace_scope is 2; run ktrace as root"),
                (3, "no", "reboot", "ptrace_scope is 3, which forbids tracing until the next boot")):
            with self.subTest(scope=scope):
                folder = "/proc/sys/kernel"
                pretend = f"mount -t tmpfs none {folder} && mkdir {folder}/yama && echo {scope} >{folder}/yama/ptrace_scope"
                told = subprocess.run(["unshare", "--mount", "sh", "-c", f"{pretend} && {become} {KTRACE} doctor"],
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=LIMIT)
                if "denied" in told.stderr:
                    raise unittest.SkipTest("nothing may be mounted here")
                self.assertEqual(findings(told.stdout)["attaching to your processes"], word, told)
                self.assertIn(f"to change that: {fix}\n", told.stdout)
                command = f"{pretend} && {become} {KTRACE} attach -p {target.pid} -k do_work"
                tried = subprocess.run(["unshare", "--mount", "sh", "-c", command],
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=LIMIT)
                self.assertEqual(tried.returncode, 1, tried)
                self.assertIn(refused, tried.stderr)
        self.assertEqual(target.end(), 0)

    def test_root_without_rights(self):
        """As in a container: becoming root is no advice to root."""
        if os.geteuid() != 0 or not shutil.which("setpriv"):
            raise unittest.SkipTest("needs root, to give up a right")
        target = self.start(program("calls"), 1, 1)
        for arguments in (["doctor"], ["attach", "-p", str(target.pid), "-k", "do_work"]):
            done = subprocess.run(["setpriv", "--bounding-set=-sys_ptrace", KTRACE, *arguments], text=True, timeout=LIMIT,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            self.assertIn("CAP_SYS_PTRACE", done.stdout)
            self.assertIn("start the container with --cap-add SYS_PTRACE", done.stdout)
            self.assertNotIn("as root", done.stdout)
            self.assertNotIn("sudo ktrace", done.stdout)
        self.check_untouched(target)

    def test_without_rights(self):
        if os.geteuid() != 0 or not shutil.which("setpriv"):
            raise unittest.SkipTest("needs root, to become nobody")
        target = self.start(program("calls"), 1, 1)
        become = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all", "--no-new-privs"]
        done = subprocess.run([*become, KTRACE, "doctor"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=LIMIT,
                              text=True)
        if "Permission denied" in done.stderr:
            raise unittest.SkipTest("nobody may not run what was built here")
        self.assertIn("limited  processes of other users", done.stdout, done)
        refused = subprocess.run([*become, KTRACE, "attach", "-p", str(target.pid), "-k", "do_work"], text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=LIMIT)
        self.assertEqual(refused.returncode, 1, refused)
        self.assertIn("belongs to another user", refused.stderr)
