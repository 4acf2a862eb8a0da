// apply: carries out a verdict, by one function a verdict. Nothing is decided here any more.
#pragma once

#include <memory>

#include "engine/hit/gather.h"
#include "engine/space/engine.h"
#include "engine/space/event_kind.h"
#include "os/tracee/stopped.h"

namespace ktrace::engine {

struct Event {
    using Kind = EventKind;
    Kind kind = Kind::none;
    Pid pid;
    Tid tid;
    Tid other;
    bool vfork = false;
    os::Stop stop;
    /// may_exec, exec, loader, ifunc, dispatched, unknown: the receiver resumes it (continue_task).
    /// Apart, since most events are none: a token is a kilobyte.
    std::unique_ptr<os::Stopped> stopped;
};

/// Carries the verdict out: the task is resumed, or goes up with an Event.
Event apply(Engine &engine, Process &process, Task &task, Verdict verdict, const Seen &seen, os::Stopped stopped);

/// A task has ended, or a stop says so: its state goes.
Event apply_end(Engine &engine, const os::Stop &stop);

/// The site's instruction is stepped over and the task is resumed: the end of a hit that has gone up.
void finish_hit(Engine &engine, Process &process, Task &task, Site &site, os::Stopped stopped);

/// A task has ended or was detached: its calls in flight are unreturned.
void end_calls(Engine &engine, Process &process, Task &task);

} // namespace ktrace::engine
