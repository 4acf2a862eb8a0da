// sigtrap_sites: what the program makes its action for SIGTRAP is seen where it does that, so that it can be given back
// (engine/transparent/sigtrap).
#pragma once

#include "arming/internal_sites.h"

namespace ktrace::arming {

/// Adds the places to a plan with locations, those that are not there yet.
void plan_sigtrap(const Snapshot &now, InstallPlan &plan);

} // namespace ktrace::arming
