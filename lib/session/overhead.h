// overhead: --max-overhead: a location that costs a thread more than that share of its time is switched off.
#pragma once

#include "session/state.h"

namespace ktrace::session {

/// Measuring begins, where it was asked for.
void start_overhead(State &state);

/// At the end of each window of a second: switches off what costs too much, and says so. For the loop, between stops.
void limit_overhead(State &state);

} // namespace ktrace::session
