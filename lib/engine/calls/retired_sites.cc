#include "engine/calls/retired_sites.h"

#include <algorithm>

#include "engine/calls/calls.h"
#include "engine/calls/consumers.h"
#include "os/proc/procfs.h"

namespace ktrace::engine {

namespace {

bool is_retired(const AddressSpaceState &space, const Site *site) {
    return std::any_of(space.retired_sites.begin(), space.retired_sites.end(),
                       [site](const RetiredSite &each) { return each.site.get() == site; });
}

/// A task that sleeps outside of the slots is seen there without a stop.
void look_at(const Engine &engine, const AddressSpaceState &space, Task &task, std::uint64_t since) {
    if (task.outside_at > since) return;
    if (os::has_ended(task.tid)) {
        task.outside_at = engine.stops + 1;
        return;
    }
    auto place = os::read_task_place(task.pid, task.tid);
    if (place && !place->running && !space.slots.contains(place->pc)) task.outside_at = engine.stops + 1;
}

/// The moment since which every task of the address space was seen outside of the slots.
std::uint64_t quiet_since(Engine &engine, const AddressSpaceState &space, std::uint64_t newest) {
    std::uint64_t moment = ~std::uint64_t{0};
    for (auto &[tid, task] : engine.tasks) {
        const Process *process = engine.process_of(task);
        if (!process || process->space.get() != &space) continue;
        if (task.step.site && is_retired(space, task.step.site)) return 0;
        look_at(engine, space, task, newest);
        moment = std::min(moment, task.outside_at);
    }
    return moment;
}

} // namespace

void retire_site(Engine &engine, Process &process, VirtAddr start, VirtAddr end) {
    AddressSpaceState &space = *process.space;
    auto within = [&](VirtAddr at) { return start <= at && at < end; };
    for (Instance *call : space.returns.all()) {
        const bool was_made_there = call->doubtful_at && within(call->doubtful_at->at);
        if (!within(call->site->at) && !within(call->frame.return_address) && !was_made_there) continue;
        end_unreturned(engine, process, *call);
    }
    forget_jumps(space, start, end);
    std::erase_if(space.caller_ok, [&](const auto &entry) { return within(entry.first); });
    std::erase_if(space.call_instructions, [&](const auto &entry) { return within(entry.first - 1); });
    for (auto it = space.sites.begin(); it != space.sites.end();) {
        if (!within(it->first)) {
            ++it;
            continue;
        }
        Site &site = *it->second;
        space.memory->forget(site.at);
        site.armed = site.exit = false;
        if (site.kept_for_returns) space.return_sites--;
        if (site.kept_for_returns && space.threads) space.threads->forget_return(site.at);
        site.kept_for_returns = false;
        for (Attachment *attachment : site.attachments) count_out(space, *attachment);
        site.attachments.clear();
        site.internal.clear();
        if (site.slot) space.slots.retire(site.slot, engine.stops);
        space.retired_sites.push_back({std::move(it->second), engine.stops});
        it = space.sites.erase(it);
    }
}

void reuse_slots(Engine &engine, AddressSpaceState &space) {
    if (space.retired_sites.empty()) return;
    std::uint64_t quiet = quiet_since(engine, space, space.retired_sites.back().moment);
    space.slots.release(quiet);
    auto is_free = [quiet](const RetiredSite &each) { return each.moment < quiet; };
    for (const RetiredSite &each : space.retired_sites)
        if (is_free(each) && each.site->slot) space.by_slot.erase(each.site->slot);
    std::erase_if(space.retired_sites, is_free);
}

} // namespace ktrace::engine
