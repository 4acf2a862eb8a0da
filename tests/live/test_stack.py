"""ktrace stack: where every thread is, without harm to any; the same frames that gdb finds."""
import json
import os
import re
import signal
import subprocess
import unittest

from live import KTRACE, LIMIT, LiveTest, ktrace, program, state_of, told_of, until, wait_until_let_go
from workshop import require

# The frames of each thread by number of the thread: their addresses, without those of inlined functions.
GDB = r"""
import gdb, json
for setting in ("pagination off", "backtrace past-main on", "backtrace past-entry on", "debuginfod enabled off"):
    gdb.execute("set " + setting)
stacks = {}
for thread in gdb.selected_inferior().threads():
    thread.switch()
    frame, pcs = gdb.newest_frame(), []
    while frame is not None:
        if frame.type() in (gdb.NORMAL_FRAME, gdb.SIGTRAMP_FRAME):
            pcs.append(frame.pc())
        frame = frame.older()
    stacks[thread.ptid[1]] = pcs
print("STACKS " + json.dumps(stacks))
"""


def gdb_stacks(pid):
    done = subprocess.run(["gdb", "-nx", "-batch", "-p", str(pid), "-ex", "python exec(" + repr(GDB) + ")"],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, text=True,
                          timeout=LIMIT)
    found = re.search(r"^STACKS (.*)$", done.stdout, re.MULTILINE)
    return {int(tid): pcs for tid, pcs in json.loads(found[1]).items()}


def stacks_of(trace):
    return {each["tid"]: [int(f["addr"], 16) for f in each["stack"] if not f["inlined"]] for each in trace.objects}


def threads_of(trace):
    return {each["comm"]: each for each in trace.objects}


def symbols_of(thread):
    return [frame.get("symbol") for frame in thread["stack"]]


