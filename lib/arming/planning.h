// Planning: a plan of a process as it is now: the snapshot is taken, the plan made, its remarks noted and printed.
#pragma once

#include "arming/plan.h"

namespace ktrace::arming {

/// As plan(). The process was refreshed a moment ago.
Result<InstallPlan> make_plan(trace::Trace &trace, const engine::Process &process,
                              const std::vector<std::uint32_t> &probes, Missing missing);

/// As plan_locations().
Result<InstallPlan> make_plan(trace::Trace &trace, const engine::Process &process,
                              std::vector<PlannedLocation> locations);

} // namespace ktrace::arming
