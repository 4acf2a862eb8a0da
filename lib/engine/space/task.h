// Task: the state of one traced thread. It knows its process by id only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <csignal>

#include "arch/host.h"
#include "base/addr.h"
#include "base/ids.h"
#include "engine/space/clocks.h"
#include "engine/space/places.h"
#include "engine/space/task_restart.h"
#include "engine/space/task_signals.h"

namespace ktrace::engine {

struct Site;
struct Instance;

/// The way over an instruction that a task is on, between two stops.
enum class Over : std::uint8_t {
    none,
    stepping,   // the copy in the slot is being single-stepped
    to_syscall, // on its way from the slot to the entry of the system call
    in_syscall, // in it, and its exit stop is wanted (post handler)
};

/// A goroutine's stack, as it was before Go's runtime moved it.
struct StackMove {
    VirtAddr goroutine, low, high;
};

struct TaskStep {
    Over over = Over::none;
    Site *site = nullptr;          // over != none: the site; the site outlives it
    std::uint64_t old_scratch = 0; // stepping with a scratch register
    VirtAddr from;                 // where the task was last resumed by a single step
    bool steps_itself = false;     // stepping: the program steps itself, and has to get the end's signal, too
    Places post;                   // the probes of the site that wait for the end of the instruction
};

/// A hit that has been counted, but whose instruction has not run: when the task comes back to it in the same frame, it
/// is the same hit (engine/calls/repeated_hit.h).
struct TaskRepeat {
    VirtAddr at, sp; // at 0: there is none
    /// How many stops at its system calls the task is still to have, for the return from the signal's handler has not
    /// been seen.
    std::uint16_t follows = 0;
};

/// A jump of a function to its own first instruction, whose hit is still to come (engine/calls/jump_back.h).
struct JumpBack {
    VirtAddr to, sp; // to 0: there is none
};

/// The calls that the task is in (engine/calls).
struct TaskCalls {
    Instance *youngest = nullptr;        // in flight; the others are behind it
    std::uint32_t unwinds = 0;           // exceptions and longjmps so far
    bool enclosures_known = false;       // calls that enclose the task and began before ktrace attached are among them
    std::optional<StackMove> stack_move; // of a goroutine, which the task is in the middle of
    JumpBack jump_back;
};

/// The task's debug registers (engine/watch).
struct TaskWatches {
    std::uint32_t generation = 0;         // of watchpoints, which they are of; 0: not looked at yet
    std::vector<std::uint32_t> registers; // their watchpoints (Watchpoint::id), by register; empty: none
    unsigned executing = 0;               // of them those that fire at execution, as bits
    bool is_off = false;  // none is set: a single step is to lead over an instruction before which some have fired
    unsigned awaited = 0; // is_off: those that have not been reported yet
};

/// One traced thread: its ids, a struct a concern, and the rest.
struct Task {
    Tid tid;
    Pid pid;
    TaskStep step;
    TaskRepeat repeat;
    TaskSignals signals;
    TaskSigtrap sigtrap;
    SyscallRestart restart;
    TaskCalls calls;
    TaskWatches watches;
    TaskClock clock; // durations are measured by it

    std::uint64_t sequence = 0;   // records
    std::uint64_t verdict = 0;    // on its last stop: number in Engine::verdicts
    std::uint64_t last_stop = 0;  // by the count of stops
    std::uint64_t outside_at = 0; // when (by that count) it was last seen outside of all slots
    bool wants_registers = false; // its last hit has read them all: the next one's pc is read with them
    bool has_rung = false;        // its stop is at the agent's bell, and it is back at its site
    bool until_exec = false;      // stops at system calls, until it may be detached at an exec
};

} // namespace ktrace::engine