class Stack(LiveTest):
    def looks(self):
        target = self.start(program("looks"))
        until(lambda: all(state_of(f"/proc/{target.pid}/task/{tid}") == "S" for tid in self.waiting(target)), "they sleep")
        return target

    @staticmethod
    def waiting(target):
        tids = os.listdir(f"/proc/{target.pid}/task")
        return [tid for tid in tids if told_of(f"/proc/{tid}", "comm") != "runner\n"]

    def check_undisturbed(self, target):
        wait_until_let_go(target.pid)
        target.tell()
        self.assertEqual(target.truth(r"interrupted (\d+)")[1], "0")

    def test_every_thread(self):
        target = self.looks()
        seen = ktrace("stack", "-p", target.pid, "--format", "json")
        self.assertEqual(seen.status, 0, seen)
        self.assertIn(f"{target.pid} (looks): 5 threads, 2 were stopped for a moment", seen.err)
        threads = threads_of(seen)
        self.assertEqual(sorted(threads), ["looks", "register", "runner", "twin-1", "twin-2"])
        self.assertIn("run", symbols_of(threads["runner"]))
        self.assertEqual(threads["runner"]["state"], "R")
        self.assertNotIn("waited_ns", threads["runner"])
        self.assertNotIn("reason", threads["runner"])
        by_register = symbols_of(threads["register"])
        self.assertEqual(by_register[:3], ["syscall", "wait_by_register", "by_register"])
        self.assertEqual((threads["register"]["syscall"], threads["register"]["args"][2:4]), ("epoll_pwait", [1, -1]))
        self.assertIn("wait_at", symbols_of(threads["twin-1"]))
        self.assertEqual(threads["twin-1"]["syscall"], "futex")
        self.assertEqual(threads["twin-1"]["stack"], threads["twin-2"]["stack"])
        self.assertEqual((threads["looks"]["syscall"], threads["looks"]["args"][0]), ("read", 0))
        self.assertIn("main", symbols_of(threads["looks"]))
        self.check_undisturbed(target)

    def test_equal_stacks_stand_once(self):
        target = self.looks()
        seen = ktrace("stack", "-p", target.pid)
        lines = seen.out.splitlines()
        twins = [i for i, line in enumerate(lines) if re.match(r"\d+ twin-[12] S .*futex\(0x", line)]
        self.assertEqual(twins[1], twins[0] + 1, seen)
        self.assertRegex(lines[twins[1] + 1], r"^    #0  ")
        self.assertEqual(sum("wait_at+0x" in line for line in lines), 1)
        self.assertTrue(any(re.match(r"\d+ runner R$", line) for line in lines), seen)

    def test_beside_gdb(self):
        require("gdb")
        target = self.looks()
        for _ in range(4):  # stopped moments
            os.kill(target.pid, signal.SIGSTOP)
            until(lambda: all(state_of(f"/proc/{target.pid}/task/{tid}") == "T"
                              for tid in os.listdir(f"/proc/{target.pid}/task")), "it is stopped")
            seen = ktrace("stack", "-p", target.pid, "--format", "json")
            wait_until_let_go(target.pid)
            known = gdb_stacks(target.pid)
            for tid, stack in stacks_of(seen).items():
                self.assertEqual([hex(pc) for pc in stack], [hex(pc) for pc in known[tid]])
            wait_until_let_go(target.pid)
            os.kill(target.pid, signal.SIGCONT)

    def test_a_process_of_another_tracer(self):
        target = self.looks()
        tracer = self.attach(target, "-k", "main")
        seen = ktrace("stack", "-p", target.pid, "--format", "json")
        self.assertEqual(seen.status, 0, seen)
        self.assertIn(f"is traced already, by ktrace ({tracer.pid}): only those of its threads that wait", seen.err)
        threads = threads_of(seen)
        self.assertEqual(threads["runner"]["reason"], "it runs, and another tracer has it")
        self.assertNotIn("stack", threads["runner"])
        self.assertEqual(threads["register"]["reason"], "the rest needs a stop, and another tracer has it")
        # On arm64 the caller of `syscall` is in a register, which /proc does not show.
        known = ["syscall"] if os.uname().machine == "aarch64" else ["syscall", "wait_by_register"]
        self.assertEqual(symbols_of(threads["register"])[:2], known)
        self.assertIn("main", symbols_of(threads["looks"]))
        tracer.stop()

    def test_a_call_that_would_be_cut_short(self):
        target = self.start("python3", "-uc", "import os; r, w = os.pipe(); print('ready'); print(os.write(w, bytes(1 << 20)))")
        until(lambda: state_of(f"/proc/{target.pid}") == "S", "it sleeps")
        seen = ktrace("stack", "-p", target.pid, "--format", "json")
        self.assertEqual(seen.status, 0, seen)
        self.assertEqual(seen.objects[0]["syscall"], "write")
        self.assertEqual(seen.objects[0]["args"][2], 1 << 20)
        self.assertEqual(state_of(f"/proc/{target.pid}"), "S")  # and has not returned with a part

    def test_a_process_that_may_not_be_traced(self):
        if os.geteuid() != 0:
            self.skipTest("needs root, to become nobody")
        target = self.looks()
        done = subprocess.run(["setpriv", "--reuid", "65534", "--clear-groups", KTRACE, "stack", "-p", str(target.pid)],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=LIMIT)
        if done.returncode == 126 or "setpriv" in done.stderr:
            self.skipTest("nobody may not run what was built here")
        self.assertEqual(done.returncode, 1, done)
        self.assertIn("may not be traced: it belongs to another user (uid 0); run ktrace as that user or as root", done.stderr)
        self.assertRegex(done.stdout, rf"(?m)^{target.pid} looks S\b")
        self.assertNotIn("#0", done.stdout)

    def test_attach_with_a_stack_alone_names_it(self):
        target = self.looks()
        seen = ktrace("attach", "-p", target.pid, "--stack")
        self.assertEqual(seen.status, 2)
        self.assertEqual(seen.err.strip(), "ktrace: there is nothing to probe: --stack is of a probe's events; "
                                           f"where the threads are now: ktrace stack -p {target.pid}")


if __name__ == "__main__":
    unittest.main()
