// Plan: decides what is to be installed in one address space: probes are resolved to locations, these are compiled, and
// each is checked to be possible.
//
// Spec → Probe → Location → Attachment → Site: this is the step from Probe to Location, for one snapshot. A location
// becomes an Attachment with its Site by install.
//
// Invariant: pure. No system call, and nothing is changed, in the target or the Trace: its notices come back as
// Remarks, which planning.h notes.
#pragma once

#include <set>

#include "arming/install_plan.h"
#include "arming/snapshot.h"
#include "base/result.h"

namespace ktrace::arming {

/// How a probe is treated whose SPEC is found nowhere in the process.
enum class Missing : std::uint8_t {
    wait,   // it may be found later, or elsewhere
    refuse, // an error, unless it was found before, or its set allows it
};

/// The by-products of a plan, also of one that was refused.
struct Remarks {
    std::vector<std::string> notices;             // for standard error, once per text
    std::map<std::uint32_t, std::string> nowhere; // probes that were not found, and why
    std::set<std::uint32_t> expected;             // probes that can be placed, or wait for their module
    std::set<probe::ProbeSet *> compiled;         // sets whose EXPRs fit some location
};

/// Resolves and compiles probes for the modules of the snapshot, leaving out what is installed already. Errors: those
/// of a probe that cannot be placed, of an EXPR that fits none of a set's locations; given_up.
Result<InstallPlan> plan(const Snapshot &now, const std::vector<std::uint32_t> &probes, Missing missing,
                         Remarks &remarks);

/// The same for locations that are known already.
Result<InstallPlan> plan_locations(const Snapshot &now, std::vector<PlannedLocation> locations, Remarks &remarks);

/// True where a probe has an attachment at an address of this address space; of an inlined function that very instance.
bool is_attached(const Snapshot &now, std::uint32_t probe, VirtAddr at, std::uint32_t instance);

} // namespace ktrace::arming
