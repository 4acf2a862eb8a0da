#include "engine/calls/consumers.h"

#include <algorithm>

#include "engine/calls/calls.h"
#include "engine/calls/timing.h"

namespace ktrace::engine {

namespace {

bool is_needed(const Site &site) {
    return site.exit || site.kept_for_returns ||
           std::any_of(site.probes.begin(), site.probes.end(), [](const Attachment *armed) { return armed->on; });
}

/// The return instructions of the function are not watched any longer, if nobody else's calls end there.
void unwatch_exits(AddressSpaceState &space, Attachment &armed) {
    if (armed.exits != Attachment::Exits::watched) return;
    auto within = [&](VirtAddr at) { return armed.function <= at && at < armed.function_end; };
    for (const auto &[at, site] : space.sites)
        for (const Attachment *other : site->probes)
            if (other != &armed && !other->dismissed && other->exits == Attachment::Exits::watched &&
                other->function == armed.function)
                return;
    for (auto &[at, site] : space.sites) {
        if (!site->exit || !within(at)) continue;
        site->exit = false;
        if (!is_needed(*site)) disarm(space, *site);
    }
}

} // namespace

void enlist(Site &site, Attachment &armed) {
    armed.on = false;
    site.probes.push_back(&armed);
}

Status switch_on(AddressSpaceState &space, Site &site, Attachment &armed) {
    if (armed.on) return {};
    if (auto planted = arm(space, site); !planted) return planted;
    armed.on = true;
    if (armed.kind == Attachment::Kind::ret) space.return_probes++;
    if (is_timed(armed)) space.timed_probes++;
    return {};
}

void count_out(AddressSpaceState &space, Attachment &armed) {
    if (armed.on && armed.kind == Attachment::Kind::ret) space.return_probes--;
    if (armed.on && is_timed(armed)) space.timed_probes--;
    armed.on = false;
}

void switch_off(AddressSpaceState &space, Site &site, Attachment &armed) {
    count_out(space, armed);
    if (!is_needed(site)) disarm(space, site);
}

void dismiss(AddressSpaceState &space, Site &site, Attachment &armed) {
    switch_off(space, site, armed);
    armed.dismissed = true;
    unwatch_exits(space, armed);
}

void end_calls_of_dismissed(Engine &engine, Process &process) {
    for (Instance *call : process.space->returns.all()) {
        if (!call->armed->dismissed) continue;
        end_unreturned(engine, process, *call);
    }
}

std::unordered_set<const Site *> sites_in_use(const Engine &engine) {
    std::unordered_set<const Site *> used;
    for (const auto &[tid, task] : engine.tasks)
        if (!task.post.empty()) used.insert(task.site);
    return used;
}

bool remove_from_site(Site &site, const Attachment &armed, const std::unordered_set<const Site *> &in_use) {
    if (in_use.contains(&site)) return false;
    std::erase(site.probes, &armed);
    return true;
}

void keep_for_returns(AddressSpaceState &space, Site &site) {
    if (site.kept_for_returns) return;
    site.kept_for_returns = true;
    space.return_sites++;
}

void drop_idle_return_sites(AddressSpaceState &space) {
    for (auto &[at, site] : space.sites)
        if (site->kept_for_returns && site->returns == 0) drop_return_site(space, *site);
}

void drop_return_site(AddressSpaceState &space, Site &site) {
    if (!site.kept_for_returns) return;
    site.kept_for_returns = false;
    space.return_sites--;
    if (!is_needed(site)) disarm(space, site);
}

} // namespace ktrace::engine
