// go: what probes in a program written in Go need to know of its runtime (runtime/stack.go, runtime/panic.go): which
// jumps start a function over again, and when a goroutine's stack moves.
#pragma once

#include "arming/plan.h"

namespace ktrace::arming {

/// Adds the sites of ours that the planned locations in modules of Go's need.
void plan_go(const engine::Process &process, ArmPlan &plan);

} // namespace ktrace::arming
