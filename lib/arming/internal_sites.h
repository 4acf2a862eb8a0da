// Internal sites: the internal breakpoints of a plan whose purpose lies in the rooms above the engine.
//
// Invariant: these functions read the snapshot and add to the plan. Nothing else is changed.
#pragma once

#include "arming/install_plan.h"
#include "arming/snapshot.h"

namespace ktrace::arming {

/// At the loader's breakpoint: its list of modules has changed.
extern const engine::InternalPurpose loads_modules;

/// At a resolver of an indirect function, and at its return address.
extern const engine::InternalPurpose resolves_ifunc;

/// Adds an internal breakpoint, unless one of that purpose is there, or planned, already.
void plan_internal(const Snapshot &now, InstallPlan &plan, const engine::InternalPurpose &purpose, VirtAddr at);

/// At the functions whose call may make frames vanish without returning, in modules that are not watched yet.
void plan_unwinding(const Snapshot &now, InstallPlan &plan);

} // namespace ktrace::arming
