// dispatch: one stop comes in, everything that follows from it is done, the task runs on. What is not about one task
// and its sites (new processes, exec, the end, a loader's news) goes up as an Event.
#pragma once

#include <memory>

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

/// Handles one stop.
Event dispatch(Engine &engine, const os::Stop &stop);

/// Lets a task go on in whatever it was doing, with the books on its stopped time kept.
void continue_task(Engine &engine, Task &task, os::Stopped stopped, int signal = 0);

/// The site's instruction is got over and the task goes on: what dispatch does at the end of a hit.
void finish_hit(Engine &engine, Process &process, Task &task, Site &site, os::Stopped stopped);

/// A task has ended or was let go: its calls in flight are unreturned.
void end_calls(Engine &engine, Process &process, Task &task);

} // namespace ktrace::engine
