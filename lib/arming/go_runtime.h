// go: the internal breakpoints that probes in a program written in Go need, by its runtime (runtime/stack.go,
// runtime/panic.go): the jumps that start a function over again, and the moves of a goroutine's stack.
#pragma once

#include "arming/internal_sites.h"

namespace ktrace::arming {

/// Adds those that the planned locations in modules of Go's need.
void plan_go(const Snapshot &now, InstallPlan &plan);

} // namespace ktrace::arming
