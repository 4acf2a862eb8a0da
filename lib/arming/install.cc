#include "arming/install.h"

#include <algorithm>
#include <map>
#include <set>

#include "arming/registry.h"
#include "engine/calls/consumers.h"
#include "engine/calls/retired_sites.h"
#include "engine/watch/watch.h"
#include "target/loader.h"
#include "tracees/tripwires.h"

namespace ktrace::arming {

using engine::Attachment;
using engine::Process;

namespace {

/// At the loader's breakpoint: its list of modules has changed.
constexpr engine::InternalPurpose loads_modules{.raises = engine::EventKind::loader, .is_seldom = true};

constexpr std::size_t return_slots = 1024; // kept ready for return addresses, near each module with return probes

/// The extent of the module (or the mapping) that an address is in: slots for it must reach all of that.
std::pair<VirtAddr, VirtAddr> neighbourhood(const Process &process, VirtAddr at) {
    if (const target::LoadedModule *m = target::module_at(process.target.modules, at)) return {m->start, m->end};
    return {at, at + 1};
}

bool has_return_probe(const std::vector<PlannedSite> &planned) {
    return std::any_of(planned.begin(), planned.end(), [](const PlannedSite &p) {
        const auto *attachment = std::get_if<Attachment *>(&p.consumer);
        return attachment && (*attachment)->kind == Attachment::Kind::ret;
    });
}

/// Slots that are wanted in [low, high).
struct Demand {
    VirtAddr low, high;
    std::size_t slots = 0;
};

/// What there is no room for yet.
std::vector<Demand> unmet_demands(trace::Trace &trace, Process &process, const std::vector<PlannedSite> &planned) {
    const bool returns = has_return_probe(planned);
    engine::reuse_slots(trace.engine, *process.space);
    // Handed out on trial: modules that reach the same arena share its room.
    engine::Slots trial = process.space->slots;
    std::map<VirtAddr, Demand> wanted;
    std::set<const engine::Site *> seen;
    for (const PlannedSite &p : planned) {
        if (p.site->slot || !seen.insert(p.site).second) continue;
        auto [low, high] = neighbourhood(process, p.site->at);
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
std::size_t recovery_demand(const std::vector<PlannedSite> &planned) {
    return planned.size() + (has_return_probe(planned) ? return_slots : 0);
}

/// Before anything is planted that nobody gets over.
Status owe(trace::Trace &trace, const Process &process) {
    engine::AddressSpaceState &space = *process.space;
    if (!space.owes_room && !space.recovery.mapped()) tracees::withhold_traps(trace, process.space);
    space.owes_room = true;
    return {};
}

/// Maps arenas so that every site can have its slot, and makes room in the rescue page.
Status make_room(trace::Trace &trace, Process &process, const std::vector<PlannedSite> &planned, os::Stopped *stopped) {
    const std::size_t told = recovery_demand(planned);
    if (!engine::recovery_has_room(*process.space, told)) {
        if (!stopped) return owe(trace, process);
        auto made = engine::prepare_recovery(*process.space, process.target, trace.engine.waiter, *stopped, told);
        tell_of_page(trace, process);
        if (!made) return made;
    }
    for (const Demand &demand : unmet_demands(trace, process, planned)) {
        if (!stopped) return owe(trace, process);
        auto mapped = engine::map_arena(*process.space, process.target, trace.engine.waiter, *stopped, demand.low,
                                        demand.high, demand.slots);
        if (!mapped) return mapped;
    }
    return {};
}

Status plant(engine::AddressSpaceState &space, const PlannedSite &planned) {
    Status armed = engine::arm(space, *planned.site);
    if (!armed) return fail(armed.error().kind, planned.name + ": " + armed.error().message);
    std::visit([&](auto *consumer) { engine::enlist(*planned.site, *consumer); }, planned.consumer);
    return {};
}

/// The guardian is told of every trap that is written and that no page tells of.
void tell_guardian(trace::Trace &trace, const Process &process, const std::vector<PlannedSite> &planned) {
    for (const PlannedSite &p : planned)
        engine::tell_of_untold(trace.engine.ledger, process.target.pid, *process.space, p.site->at);
}

/// All that is planted by the session in one address space.
std::vector<PlannedSite> planted_sites(trace::Trace &trace, Process &process) {
    std::vector<PlannedSite> planted;
    const trace::Arming &arming = trace.armings[process.space.get()];
    auto add = [&](VirtAddr at, auto &consumer) {
        engine::Site *site = process.space->site_at(at);
        if (site && site->armed) planted.push_back({site, &consumer, {}});
    };
    for (const auto &location : arming.locations) add(location->at, location->attachment);
    for (const auto &internal : arming.internal) add(internal->at, *internal);
    return planted;
}

void remove_from(engine::Site &site, Attachment *attachment) { std::erase(site.attachments, attachment); }
void remove_from(engine::Site &site, engine::InternalBreakpoint *breakpoint) { std::erase(site.internal, breakpoint); }

void roll_back(engine::AddressSpaceState &space, const std::vector<PlannedSite> &planted) {
    for (const PlannedSite &p : planted)
        std::visit(
            [&](auto *consumer) {
                remove_from(*p.site, consumer);
                engine::switch_off(space, *p.site, *consumer);
            },
            p.consumer);
}

/// An attachment of a set that is not ready stays planted, and is switched on with the rest of its set.
enum class Switch : std::uint8_t { on, off, later };

Switch switch_of(const trace::Trace &trace, const Attachment &attachment) {
    const trace::CountedLocation &location = *trace.locations[attachment.location];
    if (!trace.registry.at(location.probe).ready) return Switch::later;
    return is_on(trace, location) ? Switch::on : Switch::off;
}

Switch switch_of(const trace::Trace & /*trace*/, const engine::InternalBreakpoint & /*breakpoint*/) {
    return Switch::on;
}

/// The sites of a plan are planted: what is on begins to be seen.
void switch_planted(trace::Trace &trace, engine::AddressSpaceState &space, const std::vector<PlannedSite> &planted) {
    for (const PlannedSite &p : planted)
        std::visit(
            [&](auto *consumer) {
                const Switch wanted = switch_of(trace, *consumer);
                if (wanted == Switch::later) return;
                if (wanted == Switch::off || !engine::switch_on(space, *p.site, *consumer))
                    engine::switch_off(space, *p.site, *consumer);
            },
            p.consumer);
}

} // namespace

void tell_of_page(trace::Trace &trace, const Process &process) {
    if (!trace.engine.ledger) return;
    for (const auto &[pid, each] : trace.engine.processes)
        if (each->space == process.space) trace.engine.ledger->cover(Pid{pid}, process.space->recovery.address());
}

bool has_room(trace::Trace &trace, Process &process, const ArmPlan &plan) {
    auto planned = plan_sites(trace, process, plan);
    return !planned || (engine::recovery_has_room(*process.space, recovery_demand(*planned)) &&
                        unmet_demands(trace, process, *planned).empty());
}

Status install(trace::Trace &trace, Process &process, ArmPlan plan, os::Stopped *stopped) {
    engine::AddressSpaceState &space = *process.space;
    auto planned = plan_sites(trace, process, plan);
    if (!planned) return tl::make_unexpected(planned.error());
    if (auto room = make_room(trace, process, *planned, stopped); !room) return room;
    tell_guardian(trace, process, *planned);
    std::vector<PlannedSite> planted;
    for (const PlannedSite &p : *planned) {
        if (auto done = plant(space, p); !done) {
            roll_back(space, planted);
            return done;
        }
        planted.push_back(p);
    }
    switch_planted(trace, space, planted);
    trace::Arming &arming = trace.armings[process.space.get()];
    for (auto &location : plan.locations) {
        trace::CountedLocation &counted = *trace.locations[location->location];
        if (const auto &watch = location->watch) {
            location->attachment.on = is_on(trace, counted); // false where it waits for the rest of its set
            engine::add_watch(trace.engine, space,
                              {0, &location->attachment, watch->at, watch->in_thread, watch->parts, {}});
        }
        counted.last_at = location->at;
        trace.registry.at(counted.probe).placed = true;
        arming.locations.push_back(std::move(location));
    }
    arming.unwinders.insert(plan.unwinders.begin(), plan.unwinders.end());
    for (auto &internal : plan.internal) arming.internal.push_back(std::move(internal));
    for (trace::WaitingIfunc &ifunc : plan.ifuncs) {
        trace.registry.at(ifunc.probe).placed = true;
        arming.ifuncs.push_back(std::move(ifunc));
    }
    watch_returns(trace, process);
    return {};
}

namespace {

/// Errors: refused, gone; it is owed still.
Status make_owed_room(trace::Trace &trace, Process &process, std::optional<os::Stopped> &stopped) {
    engine::AddressSpaceState &space = *process.space;
    if (!tracees::leave_tripwire(trace, stopped))
        return fail(Error::Kind::gone, "the task has stopped for something else");
    const std::vector<PlannedSite> planted = planted_sites(trace, process);
    if (auto room = make_room(trace, process, planted, &*stopped); !room) return room;
    space.owes_room = false;
    Status furnished;
    for (const PlannedSite &p : planted)
        if (auto one = engine::furnish(space, *p.site); !one && furnished) furnished = one;
    space.owes_room = !furnished;
    if (!furnished) return furnished;
    if (auto sprung = tracees::release_traps(trace, process.space); !sprung) return sprung;
    for (const auto &[pid, each] : trace.engine.processes)
        if (trace.engine.ledger && each->space == process.space) trace.engine.ledger->forget_untold(Pid{pid});
    return {};
}

} // namespace

void pay_owed_room(trace::Trace &trace, Process &process, std::optional<os::Stopped> &stopped) {
    auto made = make_owed_room(trace, process, stopped);
    if (made || made.error().kind == Error::Kind::gone) return;
    trace.voice.complain(made.error());
    trace.trouble = 1;
    trace.engine.closing = true;
}

Status watch_loader(trace::Trace &trace, Process &process, os::Stopped *stopped) {
    auto at = target::loader_breakpoint(process.target);
    if (!at) return {};
    const trace::Arming &arming = trace.armings[process.space.get()];
    auto watches = [at](const auto &internal) { return internal->at == *at && internal->purpose == &loads_modules; };
    if (std::any_of(arming.internal.begin(), arming.internal.end(), watches)) return {};
    ArmPlan plan;
    plan_internal(plan, loads_modules, *at);
    return install(trace, process, std::move(plan), stopped);
}

void watch_returns(trace::Trace &trace, Process &process) {
    engine::AddressSpaceState &space = *process.space;
    bool wanted = space.return_probes > 0;
    if (space.timed_probes > 0) trace.engine.waiter.look_often(true);
    bool unwatched = false; // what happened in the meantime is not known
    for (const auto &internal : trace.armings[process.space.get()].internal) {
        engine::Site *site = space.site_at(internal->at);
        if (!internal->purpose->serves_returns || internal->on == wanted || !site) continue;
        unwatched = unwatched || wanted;
        if (!wanted || !engine::switch_on(space, *site, *internal)) engine::switch_off(space, *site, *internal);
    }
    if (unwatched)
        for (auto &[tid, task] : trace.engine.tasks) task.unwinds++;
    if (!wanted) engine::drop_idle_return_sites(space);
}

} // namespace ktrace::arming
