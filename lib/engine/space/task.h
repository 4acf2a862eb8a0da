// Task: what ktrace knows of one traced thread. It knows its process by id only.
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

/// What a task is in the middle of, between two stops.
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

struct Task {
    Tid tid;
    Pid pid;
    Over over = Over::none;
    Site *site = nullptr;          // over != none: the site; the site outlives it
    std::uint64_t old_scratch = 0; // stepping with a scratch register
    VirtAddr stepped_from;         // where it was let go by a single step last
    bool steps_itself = false;     // stepping: the program steps itself, and is to be told of the end, too
    Places post;                   // the probes of the site that wait for the end of the instruction
    TaskSignals signals;           // kept from it meanwhile
    TaskSigtrap sigtrap;

    // The site's hit has been counted, but its instruction has not run: when the task comes back to it in the same
    // frame, it is the same hit (retry.h). follows: how many stops at its system calls it is still to have, for the
    // return from the signal's handler has not been seen.
    VirtAddr retry_at, retry_sp;
    std::uint16_t follows = 0;

    SyscallRestart restart;

    bool wants_registers = false; // its last hit has read them all: the next one's pc is read with them
    std::uint64_t sequence = 0;   // records
    TaskClock clock;              // what durations are measured by
    std::uint64_t verdict = 0;    // on its last stop: number in Engine::verdicts
    std::uint64_t last_stop = 0;  // by the world's count of stops
    std::uint64_t outside_at = 0; // when (by that count) it was last seen outside of all slots
    std::uint32_t unwinds = 0;    // exceptions and longjmps so far
    Instance *calls = nullptr;    // in flight, youngest first
    std::uint32_t watched_as = 0; // its debug registers are of this generation of watchpoints; 0: not looked at yet
    std::optional<StackMove> stack_move; // of a goroutine, which the task is in the middle of
    std::vector<std::uint32_t> watching; // what its debug registers watch (Watchpoint::id), by register; empty: nothing
    bool enclosures_known = false;       // calls that enclose it and began before ktrace came are among them
    bool stopped_by_group = false;       // in a group stop (PTRACE_LISTEN)
    bool until_exec = false;             // stops at system calls, until it may be let go at an exec
    bool announced = false;              // its first stop was seen
    bool in_session = true;              // false: it was let go, or belongs to a process that is only kept clean
};

} // namespace ktrace::engine
