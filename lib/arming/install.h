// install: makes a plan true in one address space. Its locations become Attachments; these and the internal breakpoints
// get their Sites; the Sites get slots, are planted and switched on. All of it or, on an error, none.
#pragma once

#include "arming/install_plan.h"
#include "base/result.h"
#include "os/tracee/stopped.h"
#include "trace/trace.h"

namespace ktrace::arming {

/// True where install needs no stopped task to make room: there are slots for all of it.
bool has_room(trace::Trace &trace, engine::Process &process, const InstallPlan &plan);

/// Makes a plan true. Its probes are switched on if they are ready and on. `stopped`: a task of the process, for
/// mapping room for slots; nullptr where `has_room`. Errors: refused (no room, no slot within reach), gone; nothing of
/// the plan is left then.
Status install(trace::Trace &trace, engine::Process &process, InstallPlan plan, os::Stopped *stopped);

/// Notes the page in the ledger as soon as it is there, or that there can be none. It is noted for all processes that
/// share the memory: the one whose task has made it may end, or call exec, before the others.
void tell_of_page(trace::Trace &trace, const engine::Process &process);

/// Puts the trap at the dynamic loader's breakpoint, so that new modules are seen. No loader, or it is there already:
/// does nothing.
Status watch_loader(trace::Trace &trace, engine::Process &process, os::Stopped *stopped);

/// Exceptions and longjmp are watched only while a return probe is on. From the first probe that asks for durations on,
/// ktrace looks often for stops.
void watch_returns(trace::Trace &trace, engine::Process &process);

} // namespace ktrace::arming
