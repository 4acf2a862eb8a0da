// install: carries out a plan in one address space: its locations become Attachments, they and the internal breakpoints
// get their Sites, these get slots, are planted and switched on. All of it or, on an error, none.
#pragma once

#include "arming/install_plan.h"
#include "base/result.h"
#include "os/tracee/stopped.h"
#include "trace/trace.h"

namespace ktrace::arming {

/// True where install needs no stopped task to make room: there are slots for all of it.
bool has_room(trace::Trace &trace, engine::Process &process, const InstallPlan &plan);

/// Carries out a plan. Its probes are switched on, those that are ready and on. `stopped`: a task of the process, for
/// mapping room for slots; nullptr where `has_room`. Errors: refused (no room, no slot within reach), gone; nothing of
/// the plan is left then.
Status install(trace::Trace &trace, engine::Process &process, InstallPlan plan, os::Stopped *stopped);

/// The guardian is told of the page as soon as it is there, and where there can be none; of all who share the memory,
/// for the one whose task has made it may end, or call exec, before the others.
void tell_of_page(trace::Trace &trace, const engine::Process &process);

/// Puts the trap at the dynamic loader's breakpoint, so that new modules are seen. No loader, or it is there already:
/// does nothing.
Status watch_loader(trace::Trace &trace, engine::Process &process, os::Stopped *stopped);

/// Exceptions and longjmp are watched only while a return probe is on; stops are looked at often from when one asks how
/// long calls take.
void watch_returns(trace::Trace &trace, engine::Process &process);

} // namespace ktrace::arming
