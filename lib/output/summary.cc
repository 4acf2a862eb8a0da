#include "output/summary.h"

#include <fmt/format.h>

#include "output/label.h"

namespace ktrace::output {

std::string summary_text(const program::LocationInfo &location, const program::Counters &counters) {
    std::string out =
        fmt::format("{} {}: {} hits = {} events + {} filtered + {} unselected + {} missed + {} unreturned + {} dropped",
                    place_with_module(location), location.kind, counters.hits, counters.events, counters.filtered,
                    counters.unselected, counters.missed, counters.unreturned, counters.dropped);
    if (location.injects) out += fmt::format("; {} injected", counters.injected);
    append_which(out, location);
    out += '\n';
    if (location.kind != 'r') return out;
    std::string function;
    append_function(function, location);
    return out + fmt::format("Missed probing {} instances of {}\n", counters.missed, function);
}

std::string timing_text(const Timing &timing) {
    const std::string calls = fmt::format("{} call{} by {}", timing.calls, timing.calls == 1 ? "" : "s", timing.clock);
    if (timing.resolution_ns == 0)
        return fmt::format("{}: ktrace's own share of them could not be measured at start; nothing is subtracted; {}\n",
                           timing.of, calls);
    return fmt::format("{}: {} ns of ktrace's own are subtracted from each, and {} ns for each stop inside it; "
                       "equal calls differ by {} ns, 1 in 100 by more than {} ns; {}\n",
                       timing.of, timing.per_call_ns, timing.per_stop_ns, timing.resolution_ns, timing.rare_ns, calls);
}

} // namespace ktrace::output
