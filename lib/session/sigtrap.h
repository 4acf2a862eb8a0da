// sigtrap: what the program does with SIGTRAP, its action and whether a thread blocks it, is seen where it does that,
// so that it can be given back (trap/restore).
#pragma once

#include "session/plan.h"

namespace ktrace::session {

/// Adds the places to a plan with locations, those that are not there yet.
void plan_sigtrap(const trap::Traced &traced, ArmPlan &plan);

} // namespace ktrace::session
