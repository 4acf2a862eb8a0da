// overhead: how much of their time probes take from the target's threads: --max-overhead switches the costliest
// locations off, without it a notice says so.
#pragma once

#include "trace/trace.h"

namespace ktrace::session {

/// Measuring begins.
void start_overhead(trace::Trace &trace);

/// At the end of each window of a second: switches off the locations that cost a thread too much, and reports it;
/// without --max-overhead gives one notice where it is more than half of a thread's time. For the loop, between stops.
void watch_overhead(trace::Trace &trace);

} // namespace ktrace::session
