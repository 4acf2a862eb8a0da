#include "trace/trace.h"

#include <algorithm>

namespace ktrace::trace {

void tell_once(Trace &trace, const std::string &text) {
    if (!trace.output.told.insert(text).second || trace.config.quiet) return;
    trace.voice.notice(text);
}

namespace {

/// The same place of the probe that this one measures for; nullptr: it is of no such.
const CountedLocation *measured_by(const Trace &trace, const CountedLocation &location) {
    const std::uint32_t beside = trace.registry.at(location.probe).beside;
    if (beside == 0) return nullptr;
    auto at = trace.installed.location_of.find({beside, location.module, location.vaddr, location.instance});
    return at == trace.installed.location_of.end() ? nullptr : trace.installed.locations[at->second].get();
}

} // namespace

bool is_on(const Trace &trace, const CountedLocation &location) {
    if (const CountedLocation *measured = measured_by(trace, location); measured && measured->too_costly) return false;
    return !location.too_costly && trace.registry.is_on(location.probe);
}

bool anyone_unloads(const Trace &trace) {
    return std::any_of(trace.installed.armings.begin(), trace.installed.armings.end(),
                       [](const auto &entry) { return entry.second.unloads; });
}

bool anyone_waits_for_loader(const Trace &trace) {
    return std::any_of(trace.installed.armings.begin(), trace.installed.armings.end(),
                       [](const auto &entry) { return entry.second.waits_for_loader; });
}

} // namespace ktrace::trace
