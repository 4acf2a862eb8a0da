// exec and the loader: at exec only a program's file is known. Its probes are armed once the loader has mapped its
// libraries, before their constructors run.
#pragma once

#include "engine/hit/dispatch.h"
#include "trace/trace.h"

namespace ktrace::lifecycle {

/// A process has become another program (exec event); also at the start of `run`.
void on_exec(trace::Trace &trace, engine::Event event);

/// The loader's list of modules has changed: libraries were loaded, or are gone.
void on_loader(trace::Trace &trace, engine::Event event);

/// The time of --duration begins, unless it has begun, or a process still waits for its loader.
void begin_time(trace::Trace &trace);

/// Prints `Attached N probes from S specs to PID (comm), M threads`, and with -v where they are.
void tell_attached(trace::Trace &trace, const engine::Process &process);

/// Prints it of each traced process.
void announce_all(trace::Trace &trace);

} // namespace ktrace::lifecycle
