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
#include "engine/transparent/restart/state.h"
#include "engine/transparent/signals/earlier.h"
#include "os/tracee/syscall_user_dispatch.h"
#include "recovery/page.h"

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

/// A mask with SIGTRAP in it.
struct Blocks {
    enum class How : std::uint8_t {
        at_seize, // as it was when the task or its maker was seized
        in_sight, // as they have set it since: it changes by nothing else but handlers
        proved,   // at one trap (reset.h), which says nothing of the next one
    };
    std::uint64_t mask = 0;
    How how = How::at_seize;
};

/// A call that is about to set a task's mask.
struct MaskCall {
    VirtAddr at;                 // the trap that has shown it
    std::optional<Blocks> after; // of the mask that it sets
    VirtAddr not_below;          // a handler came before the call: not with a lower stack pointer
};

struct Task {
    Tid tid;
    Pid pid;
    Over over = Over::none;
    Site *site = nullptr;                    // over != none: the site; the site outlives it
    std::uint64_t old_scratch = 0;           // stepping with a scratch register
    VirtAddr stepped_from;                   // where it was let go by a single step last
    bool steps_itself = false;               // stepping: the program steps itself, and is to be told of the end, too
    Places post;                             // the probes of the site that wait for the end of the instruction
    std::optional<siginfo_t> held;           // a signal that came in the middle of a step: delivered when it is done
    std::vector<siginfo_t> held_more;        // came behind it in the same step
    std::vector<siginfo_t> stood_in_for;     // signals that were sent again under our name: told as they were
    Earlier earlier;                         // real-time signals that were sent again
    std::optional<std::uint64_t> saved_mask; // signals are blocked for the moment: the task's own mask
    std::optional<os::SyscallUserDispatch>
        saved_dispatch;       // its calls are not sent back to it for the moment: its own wish
    bool blocks_next = false; // its next interrupt's stop is where its signals are blocked
    bool owed_told = false;   // the guardian knows of these

    // The site's hit has been counted, but its instruction has not run: when the task comes back to it in the same
    // frame, it is the same hit (retry.h). follows: how many stops at its system calls it is still to have, for the
    // return from the signal's handler has not been seen.
    VirtAddr retry_at, retry_sp;
    std::uint16_t follows = 0;

    SyscallRestart restart;

    // It is in a function that may set the process's action for SIGTRAP: how many stops at its system calls it is still
    // to have, and what the one that it makes sets that to.
    std::uint8_t watches_action = 0;
    std::optional<ktrace_recovery_action> new_action;

    bool wants_registers = false;      // its last hit has read them all: the next one's pc is read with them
    std::uint8_t hits_until_mask = 0;  // until its signal mask is looked at again
    bool mask_unseen = false;          // it has come by traps since
    std::optional<Blocks> blocks;      // of its mask, where SIGTRAP is in it
    std::optional<MaskCall> mask_call; // since its last trap
    std::uint8_t first_looks = 32;     // how many of its traps are looked at still before there is a choice (reset.h)
    std::uint64_t looked_ns = 0;       // when one was, last
    std::uint32_t changes_seen = 0;    // of the process's action for SIGTRAP (Page::changes), at its last trap
    bool enters_handler = false;       // its next stop is at the first instruction of the program's handler for SIGTRAP
    VirtAddr handler_sp;               // it runs that handler with SIGTRAP open, from there on downwards (restore.h)
    std::uint64_t sequence = 0;        // records
    TaskClock clock;                   // what durations are measured by
    std::uint64_t last_stop = 0;       // by the world's count of stops
    std::uint64_t outside_at = 0;      // when (by that count) it was last seen outside of all slots
    std::uint32_t unwinds = 0;         // exceptions and longjmps so far
    Instance *calls = nullptr;         // in flight, youngest first
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
