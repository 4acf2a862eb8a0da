#include "trap/buried.h"

#include <algorithm>

#include "os/procfs.h"
#include "trap/calls.h"
#include "trap/roster.h"

namespace ktrace::trap {

namespace {

bool is_buried(const Ground &ground, const Site *site) {
    return std::any_of(ground.buried.begin(), ground.buried.end(),
                       [site](const Buried &each) { return each.site.get() == site; });
}

/// A task that sleeps outside of the slots is seen there without a stop.
void look_at(const World &world, const Ground &ground, Task &task, std::uint64_t since) {
    if (task.outside_at > since) return;
    if (os::has_ended(task.tid)) {
        task.outside_at = world.stops + 1;
        return;
    }
    auto place = os::read_task_place(task.pid, task.tid);
    if (place && !place->running && !ground.slots.contains(place->pc)) task.outside_at = world.stops + 1;
}

/// The moment since which every task of the address space was seen outside of the slots.
std::uint64_t quiet_since(World &world, const Ground &ground, std::uint64_t newest) {
    std::uint64_t moment = ~std::uint64_t{0};
    for (auto &[tid, task] : world.tasks) {
        const Traced *traced = world.process_of(task);
        if (!traced || traced->ground.get() != &ground) continue;
        if (task.site && is_buried(ground, task.site)) return 0;
        look_at(world, ground, task, newest);
        moment = std::min(moment, task.outside_at);
    }
    return moment;
}

} // namespace

void bury(World &world, Traced &traced, VirtAddr start, VirtAddr end) {
    Ground &ground = *traced.ground;
    auto within = [&](VirtAddr at) { return start <= at && at < end; };
    for (Instance *call : ground.returns.all()) {
        if (!within(call->site->at) && !within(call->frame.return_address)) continue;
        end_unreturned(world, traced, *call);
    }
    std::erase_if(ground.return_address_ok, [&](const auto &entry) { return within(entry.first); });
    for (auto it = ground.sites.begin(); it != ground.sites.end();) {
        if (!within(it->first)) {
            ++it;
            continue;
        }
        Site &site = *it->second;
        ground.space->forget(site.at);
        site.armed = site.exit = false;
        if (site.kept_for_returns) ground.return_sites--;
        site.kept_for_returns = false;
        for (Armed *armed : site.probes) count_out(ground, *armed);
        site.probes.clear();
        if (site.slot) ground.slots.retire(site.slot, world.stops);
        ground.buried.push_back({std::move(it->second), world.stops});
        it = ground.sites.erase(it);
    }
}

void reuse_slots(World &world, Ground &ground) {
    if (ground.buried.empty()) return;
    std::uint64_t quiet = quiet_since(world, ground, ground.buried.back().moment);
    ground.slots.release(quiet);
    auto is_free = [quiet](const Buried &each) { return each.moment < quiet; };
    for (const Buried &each : ground.buried)
        if (is_free(each) && each.site->slot) ground.by_slot.erase(each.site->slot);
    std::erase_if(ground.buried, is_free);
}

} // namespace ktrace::trap
