// ifunc: probes of indirect functions (STT_GNU_IFUNC) that the process has not resolved yet. Their resolvers are
// watched: what one returns is the implementation, and gets its attachment before the process can call it.
#pragma once

#include "engine/hit/dispatch.h"
#include "trace/trace.h"

namespace ktrace::arming {

/// A resolver is called: the place that it returns to is watched too. Or one has returned: its result is armed.
void on_ifunc(trace::Trace &trace, engine::Event event);

} // namespace ktrace::arming
