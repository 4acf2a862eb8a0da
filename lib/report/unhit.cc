#include "report/unhit.h"

#include <map>

#include <fmt/format.h>

#include "base/text.h"

namespace ktrace::report {

namespace {

constexpr std::size_t most_shown = 8; // locations of a SPEC that were not hit

} // namespace

Unhit find_unhit(const trace::Trace &trace) {
    Unhit unhit;
    unhit.left_out.resize(trace.installed.locations.size());
    if (trace.config.verbose > 0) return unhit;
    struct Count {
        std::size_t all = 0, unhit = 0;
    };
    std::map<std::uint32_t, Count> counts; // by number
    for (const auto &location : trace.installed.locations) {
        Count &count = counts[location->probe];
        count.all++;
        if (location->counters.hits == 0) count.unhit++;
    }
    for (std::size_t i = 0; i < trace.installed.locations.size(); i++)
        unhit.left_out[i] = trace.installed.locations[i]->counters.hits == 0 &&
                            counts[trace.installed.locations[i]->probe].unhit > most_shown;
    for (const auto &[number, count] : counts) {
        const probe::ProbeEntry &registered = trace.registry.at(number);
        if (count.unhit <= most_shown || !registered.ready || registered.set->hidden) continue;
        unhit.text +=
            fmt::format("{} {}: {} of {} locations were never hit\n", text::escape(registered.probe.spec.text),
                        static_cast<char>(registered.probe.kind), count.unhit, count.all);
    }
    return unhit;
}

} // namespace ktrace::report
