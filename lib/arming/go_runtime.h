// Go's runtime: the internal breakpoints that probes in a program written in Go need (runtime/stack.go,
// runtime/panic.go): at the jumps that start a function over again, and at the moves of a goroutine's stack.
#pragma once

#include "arming/internal_sites.h"

namespace ktrace::arming {

/// Adds those that the planned locations in Go's modules need.
void plan_go(const Snapshot &now, InstallPlan &plan);

} // namespace ktrace::arming
