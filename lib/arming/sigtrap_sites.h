// sigtrap_sites: internal breakpoints at the functions by which the program sets its action for SIGTRAP, so that it
// gets back the action it has set (engine/transparent/sigtrap).
#pragma once

#include "arming/internal_sites.h"

namespace ktrace::arming {

/// Adds the places to a plan with locations, those that are not there yet.
void plan_sigtrap(const Snapshot &now, InstallPlan &plan);

} // namespace ktrace::arming
