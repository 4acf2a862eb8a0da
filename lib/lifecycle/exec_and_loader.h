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

/// The time of --duration begins, if it has not: unless a process is there that waits so.
void begin_time(trace::Trace &trace);

/// Tells `Attached N probes from S specs to PID (comm), M threads`, and where they are if more is to be told.
void tell_attached(trace::Trace &trace, const engine::Process &process);

/// Tells of each process that is traced that it is attached to.
void announce_all(trace::Trace &trace);

} // namespace ktrace::lifecycle
