// Jumps back: internal breakpoints at the jumps of probed functions to their own first instruction (jump_back.h).
#pragma once

#include "arming/install_plan.h"
#include "arming/snapshot.h"

namespace ktrace::arming {

/// For the entry and return probes of the plan, at functions that have such jumps. Those of Go's, which begin again
/// once their stack has been made larger, are plan_go's: it comes first.
void plan_jumps_back(const Snapshot &now, InstallPlan &plan);

} // namespace ktrace::arming
