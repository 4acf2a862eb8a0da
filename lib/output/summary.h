// Summary: what standard error says at the end of a trace.
#pragma once

#include <cstddef>
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

/// A trace as a whole.
struct Totals {
    program::Counters counters;      // of all places together
    std::size_t hit = 0, places = 0; // places with hits, and all
    std::uint64_t ns = 0;            // how long it took
    bool injects = false;
};

/// One line with its end, and another one where something was to be injected and nothing was:
///
///     ktrace: 15204 hits at 36 of 340 places in 10.0 s: 15004 events, 197 filtered, 1 in flight, 2 lost
std::string totals_text(const Totals &totals);

/// Of a place that has lost hits, one line with its end; `maxactive`: the most calls in flight there.
///
///     ktrace: do_work [worker]: 1 missed (more than 64 calls in flight). Missed probing 1 instances of do_work
std::string lost_text(const program::LocationInfo &location, const program::Counters &counters,
                      std::uint32_t maxactive);

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
