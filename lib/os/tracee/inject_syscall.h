// Remote: makes a stopped task run one system call on our behalf and puts everything back as it was.
//
// Invariants: the task runs with all signals but the synchronous ones blocked meanwhile, so that no handler of its own
// runs in between; the `syscall` instruction used is one that the process has (its vdso's), so that no text is written;
// the registers, the signal mask and a system call to be restarted are as before.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "base/addr.h"
#include "base/result.h"
#include "os/tracee/stopped.h"

namespace ktrace::os {

/// How the call is made.
enum class Through : std::uint8_t {
    steps, // a step ends with a SIGTRAP, which the kernel does not let a process ignore
    stops, // of the call itself
};

/// Runs system call `number` in the stopped task. `instruction`: the address of a syscall instruction in the target.
/// Returns what the kernel answered (-errno as a negative value). Errors: gone; refused where the task was killed or
/// stopped for another reason in the middle. The task is stopped as before afterwards, its registers restored.
Result<std::int64_t> remote_syscall(Waiter &waiter, Stopped &stopped, VirtAddr instruction, std::uint64_t number,
                                    std::initializer_list<std::uint64_t> arguments, Through through = Through::steps);

} // namespace ktrace::os
