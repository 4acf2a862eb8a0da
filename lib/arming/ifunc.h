// ifunc: probes of indirect functions (STT_GNU_IFUNC) that the process has not resolved yet. Their resolvers are
// watched: what one returns is the implementation, and is armed before the process can call it.
#pragma once

#include <vector>

#include "arming/plan.h"
#include "engine/hit/dispatch.h"

namespace ktrace::arming {

/// Adds the resolvers to a plan, those that are not watched yet.
void plan_resolvers(trace::Trace &trace, engine::Process &process, ArmPlan &plan,
                    std::vector<trace::WaitingIfunc> ifuncs);

/// A resolver is called: the place that it returns to is watched too. Or one has returned: its result is armed.
void on_ifunc(trace::Trace &trace, engine::Event event);

} // namespace ktrace::arming
