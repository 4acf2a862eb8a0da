// go: what probes in a program written in Go need to know of its runtime (runtime/stack.go, runtime/panic.go): which
// jumps start a function over again, and when a goroutine's stack moves.
#pragma once

#include "session/plan.h"

namespace ktrace::session {

/// Adds the sites of ours that the planned locations in modules of Go's need.
void plan_go(const trap::Traced &traced, ArmPlan &plan);

} // namespace ktrace::session
