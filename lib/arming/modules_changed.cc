#include "arming/modules_changed.h"

#include <algorithm>

#include "engine/calls/retired_sites.h"
#include "engine/watch/watch.h"

namespace ktrace::arming {

using engine::Process;
using target::LoadedModule;

namespace {

bool is_among(const std::vector<LoadedModule> &modules, const LoadedModule &module) {
    return std::any_of(modules.begin(), modules.end(), [&](const LoadedModule &other) {
        return other.module == module.module && other.bias == module.bias;
    });
}

/// Forgets all attachments, internal breakpoints and sites in a module that is gone.
void forget(trace::Trace &trace, Process &process, const LoadedModule &module) {
    auto within = [&](VirtAddr at) { return module.start <= at && at < module.end; };
    engine::retire_site(trace.engine, process, module.start, module.end);
    trace::Arming &arming = trace.installed.armings[process.space.get()];
    for (const auto &location : arming.locations)
        if (within(location->at)) engine::remove_watch(*process.space, location->attachment);
    std::erase_if(arming.locations, [&](const auto &location) { return within(location->at); });
    std::erase_if(arming.dismissed, [&](const auto &location) { return within(location->at); });
    std::erase_if(arming.internal, [&](const auto &internal) { return within(internal->at); });
    std::erase_if(arming.ifuncs, [&](const trace::WaitingIfunc &ifunc) { return within(ifunc.at()); });
    arming.unwinders.erase(module.bias);
}

} // namespace

Result<std::vector<LoadedModule>> refresh_modules(trace::Trace &trace, Process &process) {
    if (trace.output.before_modules_change) trace.output.before_modules_change(process);
    std::vector<LoadedModule> before = process.target.modules;
    std::vector<std::string> unreadable;
    if (auto refreshed = target::refresh(process.target, trace.modules, unreadable); !refreshed)
        return fail(refreshed.error());
    for (const LoadedModule &module : before)
        if (!is_among(process.target.modules, module)) forget(trace, process, module);
    for (auto &[pid, other] : trace.engine.processes)
        if (other->space == process.space && other.get() != &process) {
            other->target.modules = process.target.modules;
            other->target.maps = process.target.maps;
        }
    std::vector<LoadedModule> loaded;
    for (const LoadedModule &module : process.target.modules)
        if (!is_among(before, module)) loaded.push_back(module);
    return loaded;
}

} // namespace ktrace::arming
