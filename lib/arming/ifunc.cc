#include "arming/ifunc.h"

#include <algorithm>

#include "arch/host.h"
#include "arming/install.h"
#include "arming/internal_sites.h"
#include "arming/planning.h"

namespace ktrace::arming {

using arch::Host;
using engine::Process;

namespace {

bool is_resolver(const trace::Arming &arming, VirtAddr at) {
    return std::any_of(arming.ifuncs.begin(), arming.ifuncs.end(),
                       [at](const trace::WaitingIfunc &ifunc) { return ifunc.at() == at; });
}

Status watch_return(trace::Trace &trace, Process &process, os::Stopped &stopped) {
    auto to = Host::return_address(stopped.registers(), *process.space->memory);
    if (!to) return {};
    InstallPlan plan;
    plan_internal(take_snapshot(trace, process), plan, resolves_ifunc, *to);
    return plan.empty() ? Status() : install(trace, process, std::move(plan), &stopped);
}

Status arm_implementation(trace::Trace &trace, Process &process, VirtAddr resolver, os::Stopped &stopped) {
    VirtAddr chosen{Host::return_value(stopped.registers())};
    const target::LoadedModule *owner = target::module_at(process.target.modules, chosen);
    if (!owner || !owner->module->executable(chosen.value - owner->bias)) return {};
    if (auto maps = os::read_maps(process.target.pid)) process.target.maps = std::move(*maps);
    const Snapshot now = take_snapshot(trace, process);
    std::vector<PlannedLocation> found;
    for (trace::WaitingIfunc &ifunc : trace.installed.armings[process.space.get()].ifuncs) {
        if (ifunc.at() != resolver) continue;
        ifunc.has_chosen = true;
        const probe::Probe &wanted = trace.registry.at(ifunc.probe).probe;
        auto location =
            probe::resolve_chosen(wanted.spec, wanted.kind, ifunc.resolver, owner->module, chosen.value - owner->bias);
        if (!location) return tl::make_unexpected(location.error());
        VirtAddr at{location->vaddr + owner->bias};
        if (!is_attached(now, ifunc.probe, at, 0)) found.push_back({ifunc.probe, std::move(*location), owner->bias});
    }
    if (found.empty()) return {};
    auto plan = make_plan(trace, process, std::move(found));
    if (!plan) return tl::make_unexpected(plan.error());
    return install(trace, process, std::move(*plan), &stopped);
}

} // namespace

void on_ifunc(trace::Trace &trace, engine::Event event) {
    os::Stopped stopped = std::move(*event.stopped);
    auto found = trace.engine.tasks.find(event.tid.value);
    Process *process = found == trace.engine.tasks.end() ? nullptr : trace.engine.process_of(found->second);
    if (!process) {
        std::move(stopped).resume(os::Resume::run);
        return;
    }
    VirtAddr at = Host::trap_address(stopped.pc());
    trace::Arming &arming = trace.installed.armings[process->space.get()];
    Status armed;
    if (is_resolver(arming, at)) {
        arming.resolving[event.tid.value] = at;
        armed = watch_return(trace, *process, stopped);
    } else if (auto resolving = arming.resolving.extract(event.tid.value)) {
        armed = arm_implementation(trace, *process, resolving.mapped(), stopped);
    }
    if (!armed) trace::tell_once(trace, armed.error().message);
    engine::finish_hit(trace.engine, *process, found->second, *process->space->site_at(at), std::move(stopped));
}

} // namespace ktrace::arming
