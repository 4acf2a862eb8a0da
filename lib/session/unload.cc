#include "session/unload.h"

#include <algorithm>

#include "session/names.h"
#include "trap/buried.h"
#include "trap/watch.h"

namespace ktrace::session {

using target::LoadedModule;
using trap::Traced;

namespace {

bool is_among(const std::vector<LoadedModule> &modules, const LoadedModule &module) {
    return std::any_of(modules.begin(), modules.end(), [&](const LoadedModule &other) {
        return other.module == module.module && other.bias == module.bias;
    });
}

/// Everything of ours in a module that is gone.
void forget(State &state, Traced &traced, const LoadedModule &module) {
    auto within = [&](VirtAddr at) { return module.start <= at && at < module.end; };
    trap::bury(state.world, traced, module.start, module.end);
    Arming &arming = state.armings[traced.ground.get()];
    for (const auto &location : arming.locations)
        if (within(location->at)) trap::remove_watch(*traced.ground, location->armed);
    std::erase_if(arming.locations, [&](const auto &location) { return within(location->at); });
    std::erase_if(arming.dismissed, [&](const auto &location) { return within(location->at); });
    std::erase_if(arming.internal, [&](const auto &internal) { return within(internal->at); });
    std::erase_if(arming.ifuncs, [&](const WaitingIfunc &ifunc) { return within(ifunc.at()); });
    arming.unwinders.erase(module.bias);
}

} // namespace

Result<std::vector<LoadedModule>> refresh_modules(State &state, Traced &traced) {
    part_with_modules(state, traced);
    std::vector<LoadedModule> before = traced.process.modules;
    std::vector<std::string> unreadable;
    if (auto refreshed = target::refresh(traced.process, state.modules, unreadable); !refreshed)
        return fail(refreshed.error());
    for (const LoadedModule &module : before)
        if (!is_among(traced.process.modules, module)) forget(state, traced, module);
    for (auto &[pid, other] : state.world.processes)
        if (other->ground == traced.ground && other.get() != &traced) {
            other->process.modules = traced.process.modules;
            other->process.maps = traced.process.maps;
        }
    std::vector<LoadedModule> loaded;
    for (const LoadedModule &module : traced.process.modules)
        if (!is_among(before, module)) loaded.push_back(module);
    return loaded;
}

} // namespace ktrace::session
