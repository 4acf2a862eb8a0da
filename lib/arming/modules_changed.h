// Changed modules: the modules that a process has loaded, now and before. Everything in a library that it has unloaded
// (dlclose) is forgotten; it is armed anew when the library is loaded again, at whatever address.
#pragma once

#include "base/result.h"
#include "trace/trace.h"

namespace ktrace::arming {

/// Brings the list of the process's modules up to date. Attachments and sites in a module that is not loaded any more
/// are forgotten: its memory is not touched. Returns the modules that were not there before. Errors: gone.
Result<std::vector<target::LoadedModule>> refresh_modules(trace::Trace &trace, engine::Process &process);

} // namespace ktrace::arming
