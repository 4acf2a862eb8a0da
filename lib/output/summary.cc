#include "output/summary.h"

#include <fmt/format.h>

#include "output/label.h"
#include "output/table_lines.h"
#include "output/time_text.h"

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

std::string totals_text(const Totals &totals) {
    const program::Counters &all = totals.counters;
    std::string out =
        fmt::format("ktrace: {} hit{} at {} of {} place{} in {}: {} event{}", all.hits, all.hits == 1 ? "" : "s",
                    totals.hit, totals.places, totals.places == 1 ? "" : "s",
                    time_text(static_cast<double>(totals.ns), summary_style), all.events, all.events == 1 ? "" : "s");
    const std::pair<std::uint64_t, const char *> causes[] = {
        {all.filtered, "filtered"}, {all.unselected, "unselected"}, {all.in_flight, "in flight"}};
    for (const auto &[count, cause] : causes)
        if (count != 0) out += fmt::format(", {} {}", count, cause);
    out += all.lost() == 0 ? ", none lost" : fmt::format(", {} lost", all.lost());
    if (totals.injects) out += fmt::format("; {} injected", all.injected);
    out += '\n';
    if (totals.injects && all.injected == 0)
        out += fmt::format("ktrace: nothing was injected: {}\n",
                           all.hits == 0 ? "no place was hit" : "no hit passed the filters and was selected");
    return out;
}

std::string lost_text(const program::LocationInfo &location, const program::Counters &counters,
                      std::uint32_t maxactive) {
    std::string out = "ktrace: " + function_text(location, false, true) + ':';
    const char *separator = " ";
    auto add = [&](std::uint64_t count, const std::string &text) {
        if (count != 0) out += fmt::format("{}{} {}", separator, count, text);
        if (count != 0) separator = ", ";
    };
    add(counters.missed - counters.unfollowed, fmt::format("missed (more than {} calls in flight)", maxactive));
    add(counters.unfollowed, "missed (no way to see their return)");
    add(counters.ended, "unreturned (their thread ended)");
    add(counters.left, "unreturned (left by a jump to another function)");
    add(counters.unreturned - counters.in_flight - counters.ended - counters.left,
        "unreturned (longjmp or an exception)");
    add(counters.dropped, "dropped (not written)");
    if (counters.missed != 0) {
        std::string function;
        append_function(function, location);
        out += fmt::format(". Missed probing {} instances of {}", counters.missed, function);
    }
    return out + '\n';
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
