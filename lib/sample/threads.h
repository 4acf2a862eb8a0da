// threads: the stacks of threads, of one that waits without a stop, of one that runs from what was copied while it
// stood still.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "arch/host.h"
#include "base/memory.h"
#include "engine/space/engine.h"
#include "os/proc/procfs.h"

namespace ktrace::sample {

/// Addresses, innermost first, as records have them: behind the call, or with program::interrupted where execution
/// was interrupted.
using Stack = std::vector<std::uint64_t>;

/// A thread that waits, as it was read.
struct Waiting {
    os::TaskPlace place;
    Stack stack;
    bool is_complete = true; // false: the stack may go on, where its registers would be known
};

/// Reads the stack of a thread that waits. Nothing: it runs, has run meanwhile, or may not be looked at.
std::optional<Waiting> read_waiting(engine::Engine &engine, engine::Process &process, Tid tid);

/// A thread at a stop: its registers and the upper part of its stack, for when it runs again.
struct Snapshot {
    arch::Host::Registers registers{};
    VirtAddr stack_at; // of the first byte
    std::vector<std::byte> stack;
    std::uint64_t copied_ns = 0;            // CLOCK_MONOTONIC
    std::optional<os::TaskPlace> rested_in; // it did not run: it was asleep in this call, or stopped by job control
};

/// Takes a snapshot of memory and registers.
Snapshot copy_thread(engine::Process &process, const arch::Host::Registers &registers);

/// The stack of a thread that was stopped. The process may run: what was not copied is read as it is now.
Stack unwind(engine::Engine &engine, engine::Process &process, const Snapshot &snapshot);

} // namespace ktrace::sample
