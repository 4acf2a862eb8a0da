// plugins: the plugins of a trace: started once a process can be probed, asked to leave before the trace ends.
//
// Invariant: a plugin's probes are registered as any others are; what they run is its handlers.
#pragma once

#include "base/result.h"
#include "os/tracee/stopped.h"
#include "trace/trace.h"

namespace ktrace::session {

/// Loads all plugins of the command and runs their module_init on behalf of this process, the first time that it is
/// called. `stopped`: a task of it that is at a stop, or nullptr. Errors: a plugin that cannot be loaded or refuses.
Status start_plugins(trace::Trace &trace, engine::Process &process, os::Stopped *stopped);

/// Tells plugins where their probes are now: libraries, or with exec all of them, have come or gone.
void tell_places(trace::Trace &trace);

/// Runs their module_exit, the last one first.
void stop_plugins(trace::Trace &trace);

} // namespace ktrace::session
