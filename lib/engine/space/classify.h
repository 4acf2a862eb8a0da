// classify: the meaning of a stop, as a pure function of facts. Its rows are tested by a table; a new race becomes a
// new row.
#pragma once

#include <cstdint>

#include "arch/isa.h"
#include "engine/space/task.h"
#include "os/tracee/ptrace.h"
#include "os/tracee/wait.h"

namespace ktrace::engine {

/// All that the decision depends on (engine/hit/gather.h).
struct Facts {
    os::Stop::Kind kind = os::Stop::Kind::signal;
    int signal = 0;
    bool from_kernel = false; // signal: the kernel raised it for something the task did (si_code > 0)
    Over over = Over::none;
    bool site = false;     // an armed site is where the trap would be
    bool was_ours = false; // a trap of ktrace's was there once, and the program has none there now
    arch::SlotPosition slot = arch::SlotPosition::elsewhere; // of the pc
    bool repeats = false;       // the instruction in that slot may stop half-way with the pc on it
    bool watched = false;       // debug registers of ktrace's have fired
    bool until_exec = false;    // the task is to stop at system calls
    bool follows = false;       // so it is, until it returns from a signal's handler
    bool leftover = false;      // a step or hardware breakpoint of a killed ktrace
    bool controls_job = false;  // SIGSTOP, SIGCONT or one of the terminal's, without a handler
    bool behind = false;        // no trap instruction's, but a step's or breakpoint's: the pc is where the program is
    bool own_step = false;      // a step's that the program makes itself
    bool rang = false;          // the agent's bell, or a fault of its own: the task is back at its site
    bool before_access = false; // watched: and the access is still to come
    // of a hit:
    bool silent = false;     // the process is only kept clean
    bool repeated = false;   // it was counted before (engine/calls/repeated_hit.h)
    bool dispatched = false; // of a system call whose copy would raise SIGSYS (syscall user dispatch)
};

enum class Verdict : std::uint8_t {
    hit,            // run the site's probes, then step over its instruction
    hit_again,      // only step over it: it was counted, or is not to be
    hit_dispatched, // a site that must not be: its probe is taken out
    watched,        // data that is watched was touched: run its probes, nothing else has happened
    before_access,  // it is about to be: the instruction is stepped first, without debug registers
    rang,           // back at its site, it goes on
    late_trap,      // hit before the site was disarmed, seen after: back to the address
    deliver,        // the task's own signal, at an address of its own
    deliver_behind, // the same, with the pc in a slot behind the copy: first to behind the site
    deliver_fault,  // a fault of the copy in a slot: delivered at the site
    deliver_retry,  // nothing was done yet or a rep is half done: delivered at the site, which is not counted again
    hold,           // keep the signal, step the copy to its end first
    step_done,
    step_fault, // the stepped copy has faulted
    syscall_entered,
    syscall_left,
    own_syscall,     // one of the task's own, at which it was to stop
    handler_syscall, // the same, perhaps the return from the handler that is followed
    group_stop,
    go_on,       // nothing to do: resume in whatever it was doing
    new_task,    // clone event
    new_process, // fork, vfork events
    exec,
    ended,
    unknown, // a task that is not known yet: a child whose stop came before its parent's event
};

Verdict classify(const Facts &facts);

/// How a task is resumed in the step or call that it is in the middle of. `steps`: it is to make a single step.
/// `at_calls`: it is to stop at its system calls. `trap_pending`: at an interrupt's or a group's stop a step's end is
/// pending; to step once more then would leave a stepped popf its trap flag.
os::Resume way_on(bool steps, Over over, bool at_calls, bool trap_pending);

/// Signals that the kernel raises for an instruction, when it raises them.
bool is_synchronous(int signal);

} // namespace ktrace::engine
