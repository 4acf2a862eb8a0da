// evaluation: one run of a probe's program at a stop: the view of the hit, its record, its changes to the task.
#pragma once

#include <cstdint>
#include <span>

#include "engine/space/engine.h"
#include "os/tracee/stopped.h"
#include "program/run/program.h"

namespace ktrace::engine {

/// How injections change the way of the thread.
struct Diversion {
    bool moved = false; // the pc was set
    bool skips = false; // the function is left at once
};

/// Runs the program of `armed` for a moment of a hit at `pc` (the program's own address). A record goes into the queue.
/// `capture`: room for what the moment keeps for a later one, `captured` bytes of it are used; `earlier`: the bytes
/// that an earlier moment kept; `duration`: of the call that ends, else nullptr. The changes are left in
/// Engine::changes, for `inject`.
program::Outcome run_program(Engine &engine, Process &process, Task &task, const Attachment &attachment,
                             program::Moment moment, VirtAddr pc, os::Stopped &stopped, std::span<std::byte> capture,
                             std::size_t &captured, std::span<const std::byte> earlier,
                             const program::Duration *duration);

/// Makes the changes that the program run last has asked for. True: there were some.
bool inject(Engine &engine, Process &process, os::Stopped &stopped, Diversion &diversion);

/// Counts a hit by its outcome.
void count(program::Counters &counters, program::Outcome outcome);

} // namespace ktrace::engine
