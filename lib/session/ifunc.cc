#include "session/ifunc.h"

#include <algorithm>

#include "arch/host.h"
#include "session/rearm.h"

namespace ktrace::session {

using arch::Host;
using trap::Armed;
using trap::Traced;

namespace {

bool is_resolver(const Arming &arming, VirtAddr at) {
    return std::any_of(arming.ifuncs.begin(), arming.ifuncs.end(),
                       [at](const WaitingIfunc &ifunc) { return ifunc.at() == at; });
}

Status watch_return(State &state, Traced &traced, os::Stopped &stopped) {
    auto to = Host::return_address(stopped.registers(), *traced.ground->space);
    if (!to) return {};
    ArmPlan plan;
    plan_once(traced, plan, Armed::Kind::ifunc, *to);
    return plan.internal.empty() ? Status() : carry_out(state, traced, std::move(plan), &stopped);
}

Status arm_implementation(State &state, Traced &traced, VirtAddr resolver, os::Stopped &stopped) {
    VirtAddr chosen{Host::return_value(stopped.registers())};
    const target::LoadedModule *owner = target::module_at(traced.process.modules, chosen);
    if (!owner || !owner->module->executable(chosen.value - owner->bias)) return {};
    std::vector<Found> found;
    for (WaitingIfunc &ifunc : state.armings[traced.ground.get()].ifuncs) {
        if (ifunc.at() != resolver) continue;
        ifunc.has_chosen = true;
        const probe::Probe &wish = state.registry.at(ifunc.probe).probe;
        auto location =
            probe::resolve_chosen(wish.spec, wish.kind, ifunc.resolver, owner->module, chosen.value - owner->bias);
        if (!location) return tl::make_unexpected(location.error());
        VirtAddr at{location->vaddr + owner->bias};
        if (!is_armed_already(state, traced, ifunc.probe, at, 0))
            found.push_back({ifunc.probe, std::move(*location), owner->bias});
    }
    if (found.empty()) return {};
    auto plan = plan_places(state, traced, std::move(found));
    if (!plan) return tl::make_unexpected(plan.error());
    return carry_out(state, traced, std::move(*plan), &stopped);
}

} // namespace

void plan_resolvers(State &state, Traced &traced, ArmPlan &plan, std::vector<WaitingIfunc> ifuncs) {
    const Arming &arming = state.armings[traced.ground.get()];
    for (WaitingIfunc &ifunc : ifuncs) {
        auto same = [&](const WaitingIfunc &other) { return other.probe == ifunc.probe && other.at() == ifunc.at(); };
        if (std::any_of(arming.ifuncs.begin(), arming.ifuncs.end(), same)) continue;
        plan_once(traced, plan, Armed::Kind::ifunc, ifunc.at());
        plan.ifuncs.push_back(std::move(ifunc));
    }
}

void on_ifunc(State &state, trap::Event event) {
    os::Stopped stopped = std::move(*event.stopped);
    auto found = state.world.tasks.find(event.tid.value);
    Traced *traced = found == state.world.tasks.end() ? nullptr : state.world.process_of(found->second);
    if (!traced) {
        std::move(stopped).resume(os::Resume::run);
        return;
    }
    VirtAddr at = Host::trap_address(stopped.pc());
    Arming &arming = state.armings[traced->ground.get()];
    Status armed;
    if (is_resolver(arming, at)) {
        arming.resolving[event.tid.value] = at;
        armed = watch_return(state, *traced, stopped);
    } else if (auto resolving = arming.resolving.extract(event.tid.value)) {
        armed = arm_implementation(state, *traced, resolving.mapped(), stopped);
    }
    if (!armed) tell_once(state, armed.error().message);
    trap::finish_hit(state.world, *traced, found->second, *traced->ground->site_at(at), std::move(stopped));
}

} // namespace ktrace::session
