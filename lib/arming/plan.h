// Plan: what is to be armed in one address space: probes resolved to places, compiled, and seen to be possible. Nothing
// in the target has been touched yet.
#pragma once

#include <variant>

#include "base/result.h"
#include "probe/watch_spec.h"
#include "trace/trace.h"

namespace ktrace::arming {

struct ArmPlan {
    std::vector<std::unique_ptr<trace::AttachedLocation>> locations;
    std::vector<std::unique_ptr<engine::InternalBreakpoint>> internal;
    std::vector<trace::WaitingIfunc> ifuncs; // their resolvers are among the internal sites
    std::vector<std::uint64_t> unwinders;    // biases of the modules whose unwinding functions are among them
    bool empty() const { return locations.empty() && internal.empty() && ifuncs.empty(); }
};

/// A probe's place in a process, before it has a program.
struct Found {
    std::uint32_t probe = 0; // its number
    probe::Location location;
    std::uint64_t bias = 0;
    std::optional<probe::WatchPlace> watch = {}; // of a watchpoint
};

/// Compiles places that are known already. Errors: an EXPR that fits none of a set's places, a place that cannot be
/// probed.
Result<ArmPlan> plan_places(trace::Trace &trace, engine::Process &process, std::vector<Found> found);

/// True where a probe has a location armed at an address of this process; of an inlined function that very instance.
bool is_armed_already(const trace::Trace &trace, const engine::Process &process, std::uint32_t probe, VirtAddr at,
                      std::uint32_t instance);

/// Adds an internal breakpoint to a plan.
void plan_internal(ArmPlan &plan, const engine::InternalPurpose &purpose, VirtAddr at);

/// The same, unless it is there, or planned, already.
void plan_once(const engine::Process &process, ArmPlan &plan, const engine::InternalPurpose &purpose, VirtAddr at);

/// What becomes of a probe whose SPEC is found nowhere in the process.
enum class Missing : std::uint8_t {
    wait,   // it may be found later, or elsewhere
    refuse, // an error, unless it was found before, or its set allows it
};

/// Resolves and compiles probes for the modules that the process has now, leaving out what is armed already.
Result<ArmPlan> plan_arming(trace::Trace &trace, engine::Process &process, const std::vector<std::uint32_t> &probes,
                            Missing missing);

/// One site of a plan with what runs there.
struct PlannedSite {
    engine::Site *site = nullptr;
    std::variant<engine::Attachment *, engine::InternalBreakpoint *> consumer;
    std::string name;
};

/// Makes the sites of a plan, without slots and not armed. Errors: refused (the instruction cannot be probed), fault.
Result<std::vector<PlannedSite>> plan_sites(trace::Trace &trace, engine::Process &process, const ArmPlan &plan);

} // namespace ktrace::arming
