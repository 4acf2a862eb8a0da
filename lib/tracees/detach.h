// detach: leaves processes as they were: all bytes back and checked, every task out of the slots, ktrace's pages
// unmapped, signals kept, no call cut short without need.
#pragma once

#include "trace/trace.h"

namespace ktrace::tracees {

/// Detaches from all processes. Bytes that could not be put back are complained of. Tasks that sleep in the kernel stay
/// traced, by name only, until the calling thread ends, which detaches from them without waking them: until then their
/// stops have to be served (trace::serve_each, and serve_for_the_last_time). Calls in flight have ended as unreturned.
void detach_all(trace::Trace &trace);

/// Right before the end of the tracing thread, which detaches from all: after it no task stands at a stop, or is on its
/// way to a restarted call. For one that did, a signal at that moment would have another outcome than untraced.
void serve_for_the_last_time(trace::Trace &trace);

} // namespace ktrace::tracees
