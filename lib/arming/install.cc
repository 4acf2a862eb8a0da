#include "arming/install.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <variant>

#include "arming/internal_sites.h"
#include "arming/syscall_sites.h"
#include "base/check.h"
#include "engine/calls/consumers.h"
#include "engine/calls/retired_sites.h"
#include "engine/watch/watch.h"
#include "target/loader.h"
#include "tracees/stop.h"

namespace ktrace::arming {

using engine::Attachment;
using engine::Process;

namespace {

constexpr std::size_t return_slots = 1024; // kept ready for return addresses, near each module with return probes

/// The extent of the module (or the mapping) that an address is in: slots for it must reach all of that.
std::pair<VirtAddr, VirtAddr> neighbourhood(const Process &process, VirtAddr at) {
    if (const target::LoadedModule *m = target::module_at(process.target.modules, at)) return {m->start, m->end};
    return {at, at + 1};
}

/// A site of a plan, with its consumers.
struct PlannedSite {
    engine::Site *site = nullptr;
    std::variant<Attachment *, engine::InternalBreakpoint *> consumer;
    std::string name;
};

std::vector<const engine::Site *> sites_of(const std::vector<PlannedSite> &planned) {
    std::vector<const engine::Site *> sites;
    for (const PlannedSite &p : planned) sites.push_back(p.site);
    return sites;
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

/// The demands that there is no room for yet. `returns`: there are return probes among them.
std::vector<Demand> unmet_demands(trace::Trace &trace, Process &process, const std::vector<const engine::Site *> &sites,
                                  bool returns) {
    engine::reuse_slots(trace.engine, *process.space);
    // Handed out on trial: modules that reach the same arena share its room.
    engine::Slots trial = process.space->slots;
    std::map<VirtAddr, Demand> wanted;
    std::set<const engine::Site *> seen;
    for (const engine::Site *site : sites) {
        if (site->slot || !seen.insert(site).second) continue;
        auto [low, high] = neighbourhood(process, site->at);
        Demand &demand = wanted.try_emplace(low, Demand{low, high}).first->second;
        if (arch::takes_slot(site->plan) && !trial.take(site->at)) demand.slots++;
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

/// How many traps, of the plan and at calls' returns, the recovery page has to list.
std::size_t recovery_demand(std::size_t sites, bool returns) { return sites + (returns ? return_slots : 0); }

/// Maps arenas so that every site can have its slot, and makes room in the recovery page.
Status make_room(trace::Trace &trace, Process &process, const std::vector<PlannedSite> &planned, os::Stopped *stopped) {
    const bool returns = has_return_probe(planned);
    const std::size_t told = recovery_demand(planned.size(), returns);
    if (!engine::recovery_has_room(*process.space, told)) {
        KT_CHECK(stopped);
        const bool has_action = process.space->recovery.mapped();
        auto made = engine::prepare_recovery(*process.space, process.target, trace.engine.waiter, *stopped, told);
        tell_of_page(trace, process);
        if (!made) return made;
        // A fork that is under way may have copied the action that was there before, and copies the memory later, with
        // the traps: its child would die by one, should both processes of ktrace be killed before it is seen.
        if (!has_action && trace.config.follow) tracees::let_forks_end(trace, process.space);
    }
    for (const Demand &demand : unmet_demands(trace, process, sites_of(planned), returns)) {
        KT_CHECK(stopped);
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

/// Notes in the ledger each trap that is written and is in no page.
void tell_guardian(trace::Trace &trace, const Process &process, const std::vector<PlannedSite> &planned) {
    for (const PlannedSite &p : planned)
        engine::note_pageless_trap(trace.engine.ledger, process.target.pid, *process.space, p.site->at);
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
    const trace::CountedLocation &location = *trace.installed.locations[attachment.location];
    if (!trace.registry.at(location.probe).ready) return Switch::later;
    return trace::is_on(trace, location) ? Switch::on : Switch::off;
}

Switch switch_of(const trace::Trace & /*trace*/, const engine::InternalBreakpoint & /*breakpoint*/) {
    return Switch::on;
}

/// The sites of a plan are planted: attachments that are on begin to see hits.
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

bool has_room(trace::Trace &trace, Process &process, const InstallPlan &plan) {
    std::vector<const engine::Site *> sites;
    auto add = [&](VirtAddr at) {
        if (auto site = engine::make_site(*process.space, at)) sites.push_back(*site);
    };
    for (const PlannedLocation &location : plan.locations)
        if (!location.watch) add(location.at());
    for (const auto &internal : plan.internal) add(internal->at);
    const bool returns = plan.has_return_probe();
    return engine::recovery_has_room(*process.space, recovery_demand(sites.size(), returns)) &&
           unmet_demands(trace, process, sites, returns).empty();
}

namespace {

Attachment::Kind kind_of(probe::Kind kind) {
    switch (kind) {
    case probe::Kind::entry: return Attachment::Kind::entry;
    case probe::Kind::ret: return Attachment::Kind::ret;
    case probe::Kind::watch: return Attachment::Kind::watch;
    default: return Attachment::Kind::probe;
    }
}

/// The counted location of this place, a new one where there is none yet.
std::size_t counted_location(trace::Trace &trace, const PlannedLocation &planned, program::LocationInfo info) {
    const probe::Location &location = planned.location;
    auto [known, is_new] = trace.installed.location_of.try_emplace(
        {planned.probe, location.module.get(), location.vaddr, location.instance}, trace.installed.locations.size());
    if (!is_new) return known->second;
    auto made = std::make_unique<trace::CountedLocation>();
    made->probe = planned.probe;
    made->module = location.module.get();
    made->vaddr = location.vaddr;
    made->instance = location.instance;
    made->info = std::move(info);
    made->state = program::ProbeStatePointer(new program::ProbeState(*trace.registry.at(planned.probe).state));
    trace.installed.locations.push_back(std::move(made));
    return known->second;
}

/// A planned location becomes an attachment, which no site has yet.
std::unique_ptr<trace::AttachedLocation> attach(trace::Trace &trace, PlannedLocation planned) {
    const probe::ProbeEntry &entry = trace.registry.at(planned.probe);
    auto made = std::make_unique<trace::AttachedLocation>();
    made->program = std::make_shared<program::Program>(std::move(planned.compiled.program));
    made->at = planned.at();
    planned.compiled.info.kind = static_cast<char>(planned.kind);
    made->location = counted_location(trace, planned, std::move(planned.compiled.info));
    made->watch = std::move(planned.watch);
    trace::CountedLocation &counted = *trace.installed.locations[made->location];
    Attachment &attachment = made->attachment;
    attachment.kind = kind_of(planned.kind);
    attachment.location = static_cast<std::uint32_t>(made->location);
    attachment.program = entry.probe.handler ? nullptr : made->program.get();
    attachment.state = counted.state.get();
    attachment.counters = &counted.counters;
    attachment.handler = entry.probe.handler;
    attachment.inside = entry.inside;
    attachment.encloses = entry.set->encloses ? planned.probe : 0;
    attachment.maxactive = counted.maxactive =
        entry.probe.maxactive.value_or(entry.actions().maxactive.value_or(engine::Attachment::usual_maxactive));
    if (planned.location.function != 0) {
        attachment.function = VirtAddr{planned.location.function + planned.bias};
        attachment.function_end = VirtAddr{planned.location.function_end + planned.bias};
    }
    return made;
}

using Attached = std::vector<std::unique_ptr<trace::AttachedLocation>>;

Attached attach_all(trace::Trace &trace, std::vector<PlannedLocation> planned) {
    Attached attached;
    for (PlannedLocation &each : planned) attached.push_back(attach(trace, std::move(each)));
    return attached;
}

/// The sites, without slots and not armed. Errors: refused (the instruction cannot be probed any more), fault.
Result<std::vector<PlannedSite>> make_sites(const trace::Trace &trace, Process &process, const Attached &attached,
                                            const InstallPlan &plan) {
    std::vector<PlannedSite> sites;
    for (const auto &location : attached) {
        if (location->watch) continue;
        const std::string &symbol = trace.installed.locations[location->location]->info.symbol;
        auto site = engine::make_site(*process.space, location->at);
        if (!site) return fail(std::move(site.error()).with(symbol));
        sites.push_back({*site, &location->attachment, symbol});
    }
    for (const auto &internal : plan.internal)
        if (auto site = engine::make_site(*process.space, internal->at))
            sites.push_back({*site, internal.get(), "unwinding"});
    return sites;
}

/// Everything of a plan is planted: from now on it belongs to the address space.
void keep(trace::Trace &trace, engine::AddressSpaceState &space, Attached attached, InstallPlan plan) {
    trace::Arming &arming = trace.installed.armings[&space];
    for (auto &location : attached) {
        trace::CountedLocation &counted = *trace.installed.locations[location->location];
        if (const auto &watch = location->watch) {
            location->attachment.on = trace::is_on(trace, counted); // false where it waits for the rest of its set
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
}

} // namespace

Status install(trace::Trace &trace, Process &process, InstallPlan plan, os::Stopped *stopped) {
    engine::AddressSpaceState &space = *process.space;
    Attached attached = attach_all(trace, std::exchange(plan.locations, {}));
    auto sites = make_sites(trace, process, attached, plan);
    if (!sites) return tl::make_unexpected(sites.error());
    for (const PlannedSite &site : *sites)
        if (auto allowed = allow_syscall(*site.site, site.name, stopped); !allowed) return allowed;
    if (auto room = make_room(trace, process, *sites, stopped); !room) return room;
    tell_guardian(trace, process, *sites);
    std::vector<PlannedSite> planted;
    for (const PlannedSite &site : *sites) {
        if (auto done = plant(space, site); !done) {
            roll_back(space, planted);
            return done;
        }
        planted.push_back(site);
    }
    switch_planted(trace, space, planted);
    keep(trace, space, std::move(attached), std::move(plan));
    watch_returns(trace, process);
    return {};
}

Status watch_loader(trace::Trace &trace, Process &process, os::Stopped *stopped) {
    auto at = target::loader_breakpoint(process.target);
    if (!at) return {};
    InstallPlan plan;
    plan_internal(take_snapshot(trace, process), plan, loads_modules, *at);
    if (plan.empty()) return {};
    return install(trace, process, std::move(plan), stopped);
}

void watch_returns(trace::Trace &trace, Process &process) {
    engine::AddressSpaceState &space = *process.space;
    bool wanted = space.return_probes > 0;
    if (space.timed_probes > 0) trace.engine.waiter.look_often(true);
    bool unwatched = false; // events in the meantime went unseen
    for (const auto &internal : trace.installed.armings[process.space.get()].internal) {
        engine::Site *site = space.site_at(internal->at);
        if (!internal->purpose->serves_returns || internal->on == wanted || !site) continue;
        unwatched = unwatched || wanted;
        if (!wanted || !engine::switch_on(space, *site, *internal)) engine::switch_off(space, *site, *internal);
    }
    if (unwatched)
        for (auto &[tid, task] : trace.engine.tasks) task.calls.unwinds++;
    if (!wanted) engine::drop_idle_return_sites(space);
}

} // namespace ktrace::arming
