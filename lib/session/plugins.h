// plugins: the plugins of a trace: started once a process can be probed, asked to leave before the trace ends. The
// rooms below see them as trace::Plugins.
//
// Invariant: a plugin's probes are registered as any others are; at their hits its handlers run.
#pragma once

#include <memory>

#include "trace/trace.h"

namespace ktrace::session {

/// The plugins that the command names, not started yet; nullptr: it names none. `trace` outlives them.
std::shared_ptr<trace::Plugins> make_plugins(trace::Trace &trace);

} // namespace ktrace::session
