// start: a program's first moments: at exec nothing of it is known but its file; its probes are armed once the loader
// has mapped its libraries, before their constructors run.
#pragma once

#include "engine/hit/dispatch.h"
#include "trace/trace.h"

namespace ktrace::lifecycle {

/// A process has become another program (exec event); also the start of `run`.
void on_exec(trace::Trace &trace, engine::Event event);

/// The loader's list of modules has changed: libraries were loaded, or are gone.
void on_loader(trace::Trace &trace, engine::Event event);

/// True where the loader has mapped all that the process asks for now: RT_CONSISTENT in its r_debug (System V ABI,
/// <link.h>), or a process without such a loader. False at a program's start, and in the middle of a dlopen.
bool modules_complete(engine::Process &process);

/// In the middle of a dlclose (RT_DELETE): what is mapped still may be gone, or other memory, at any moment.
bool is_unloading(engine::Process &process);

/// True where a process is known to be so, and its loader tells when it is not.
bool anyone_unloads(const trace::Trace &trace);

/// True where a process is still without its libraries and waits for them with all that is to be armed.
bool anyone_waits_for_loader(const trace::Trace &trace);

/// The time of --duration begins, if it has not: unless a process is there that waits so.
void begin_time(trace::Trace &trace);

/// Tells `Attached N probes from S specs to PID (comm), M threads`, and where they are if more is to be told.
void tell_attached(trace::Trace &trace, const engine::Process &process);

/// Tells of each process that is traced that it is attached to.
void announce_all(trace::Trace &trace);

} // namespace ktrace::lifecycle
