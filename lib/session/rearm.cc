#include "session/rearm.h"

#include <algorithm>
#include <map>
#include <set>

#include <elf.h>

#include "session/registry.h"
#include "session/tripwires.h"
#include "trap/buried.h"
#include "trap/roster.h"
#include "trap/watch.h"

namespace ktrace::session {

using trap::Armed;
using trap::Traced;

namespace {

constexpr std::size_t return_slots = 1024; // kept ready for return addresses, near each module with return probes

/// The extent of the module (or the mapping) that an address is in: slots for it must reach all of that.
std::pair<VirtAddr, VirtAddr> neighbourhood(const Traced &traced, VirtAddr at) {
    if (const target::LoadedModule *m = target::module_at(traced.process.modules, at)) return {m->start, m->end};
    return {at, at + 1};
}

/// Slots that are wanted in [low, high).
struct Demand {
    VirtAddr low, high;
    std::size_t slots = 0;
};

/// What there is no room for yet.
std::vector<Demand> unmet_demands(State &state, Traced &traced, const std::vector<PlannedSite> &planned) {
    bool returns = std::any_of(planned.begin(), planned.end(),
                               [](const PlannedSite &p) { return p.armed->kind == Armed::Kind::ret; });
    trap::reuse_slots(state.world, *traced.ground);
    // Handed out on trial: modules that reach the same arena share its room.
    trap::Slots trial = traced.ground->slots;
    std::map<VirtAddr, Demand> wanted;
    std::set<const trap::Site *> seen;
    for (const PlannedSite &p : planned) {
        if (p.site->slot || !seen.insert(p.site).second) continue;
        auto [low, high] = neighbourhood(traced, p.site->at);
        Demand &demand = wanted.try_emplace(low, Demand{low, high}).first->second;
        if (arch::takes_slot(p.site->plan) && !trial.take(p.site->at)) demand.slots++;
    }
    std::vector<Demand> unmet;
    for (auto &[low, demand] : wanted) {
        std::size_t ready = returns ? return_slots : 0;
        if (demand.slots == 0 && trial.room(low) >= ready) continue;
        demand.slots += ready;
        unmet.push_back(demand);
    }
    return unmet;
}

/// How many traps of the plan and of calls' returns are to be told in the rescue page.
std::size_t rescue_demand(const std::vector<PlannedSite> &planned) {
    bool returns = std::any_of(planned.begin(), planned.end(),
                               [](const PlannedSite &p) { return p.armed->kind == Armed::Kind::ret; });
    return planned.size() + (returns ? return_slots : 0);
}

/// Before anything is planted that nobody gets over.
Status owe(State &state, const Traced &traced) {
    trap::Ground &ground = *traced.ground;
    if (!ground.owes_room && !ground.rescue.mapped()) withhold_traps(state, traced.ground);
    ground.owes_room = true;
    return {};
}

/// Maps arenas so that every site can have its slot, and makes room in the rescue page.
Status make_room(State &state, Traced &traced, const std::vector<PlannedSite> &planned, os::Stopped *stopped) {
    const std::size_t told = rescue_demand(planned);
    if (!trap::rescue_has_room(*traced.ground, told)) {
        if (!stopped) return owe(state, traced);
        auto made = trap::prepare_rescue(*traced.ground, traced.process, state.world.waiter, *stopped, told);
        tell_of_page(state, traced);
        if (!made) return made;
    }
    for (const Demand &demand : unmet_demands(state, traced, planned)) {
        if (!stopped) return owe(state, traced);
        auto mapped = trap::map_arena(*traced.ground, traced.process, state.world.waiter, *stopped, demand.low,
                                      demand.high, demand.slots);
        if (!mapped) return mapped;
    }
    return {};
}

Status plant(trap::Ground &ground, const PlannedSite &planned) {
    Status armed = trap::arm(ground, *planned.site);
    if (!armed) return fail(armed.error().kind, planned.name + ": " + armed.error().message);
    trap::enlist(*planned.site, *planned.armed);
    return {};
}

/// The guardian is told of every trap that is written and that no page tells of.
void tell_guardian(State &state, const Traced &traced, const std::vector<PlannedSite> &planned) {
    for (const PlannedSite &p : planned)
        trap::tell_of_untold(state.world.ledger, traced.process.pid, *traced.ground, p.site->at);
}

/// All that is planted by the session in one address space.
std::vector<PlannedSite> planted_sites(State &state, Traced &traced) {
    std::vector<PlannedSite> planted;
    const Arming &arming = state.armings[traced.ground.get()];
    auto add = [&](VirtAddr at, trap::Armed &armed) {
        trap::Site *site = traced.ground->site_at(at);
        if (site && site->armed) planted.push_back({site, &armed, {}});
    };
    for (const auto &location : arming.locations) add(location->at, location->armed);
    for (const auto &internal : arming.internal) add(internal->at, internal->armed);
    return planted;
}

void roll_back(trap::Ground &ground, const std::vector<PlannedSite> &planted) {
    for (const PlannedSite &p : planted) {
        std::erase(p.site->probes, p.armed);
        trap::switch_off(ground, *p.site, *p.armed);
    }
}

/// The sites of a plan are planted: what is on begins to be seen.
void switch_on_planted(State &state, trap::Ground &ground, const std::vector<PlannedSite> &planted) {
    for (const PlannedSite &p : planted) {
        bool ours = p.armed->counters == nullptr;
        if (!ours) {
            const probe::Registered &registered = state.registry.at(state.locations[p.armed->location]->probe);
            if (!registered.ready) continue; // planted, and switched on with the rest of its set
            ours = is_on(state, *state.locations[p.armed->location]);
        }
        if (!ours || !trap::switch_on(ground, *p.site, *p.armed)) trap::switch_off(ground, *p.site, *p.armed);
    }
}

} // namespace

void tell_of_page(State &state, const Traced &traced) {
    if (!state.world.ledger) return;
    for (const auto &[pid, each] : state.world.processes)
        if (each->ground == traced.ground) state.world.ledger->cover(Pid{pid}, traced.ground->rescue.address());
}

bool has_room(State &state, Traced &traced, const ArmPlan &plan) {
    auto planned = plan_sites(state, traced, plan);
    return !planned || (trap::rescue_has_room(*traced.ground, rescue_demand(*planned)) &&
                        unmet_demands(state, traced, *planned).empty());
}

Status carry_out(State &state, Traced &traced, ArmPlan plan, os::Stopped *stopped) {
    trap::Ground &ground = *traced.ground;
    auto planned = plan_sites(state, traced, plan);
    if (!planned) return tl::make_unexpected(planned.error());
    if (auto room = make_room(state, traced, *planned, stopped); !room) return room;
    tell_guardian(state, traced, *planned);
    std::vector<PlannedSite> planted;
    for (const PlannedSite &p : *planned) {
        if (auto done = plant(ground, p); !done) {
            roll_back(ground, planted);
            return done;
        }
        planted.push_back(p);
    }
    switch_on_planted(state, ground, planted);
    Arming &arming = state.armings[traced.ground.get()];
    for (auto &location : plan.locations) {
        CountedLocation &counted = *state.locations[location->location];
        if (const auto &watch = location->watch) {
            location->armed.on = is_on(state, counted); // false where it waits for the rest of its set
            trap::add_watch(state.world, ground, {0, &location->armed, watch->at, watch->in_thread, watch->parts, {}});
        }
        counted.last_at = location->at;
        state.registry.at(counted.probe).placed = true;
        arming.locations.push_back(std::move(location));
    }
    arming.unwinders.insert(plan.unwinders.begin(), plan.unwinders.end());
    for (auto &internal : plan.internal) arming.internal.push_back(std::move(internal));
    for (WaitingIfunc &ifunc : plan.ifuncs) {
        state.registry.at(ifunc.probe).placed = true;
        arming.ifuncs.push_back(std::move(ifunc));
    }
    watch_returns(state, traced);
    return {};
}

namespace {

/// Errors: refused, gone; it is owed still.
Status make_owed_room(State &state, Traced &traced, std::optional<os::Stopped> &stopped) {
    trap::Ground &ground = *traced.ground;
    if (!leave_tripwire(state, stopped)) return fail(Error::Kind::gone, "the task has stopped for something else");
    const std::vector<PlannedSite> planted = planted_sites(state, traced);
    if (auto room = make_room(state, traced, planted, &*stopped); !room) return room;
    ground.owes_room = false;
    Status furnished;
    for (const PlannedSite &p : planted)
        if (auto one = trap::furnish(ground, *p.site); !one && furnished) furnished = one;
    ground.owes_room = !furnished;
    if (!furnished) return furnished;
    if (auto sprung = release_traps(state, traced.ground); !sprung) return sprung;
    for (const auto &[pid, each] : state.world.processes)
        if (state.world.ledger && each->ground == traced.ground) state.world.ledger->forget_untold(Pid{pid});
    return {};
}

} // namespace

void pay_owed_room(State &state, Traced &traced, std::optional<os::Stopped> &stopped) {
    auto made = make_owed_room(state, traced, stopped);
    if (made || made.error().kind == Error::Kind::gone) return;
    state.voice.complain(made.error());
    state.trouble = 1;
    state.world.closing = true;
}

Status watch_loader(State &state, Traced &traced, os::Stopped *stopped) {
    auto base = os::read_auxv(traced.process.pid, AT_BASE);
    if (!base || *base == 0) return {};
    const target::LoadedModule *loader = target::module_at(traced.process.modules, VirtAddr{*base});
    if (!loader) return {};
    auto symbols = loader->module->named("_dl_debug_state");
    if (symbols.empty()) return {};
    VirtAddr at{symbols.front()->vaddr + loader->bias};
    const Arming &arming = state.armings[traced.ground.get()];
    auto watches = [at](const auto &site) { return site->at == at && site->armed.kind == Armed::Kind::loader; };
    if (std::any_of(arming.internal.begin(), arming.internal.end(), watches)) return {};
    ArmPlan plan;
    plan_internal(plan, Armed::Kind::loader, at);
    return carry_out(state, traced, std::move(plan), stopped);
}

namespace {

/// Sites that only return probes need.
bool serves_returns(Armed::Kind kind) {
    return kind == Armed::Kind::unwinds || kind == Armed::Kind::stack_leaves || kind == Armed::Kind::stack_arrives;
}

} // namespace

void watch_returns(State &state, Traced &traced) {
    trap::Ground &ground = *traced.ground;
    bool wanted = ground.return_probes > 0;
    if (ground.timed_probes > 0) state.world.waiter.look_often(true);
    bool unwatched = false; // what happened in the meantime is not known
    for (const auto &internal : state.armings[traced.ground.get()].internal) {
        trap::Site *site = ground.site_at(internal->at);
        if (!serves_returns(internal->armed.kind) || internal->armed.on == wanted || !site) continue;
        unwatched = unwatched || wanted;
        if (!wanted || !trap::switch_on(ground, *site, internal->armed))
            trap::switch_off(ground, *site, internal->armed);
    }
    if (unwatched)
        for (auto &[tid, task] : state.world.tasks) task.unwinds++;
    if (!wanted) trap::drop_idle_return_sites(ground);
}

} // namespace ktrace::session
