#include "arming/jumps_back.h"

#include <algorithm>
#include <set>

#include "arming/internal_sites.h"
#include "engine/calls/goroutines.h"
#include "engine/calls/jump_back.h"
#include "engine/space/scan.h"

namespace ktrace::arming {

using arch::Host;

namespace {

/// The jumps and branches of the function that begins there, to its first instruction.
std::vector<VirtAddr> jumps_back_of(const Snapshot &now, const PlannedLocation &location) {
    const VirtAddr start = location.at();
    auto function = location.location.module->function_at(location.location.vaddr);
    if (!function || function->start != location.location.vaddr) return {};
    return engine::instructions(now.memory, start, VirtAddr{function->end + location.bias},
                                [&](const Host::Plan &each) {
                                    const bool jumps = each.flow == arch::Flow::jump || each.flow == arch::Flow::branch;
                                    return jumps && each.target == start && each.method == arch::Method::emulate;
                                });
}

bool starts_over(const Snapshot &now, const InstallPlan &plan, VirtAddr at) {
    auto is_it = [&](const auto &each) { return each->at == at && each->purpose == &engine::starts_over; };
    auto site = now.space.sites.find(at);
    return std::ranges::any_of(plan.internal, is_it) ||
           (site != now.space.sites.end() && std::ranges::any_of(site->second->internal, is_it));
}

} // namespace

void plan_jumps_back(const Snapshot &now, InstallPlan &plan) {
    std::set<VirtAddr> seen;
    for (const PlannedLocation &location : plan.locations) {
        if (location.kind != probe::Kind::entry && location.kind != probe::Kind::ret) continue;
        if (!location.location.module || !seen.insert(location.at()).second) continue;
        bool any = false;
        for (VirtAddr at : jumps_back_of(now, location)) {
            if (starts_over(now, plan, at)) continue;
            any = true;
            plan_internal(now, plan, engine::jumps_back, at);
        }
        if (any) plan_internal(now, plan, engine::is_jumped_back_to, location.at());
    }
}

} // namespace ktrace::arming
