// Agent costs: measures, on the machine at hand, what the agent's hits add to a duration.
#pragma once

#include "engine/space/clocks.h"

namespace ktrace::trace {

/// Calls empty functions in ktrace itself, through the very stubs, entry and agent that targets get: the time that they
/// seem to take is the agent's. Takes some milliseconds. `ns_per_tick`: of ProcessorClock. Where it cannot be measured:
/// not known.
engine::AgentCosts measure_agent_costs(std::uint64_t ns_per_tick);

} // namespace ktrace::trace
