// overhead: --max-overhead: a location that costs a thread more than that share of its time is switched off.
#pragma once

#include "trace/trace.h"

namespace ktrace::session {

/// Measuring begins, where it was asked for.
void start_overhead(trace::Trace &trace);

/// At the end of each window of a second: switches off the locations that cost too much, and reports it. For the loop,
/// between stops.
void limit_overhead(trace::Trace &trace);

} // namespace ktrace::session
