// ifunc: probes of indirect functions (STT_GNU_IFUNC) that the process has not resolved yet. Their resolvers are
// watched: a resolver returns the implementation, which gets its attachment before the process can call it.
#pragma once

#include "engine/hit/dispatch.h"
#include "trace/trace.h"

namespace ktrace::arming {

/// A resolver is called: its return address is watched, too. A resolver has returned: its result is armed.
void on_ifunc(trace::Trace &trace, engine::Event event);

} // namespace ktrace::arming
