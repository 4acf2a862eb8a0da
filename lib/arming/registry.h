// registry: how probes come and go in all traced processes at once, at any time: before the first process is taken,
// while the loop runs, from a handler whose thread is stopped at its probe.
//
// Invariants: a set of probes is registered whole or not at all; none of its hits is seen before all of it is armed; a
// probe that is off has no trap in the target, unless another one needs it.
#pragma once

#include <span>

#include "base/result.h"
#include "os/tracee/stopped.h"
#include "trace/trace.h"

namespace ktrace::arming {

/// Registers probes that share the options of `set`, and arms them in the processes that are traced now; later ones and
/// libraries that are loaded later get them, too. `stopped`: a task that the caller has at a stop, or nullptr: where
/// room for slots has to be mapped, that one does it, else one is interrupted where it does no harm. Returns their
/// numbers. Errors: usage (an EXPR), not_found (a SPEC that no process has: the first one), refused (cannot be probed).
Result<std::vector<std::uint32_t>> register_probes(trace::Trace &trace, const std::shared_ptr<probe::ProbeSet> &set,
                                                   const std::vector<probe::Probe> &probes, os::Stopped *stopped);

/// Errors: not_found: --allow-missing has left out all probes of the command line, in all processes that were looked
/// at, and no plugin and no program that a child executes (--follow) can bring any.
Status check_any_left(const trace::Trace &trace);

/// True where these would measure durations, and the corrections to subtract are not measured yet.
bool wants_calibration(const trace::Trace &trace, const probe::Actions &actions,
                       const std::vector<probe::Probe> &probes);

/// Takes probes out everywhere, for good. Their calls in flight end as unreturned; their counts stay for the summary.
void unregister_probes(trace::Trace &trace, std::span<const std::uint32_t> numbers);

/// Switches the armed locations of a probe on or off, as the probe is.
void apply_switches(trace::Trace &trace, std::uint32_t number);

/// Switches probes on or off; locations that were switched off for their cost are on again, too. Errors: fault, refused
/// (the trap cannot be planted any more); then they are as before.
Status enable_probes(trace::Trace &trace, std::span<const std::uint32_t> numbers);
void disable_probes(trace::Trace &trace, std::span<const std::uint32_t> numbers);

/// The switch in front of all probes. Errors: as enable_probes.
Status switch_all(trace::Trace &trace, bool on);

/// Frees unregistered probes, as far as no task is in the middle of one. For the loop, between stops.
void clear_away(trace::Trace &trace);

} // namespace ktrace::arming
