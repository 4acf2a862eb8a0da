#include "trace/trace.h"

#include <algorithm>

namespace ktrace::trace {

void tell_once(Trace &trace, const std::string &text) {
    if (!trace.output.told.insert(text).second || trace.config.quiet) return;
    trace.voice.notice(text);
}

bool is_on(const Trace &trace, const CountedLocation &location) {
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
