// sigtrap: what the program does with SIGTRAP, its action and whether a thread blocks it, is seen where it does that,
// so that it can be given back (trap/restore).
#pragma once

#include "arming/internal_sites.h"

namespace ktrace::arming {

/// Adds the places to a plan with locations, those that are not there yet.
void plan_sigtrap(const Snapshot &now, InstallPlan &plan);

/// A thread of the process has been found to block SIGTRAP, which none did when it was planned: from now on it is seen
/// which ones do. `stopped` is at a trap of ours. Where that cannot be had, what the trap does to the process's action
/// tells of it (trap/reset).
void watch_masks(trace::Trace &trace, engine::Process &process, os::Stopped &stopped);

} // namespace ktrace::arming
