// start: a program's first moments: at exec nothing of it is known but its file; its probes are armed once the loader
// has mapped its libraries, before their constructors run.
#pragma once

#include "session/state.h"
#include "trap/dispatch.h"

namespace ktrace::session {

/// A process has become another program (exec event); also the start of `run`.
void on_exec(State &state, trap::Event event);

/// The loader's list of modules has changed: libraries were loaded, or are gone.
void on_loader(State &state, trap::Event event);

/// True where the loader has mapped all that the process asks for now: RT_CONSISTENT in its r_debug (System V ABI,
/// <link.h>), or a process without such a loader. False at a program's start, and in the middle of a dlopen.
bool modules_complete(trap::Traced &traced);

/// In the middle of a dlclose (RT_DELETE): what is mapped still may be gone, or other memory, at any moment.
bool is_unloading(trap::Traced &traced);

/// True where a process is known to be so, and its loader tells when it is not.
bool anyone_unloads(const State &state);

/// True where a process is still without its libraries and waits for them with all that is to be armed.
bool anyone_waits_for_loader(const State &state);

/// The time of --duration begins, if it has not: unless a process is there that waits so.
void begin_time(State &state);

/// Tells `Attached N probes from S specs to PID (comm), M threads`, and where they are if more is to be told.
void tell_attached(State &state, const trap::Traced &traced);

/// Tells of each process that is traced that it is attached to.
void announce_all(State &state);

} // namespace ktrace::session
