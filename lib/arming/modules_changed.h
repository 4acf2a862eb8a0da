// unload: what a process has loaded, now and before. Of libraries that it has let go of (dlclose) everything is
// forgotten; it is armed again when they are loaded again, wherever that is.
#pragma once

#include "base/result.h"
#include "trace/trace.h"

namespace ktrace::arming {

/// Brings the list of the process's modules up to date. What was armed in one that is not loaded any more is forgotten:
/// its memory is not touched. Returns those that were not there before. Errors: gone.
Result<std::vector<target::LoadedModule>> refresh_modules(trace::Trace &trace, engine::Process &process);

} // namespace ktrace::arming
