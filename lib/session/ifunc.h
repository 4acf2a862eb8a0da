// ifunc: probes of indirect functions (STT_GNU_IFUNC) that the process has not resolved yet. Their resolvers are
// watched: what one returns is the implementation, and is armed before the process can call it.
#pragma once

#include <vector>

#include "session/plan.h"
#include "trap/dispatch.h"

namespace ktrace::session {

/// Adds the resolvers to a plan, those that are not watched yet.
void plan_resolvers(State &state, trap::Traced &traced, ArmPlan &plan, std::vector<WaitingIfunc> ifuncs);

/// A resolver is called: the place that it returns to is watched too. Or one has returned: its result is armed.
void on_ifunc(State &state, trap::Event event);

} // namespace ktrace::session
