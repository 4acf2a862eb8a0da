// Counts: what jumps have counted, and what the agent has left, for the user.
#pragma once

#include "trace/trace.h"

namespace ktrace::upgrade {

/// Adds the hits that jumps have counted, and those of the agent's records, to their locations.
void take_counts(trace::Trace &trace);

} // namespace ktrace::upgrade
