// Summary: what standard error says at the end of a trace.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "program/run/record.h"

namespace ktrace::output {

/// A location's counts, as a sum that can be checked:
///
///     do_work+0x0 [worker] r: 9 hits = 5 events + 1 filtered + 0 unselected + 2 missed + 1 unreturned + 0 dropped
///
/// and, for a return probe, `Missed probing 2 instances of do_work`.
std::string summary_text(const program::LocationInfo &location, const program::Counters &counters);

/// How durations were measured and corrected.
struct Timing {
    std::string_view of;             // which
    std::string_view clock;          // their source
    std::uint64_t calls = 0;         // how many
    std::uint64_t per_call_ns = 0;   // taken from each
    std::uint64_t per_stop_ns = 0;   // and for each stop inside it
    std::uint64_t resolution_ns = 0; // how far apart the durations of equal calls may be; 0: not measured
    std::uint64_t rare_ns = 0;       // and by more than so much one in a hundred
};

/// One line with its end.
std::string timing_text(const Timing &timing);

} // namespace ktrace::output
