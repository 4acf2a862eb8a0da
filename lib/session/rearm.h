// rearm: the probes of the command become sites in one address space: resolved, compiled, planned, given slots,
// planted. All of them or, on an error, none.
#pragma once

#include "base/result.h"
#include "os/stopped.h"
#include "session/state.h"

namespace ktrace::session {

/// Sites that are planned but not planted: nothing in the target has been touched.
struct ArmPlan {
    std::vector<std::unique_ptr<ArmedLocation>> locations;
    std::vector<std::unique_ptr<trap::Armed>> internal;
    std::vector<VirtAddr> internal_at; // beside `internal`
    std::vector<WaitingIfunc> ifuncs;  // their resolvers are among the internal sites
    std::size_t specs = 0;             // how many probes have a location in it
};

/// A probe's place in a process, before it has a program.
struct Found {
    std::size_t probe = 0; // index in Config::probes
    probe::Location location;
    std::uint64_t bias = 0;
};

/// Compiles places that are known already.
Result<ArmPlan> plan_places(State &state, trap::Traced &traced, std::vector<Found> found);

/// True where a probe has a location armed at an address of this process.
bool is_armed_already(State &state, trap::Traced &traced, std::size_t probe, VirtAddr at);

/// Adds a site of ours to a plan.
void plan_internal(ArmPlan &plan, trap::Armed::Kind kind, VirtAddr at);

/// Resolves and compiles everything for the modules that the process has now, leaving out what is armed already. With
/// `complete`, a probe that is found nowhere is an error (but with --allow-missing).
Result<ArmPlan> plan_arming(State &state, trap::Traced &traced, bool complete);

/// Plants a plan with the help of a stopped task of the process. On an error nothing of the plan is left.
Status carry_out(State &state, trap::Traced &traced, ArmPlan plan, os::Stopped &stopped);

/// Puts the trap at the dynamic loader's breakpoint, so that new modules are seen. No loader: does nothing.
Status watch_loader(State &state, trap::Traced &traced, os::Stopped &stopped);

} // namespace ktrace::session
