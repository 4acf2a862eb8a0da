#include "engine/calls/consumers.h"

#include <algorithm>

#include "engine/calls/calls.h"
#include "engine/calls/timing.h"

namespace ktrace::engine {

namespace {

/// The return instructions of the function are not watched any longer, unless calls of other probes end there.
void unwatch_exits(AddressSpaceState &space, Attachment &attachment) {
    if (attachment.exits != Attachment::Exits::watched) return;
    auto within = [&](VirtAddr at) { return attachment.function <= at && at < attachment.function_end; };
    for (const auto &[at, site] : space.sites)
        for (const Attachment *other : site->attachments)
            if (other != &attachment && !other->dismissed && other->exits == Attachment::Exits::watched &&
                other->function == attachment.function)
                return;
    for (auto &[at, site] : space.sites) {
        if (!site->exit || !within(at)) continue;
        site->exit = false;
        if (!is_needed(*site)) disarm(space, *site);
    }
}

} // namespace

bool is_needed(const Site &site) {
    auto is_on = [](const auto *consumer) { return consumer->on; };
    return site.exit || site.kept_for_returns || site.doubtful > 0 ||
           std::any_of(site.attachments.begin(), site.attachments.end(), is_on) ||
           std::any_of(site.internal.begin(), site.internal.end(), is_on);
}

void enlist(Site &site, Attachment &attachment) {
    attachment.on = false;
    site.attachments.push_back(&attachment);
}

Status switch_on(AddressSpaceState &space, Site &site, Attachment &attachment) {
    if (attachment.on) return {};
    if (auto planted = arm(space, site); !planted) return planted;
    attachment.on = true;
    space.has_new_probes = true;
    if (attachment.kind == Attachment::Kind::ret) space.return_probes++;
    if (is_timed(attachment)) space.timed_probes++;
    return {};
}

void enlist(Site &site, InternalBreakpoint &breakpoint) {
    breakpoint.on = false;
    site.internal.push_back(&breakpoint);
}

Status switch_on(AddressSpaceState &space, Site &site, InternalBreakpoint &breakpoint) {
    if (breakpoint.on) return {};
    if (auto planted = arm(space, site); !planted) return planted;
    breakpoint.on = true;
    return {};
}

void switch_off(AddressSpaceState &space, Site &site, InternalBreakpoint &breakpoint) {
    breakpoint.on = false;
    if (!is_needed(site)) disarm(space, site);
}

void count_out(AddressSpaceState &space, Attachment &attachment) {
    if (attachment.on && attachment.kind == Attachment::Kind::ret) space.return_probes--;
    if (attachment.on && is_timed(attachment)) space.timed_probes--;
    attachment.on = false;
}

void switch_off(AddressSpaceState &space, Site &site, Attachment &attachment) {
    count_out(space, attachment);
    space.has_new_probes = true; // others may become jumps without it
    if (!is_needed(site)) disarm(space, site);
}

void dismiss(AddressSpaceState &space, Site &site, Attachment &attachment) {
    switch_off(space, site, attachment);
    attachment.dismissed = true;
    unwatch_exits(space, attachment);
}

void end_calls_of_dismissed(Engine &engine, Process &process) {
    for (Instance *call : process.space->returns.all()) {
        if (!call->attachment->dismissed) continue;
        call->attachment->counters->in_flight++; // it may return yet, unseen
        end_unreturned(engine, process, *call);
    }
}

std::unordered_set<const Site *> sites_in_use(const Engine &engine) {
    std::unordered_set<const Site *> used;
    for (const auto &[tid, task] : engine.tasks)
        if (!task.step.post.empty()) used.insert(task.step.site);
    return used;
}

bool remove_from_site(Site &site, const Attachment &attachment, const std::unordered_set<const Site *> &in_use) {
    if (in_use.contains(&site)) return false;
    std::erase(site.attachments, &attachment);
    return true;
}

void drop_doubt(AddressSpaceState &space, Site &site) {
    if (--site.doubtful == 0 && !is_needed(site)) disarm(space, site);
}

void keep_for_returns(AddressSpaceState &space, Site &site) {
    if (site.kept_for_returns) return;
    site.kept_for_returns = true;
    space.return_sites++;
    space.new_returns++;
    if (space.threads) space.threads->know_return(site.at);
}

void drop_idle_return_sites(AddressSpaceState &space) {
    if (space.return_sites == 0) return;
    if (space.threads && space.return_probes > 0) return; // it is not known which calls of the agent return to where
    if (space.threads) space.threads->forget_all_calls();
    for (auto &[at, site] : space.sites)
        if (site->kept_for_returns && site->returns == 0) drop_return_site(space, *site);
}

void drop_return_site(AddressSpaceState &space, Site &site) {
    if (!site.kept_for_returns) return;
    site.kept_for_returns = false;
    space.return_sites--;
    if (space.threads) space.threads->forget_return(site.at);
    if (!is_needed(site)) disarm(space, site);
}

} // namespace ktrace::engine
