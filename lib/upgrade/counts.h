// Counts: what jumps have counted, for the user's tables.
#pragma once

#include "trace/trace.h"

namespace ktrace::upgrade {

/// Adds the hits that jumps have counted to their locations.
void take_counts(trace::Trace &trace);

} // namespace ktrace::upgrade
