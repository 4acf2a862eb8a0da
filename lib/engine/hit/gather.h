// gather: reads the facts of a stop, before anything is decided and without any effect on the task: registers, siginfo,
// code and /proc are read, nothing is written.
#pragma once

#include <csignal>
#include <optional>

#include "engine/space/classify.h"
#include "engine/space/engine.h"
#include "os/tracee/stopped.h"

namespace ktrace::engine {

/// The facts of a stop, and the data that the verdict is applied with.
struct Seen {
    Facts facts;
    Site *site = nullptr;          // whose trap may have raised it
    VirtAddr trap_at;              // where a trap would be that has raised it
    unsigned fired = 0;            // debug registers, as bits
    std::optional<siginfo_t> sent; // a SIGTRAP that a process has sent, in whose place the task has stopped for a trap
};

/// Collects the facts of a task's stop, with as few requests as the usual case (a trap at a site) needs.
Seen gather(Engine &engine, Process &process, Task &task, os::Stopped &stopped);

} // namespace ktrace::engine
