// What ktrace knows of one task's signals: its mask and action for SIGTRAP, which traps change (transparent/sigtrap),
// and what is kept from it while an instruction of its own is stepped (transparent/signals). Passive data.
#pragma once

#include <cstdint>
#include <optional>

#include <csignal>

#include "base/addr.h"
#include "os/tracee/syscall_user_dispatch.h"
#include "recovery/page.h"

namespace ktrace::engine {

/// For transparent/sigtrap.
struct TaskSigtrap {
    std::optional<std::uint64_t> blocked; // its mask, with SIGTRAP in it, when the task or its maker was seized
    std::uint8_t hits_until_look = 0;     // until its mask and the action are looked at again
    bool is_unseen = false;               // it has come by traps since
    std::uint32_t changes_seen = 0;       // of the process's action for SIGTRAP (Page::changes), at its last trap

    // It is in a function that may set the process's action for SIGTRAP: how many stops at its system calls it is still
    // to have, and what the one that it makes sets that to.
    std::uint8_t watches_action = 0;
    std::optional<ktrace_recovery_action> new_action;
};

/// For transparent/signals.
struct TaskSignals {
    std::optional<siginfo_t> held;           // came before an instruction that is stepped: delivered behind it
    std::optional<std::uint64_t> saved_mask; // signals are blocked for the moment: the task's own mask
    bool blocks_next = false;                // its next interrupt's stop is where they are blocked
    bool traps_by_flag = false;              // the step's trap flag stands in the registers (block_at_interrupt)
    std::optional<std::uint64_t> own_tid;    // its number in its own pid namespace, once asked for
    std::optional<siginfo_t> sent_again;     // a SIGTRAP that was sent again under our name: delivered as it was
    std::optional<os::SyscallUserDispatch> saved_dispatch; // a ktrace that was killed has left its calls' dispatch off
    bool is_retold = false; // it is about to get a signal in the place of a trap's (points.h)
    struct InLedger {
        bool mask = false, signal = false;
        bool operator==(const InLedger &) const = default;
    } in_ledger; // what the guardian knows of
};

} // namespace ktrace::engine
