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
    out += '\n';
    if (location.kind != 'r') return out;
    std::string function;
    append_function(function, location);
    return out + fmt::format("Missed probing {} instances of {}\n", counters.missed, function);
}

std::string timing_text(std::string_view of, std::uint64_t per_call_ns, std::uint64_t per_stop_ns,
                        std::uint64_t resolution_ns) {
    if (resolution_ns == 0)
        return fmt::format("{}: what is ktrace's own in them could not be measured at start; nothing is subtracted\n",
                           of);
    return fmt::format(
        "{}: {} ns of ktrace's own subtracted from each, and {} ns for each stop inside it besides the stop; "
        "resolution {} ns\n",
        of, per_call_ns, per_stop_ns, resolution_ns);
}

} // namespace ktrace::output
