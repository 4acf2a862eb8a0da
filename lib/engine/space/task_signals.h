// The state of one task's signals: its mask and action for SIGTRAP, which traps change (transparent/sigtrap), and the
// signals and mask that are kept from it during a step (transparent/signals). Passive data.
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

    // The task is in a function that may set the process's action for SIGTRAP: the number of stops at system calls that
    // are still to come, and the action that the call sets.
    std::uint8_t watches_action = 0;
    std::optional<ktrace_recovery_action> new_action;
};

/// For transparent/signals.
struct TaskSignals {
    std::optional<siginfo_t> held;           // came before an instruction that is stepped: delivered after it
    std::optional<std::uint64_t> saved_mask; // signals are blocked for the moment: the task's own mask
    bool blocks_next = false;                // they are blocked at the stop of its next interrupt
    bool traps_by_flag = false;              // the step's trap flag stands in the registers (block_at_interrupt)
    std::optional<std::uint64_t> own_tid;    // its number in its own pid namespace, once asked for
    std::optional<siginfo_t> sent_again;     // a SIGTRAP that was sent again in ktrace's name: delivered as it was
    std::optional<os::SyscallUserDispatch> saved_dispatch; // a killed ktrace has left its dispatch off
    bool is_retold = false; // it is about to get a signal in the place of a trap's (points.h)
    struct InLedger {
        std::optional<std::uint64_t> mask;
        int signal = 0; // 0: none
        bool operator==(const InLedger &) const = default;
    } in_ledger; // the parts that are in the ledger
};

} // namespace ktrace::engine
