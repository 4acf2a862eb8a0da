#include "trap/roster.h"

#include <algorithm>

#include "trap/calls.h"

namespace ktrace::trap {

namespace {

bool is_needed(const Site &site) {
    return site.exit || site.kept_for_returns ||
           std::any_of(site.probes.begin(), site.probes.end(), [](const Armed *armed) { return armed->on; });
}

/// The return instructions of the function are not watched any longer, if nobody else's calls end there.
void unwatch_exits(Ground &ground, Armed &armed) {
    if (armed.exits != Armed::Exits::watched) return;
    auto within = [&](VirtAddr at) { return armed.function <= at && at < armed.function_end; };
    for (const auto &[at, site] : ground.sites)
        for (const Armed *other : site->probes)
            if (other != &armed && !other->dismissed && other->exits == Armed::Exits::watched &&
                other->function == armed.function)
                return;
    for (auto &[at, site] : ground.sites) {
        if (!site->exit || !within(at)) continue;
        site->exit = false;
        if (!is_needed(*site)) disarm(ground, *site);
    }
}

} // namespace

void enlist(Site &site, Armed &armed) {
    armed.on = false;
    site.probes.push_back(&armed);
}

Status switch_on(Ground &ground, Site &site, Armed &armed) {
    if (armed.on) return {};
    if (auto planted = arm(ground, site); !planted) return planted;
    armed.on = true;
    if (armed.kind == Armed::Kind::ret) ground.return_probes++;
    if (is_timed(armed)) ground.timed_probes++;
    return {};
}

void count_out(Ground &ground, Armed &armed) {
    if (armed.on && armed.kind == Armed::Kind::ret) ground.return_probes--;
    if (armed.on && is_timed(armed)) ground.timed_probes--;
    armed.on = false;
}

void switch_off(Ground &ground, Site &site, Armed &armed) {
    count_out(ground, armed);
    if (!is_needed(site)) disarm(ground, site);
}

void dismiss(Ground &ground, Site &site, Armed &armed) {
    switch_off(ground, site, armed);
    armed.dismissed = true;
    unwatch_exits(ground, armed);
}

void end_calls_of_dismissed(World &world, Traced &traced) {
    for (Instance *call : traced.ground->returns.all()) {
        if (!call->armed->dismissed) continue;
        end_unreturned(world, traced, *call);
    }
}

std::unordered_set<const Site *> sites_in_use(const World &world) {
    std::unordered_set<const Site *> used;
    for (const auto &[tid, task] : world.tasks)
        if (!task.post.empty()) used.insert(task.site);
    return used;
}

bool strike_off(Site &site, const Armed &armed, const std::unordered_set<const Site *> &in_use) {
    if (in_use.contains(&site)) return false;
    std::erase(site.probes, &armed);
    return true;
}

void keep_for_returns(Ground &ground, Site &site) {
    if (site.kept_for_returns) return;
    site.kept_for_returns = true;
    ground.return_sites++;
}

void drop_idle_return_sites(Ground &ground) {
    for (auto &[at, site] : ground.sites)
        if (site->kept_for_returns && site->returns == 0) drop_return_site(ground, *site);
}

void drop_return_site(Ground &ground, Site &site) {
    if (!site.kept_for_returns) return;
    site.kept_for_returns = false;
    ground.return_sites--;
    if (!is_needed(site)) disarm(ground, site);
}

} // namespace ktrace::trap
