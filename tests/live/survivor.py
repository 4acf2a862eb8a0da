"""The target that lives on whatever becomes of its tracer, and moments in its life that are chosen at random."""
import platform
import random

from live import LiveTest, debug_registers_trap, program, wait_until_let_go

# A watchpoint that nothing serves any more holds the threads that come to its variable on arm64, until repair.
WATCHES = platform.machine() == "x86_64" and debug_registers_trap()
# Entry, return, emulated, stepped, call and system-call probes, and a watchpoint.
PROBES = ("-r", "do_work", "-j", "leaf", "-k", "choose_branch", "-k", "flags_popf", "-k", "calls_direct", "-k",
          "calls_table", "-k", "ask_syscall", *(("-w", "noted") if WATCHES else ()), "--count")


class Survivor(LiveTest):
    def begin(self, *arguments, seed=1, under=()):
        """`under`: a command that starts the target."""
        self.random = random.Random(seed)
        self.target = self.start(*under, program("survivor"), *arguments)
        self.wait_random(100)

    def wait_random(self, most):
        """Until every thread of the target has gone on by that many rounds, all of them right."""
        self.target.tell(f"check {self.random.randrange(most)}")
        self.target.truth(r"^right \d+$")

    def check_end(self):
        """Nothing is left in it; it ends as it does untraced, with its signal actions and masks as it set them."""
        wait_until_let_go(self.target.pid)  # what was killed may be on its way out still
        self.check_untouched(self.target)
        self.assertEqual(self.target.end(), 0, self.target.lines.seen)
