// detach: leaves processes as they were: all bytes back and checked, every task out of the slots, our pages unmapped,
// signals kept, no call cut short that need not be.
#pragma once

#include "trace/trace.h"

namespace ktrace::tracees {

/// Detaches from all processes. What could not be put back is complained of. Tasks that sleep in the kernel stay traced
/// (by nothing but name) until the calling thread ends, which lets them go without waking them: until then what they
/// stop for is to be served (trace::serve_each, and serve_for_the_last_time). Calls in flight have ended as unreturned.
void detach_all(trace::Trace &trace);

/// Right before the end of the tracing thread, which lets all go: no task stands at a stop, or is on its way to a call
/// that is made again. For one that did, a signal at that moment would have another outcome than untraced.
void serve_for_the_last_time(trace::Trace &trace);

} // namespace ktrace::tracees
