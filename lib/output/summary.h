// Summary: what standard error says at the end of a trace.
#pragma once

#include <cstdint>
#include <string>

#include "program/record.h"

namespace ktrace::output {

/// A location's counts, as a sum that can be checked:
///
///     do_work+0x0 [worker] r: 9 hits = 5 events + 1 filtered + 0 unselected + 2 missed + 1 unreturned + 0 dropped
///
/// and, for a return probe, `Missed probing 2 instances of do_work`.
std::string summary_text(const program::LocationInfo &location, const program::Counters &counters);

/// How durations (`of`: which) were corrected, and how far apart calls that take the same time may be told to be: one
/// line with its end.
std::string timing_text(std::string_view of, std::uint64_t per_call_ns, std::uint64_t per_stop_ns,
                        std::uint64_t resolution_ns);

} // namespace ktrace::output
