#include "session/rearm.h"

#include <algorithm>
#include <array>
#include <map>

#include <elf.h>

#include "arch/host.h"
#include "session/ifunc.h"

namespace ktrace::session {

using trap::Armed;
using trap::Traced;

namespace {

constexpr std::uint32_t default_maxactive = 4096;
constexpr std::size_t return_slots = 1024; // kept ready for return addresses, near each module with return probes

std::vector<probe::Loaded> loaded_modules(const Traced &traced) {
    std::vector<probe::Loaded> loaded;
    for (const target::LoadedModule &m : traced.process.modules) loaded.push_back({m.module, m.bias, m.is_program});
    return loaded;
}

std::uint64_t bias_of(const Traced &traced, const symbols::Module *module) {
    for (const target::LoadedModule &m : traced.process.modules)
        if (m.module.get() == module) return m.bias;
    return 0;
}

Armed::Kind armed_kind(probe::Kind kind) {
    switch (kind) {
    case probe::Kind::entry: return Armed::Kind::entry;
    case probe::Kind::ret: return Armed::Kind::ret;
    default: return Armed::Kind::probe;
    }
}

/// The counted location of this place, a new one where there is none yet.
std::size_t counted_location(State &state, std::size_t probe, const probe::Location &location,
                             program::LocationInfo info) {
    for (std::size_t i = 0; i < state.locations.size(); i++) {
        const CountedLocation &known = *state.locations[i];
        if (known.probe == probe && known.module == location.module.get() && known.vaddr == location.vaddr) return i;
    }
    auto made = std::make_unique<CountedLocation>();
    made->probe = probe;
    made->module = location.module.get();
    made->vaddr = location.vaddr;
    made->info = std::move(info);
    made->state = program::ProbeStatePointer(new program::ProbeState(*state.probe_states[probe]));
    state.locations.push_back(std::move(made));
    return state.locations.size() - 1;
}

/// What find_all finds: places, and resolvers that will tell of more.
struct Search {
    std::vector<Found> found;
    std::vector<WaitingIfunc> ifuncs;
};

/// Where each probe is, as far as it is found. Errors are those of a probe that cannot be placed.
Result<Search> find_all(State &state, Traced &traced, bool complete) {
    std::vector<probe::Loaded> loaded = loaded_modules(traced);
    Search search;
    for (std::size_t i = 0; i < state.config.probes.size(); i++) {
        const probe::Probe &wish = state.config.probes[i];
        auto resolved = probe::resolve(wish.spec, wish.kind, loaded, traced.ground->space.get());
        if (!resolved) {
            bool missing = resolved.error().kind == Error::Kind::not_found;
            if (missing && (!complete || state.placed[i])) continue;
            if (!state.config.allow_missing) return tl::make_unexpected(resolved.error());
            tell_once(state, resolved.error().message);
            continue;
        }
        for (const std::string &notice : resolved->notices) tell_once(state, notice);
        if (resolved->pending) tell_once(state, wish.spec.text + " waits for " + wish.spec.module + " to be loaded");
        for (probe::Location &location : resolved->locations) {
            std::uint64_t bias = bias_of(traced, location.module.get());
            if (is_armed_already(state, traced, i, VirtAddr{location.vaddr + bias})) continue;
            search.found.push_back({i, std::move(location), bias});
        }
        for (probe::Location &resolver : resolved->ifunc_resolvers) {
            std::uint64_t bias = bias_of(traced, resolver.module.get());
            search.ifuncs.push_back({i, std::move(resolver), bias});
        }
    }
    return search;
}

/// Functions after whose call frames may be gone without having returned.
constexpr std::array unwinding_functions = {"_Unwind_RaiseException",
                                            "_Unwind_ForcedUnwind",
                                            "_Unwind_Resume_or_Rethrow",
                                            "__longjmp_chk",
                                            "longjmp",
                                            "_longjmp",
                                            "siglongjmp"};

void plan_unwinding(State &state, Traced &traced, ArmPlan &plan) {
    Arming &arming = state.armings[traced.ground.get()];
    for (const target::LoadedModule &loaded : traced.process.modules) {
        if (!arming.unwinders.insert(loaded.module.get()).second) continue;
        std::vector<std::uint64_t> addresses;
        for (const char *name : unwinding_functions)
            for (const symbols::Symbol *symbol : loaded.module->named(name))
                if (symbol->kind == symbols::Symbol::Kind::function && symbol->vaddr != 0)
                    addresses.push_back(symbol->vaddr);
        std::sort(addresses.begin(), addresses.end());
        addresses.erase(std::unique(addresses.begin(), addresses.end()), addresses.end());
        for (std::uint64_t vaddr : addresses) {
            plan_internal(plan, Armed::Kind::unwinds, VirtAddr{vaddr + loaded.bias});
        }
    }
}

/// The extent of the module (or the mapping) that an address is in: slots for it must reach all of that.
std::pair<VirtAddr, VirtAddr> neighbourhood(const Traced &traced, VirtAddr at) {
    if (const target::LoadedModule *m = target::module_at(traced.process.modules, at)) return {m->start, m->end};
    return {at, at + 1};
}

/// Maps arenas so that every site can have its slot.
Status make_room(State &state, Traced &traced, const std::vector<trap::Site *> &sites, bool returns,
                 os::Stopped &stopped) {
    std::map<VirtAddr, std::pair<VirtAddr, std::size_t>> wanted; // start of the neighbourhood → its end, slots
    for (const trap::Site *site : sites) {
        if (site->slot) continue;
        auto [low, high] = neighbourhood(traced, site->at);
        auto &entry = wanted[low];
        entry.first = high;
        if (site->plan.method != arch::Method::emulate) entry.second++;
    }
    for (const auto &[low, entry] : wanted) {
        std::size_t slots = entry.second + (returns ? return_slots : 0);
        if (slots == 0 || traced.ground->slots.room(low) >= slots) continue;
        auto mapped =
            trap::map_arena(*traced.ground, traced.process, state.world.waiter, stopped, low, entry.first, slots);
        if (!mapped) return mapped;
    }
    return {};
}

/// One site of a plan with what runs there.
struct Planned {
    trap::Site *site;
    Armed *armed;
    std::string name;
};

Result<std::vector<Planned>> plan_sites(State &state, Traced &traced, const ArmPlan &plan) {
    std::vector<Planned> planned;
    for (const auto &location : plan.locations) {
        const program::LocationInfo &info = state.locations[location->location]->info;
        auto site = trap::make_site(*traced.ground, location->at);
        if (!site) return fail(site.error().kind, info.symbol + ": " + site.error().message);
        planned.push_back({*site, &location->armed, info.symbol});
    }
    for (std::size_t i = 0; i < plan.internal.size(); i++)
        if (auto site = trap::make_site(*traced.ground, plan.internal_at[i]))
            planned.push_back({*site, plan.internal[i].get(), "unwinding"});
    return planned;
}

void roll_back(Traced &traced, const std::vector<Planned> &planned) {
    for (const Planned &p : planned) {
        std::erase(p.site->probes, p.armed);
        if (p.site->probes.empty() && p.site->returns == 0) trap::disarm(*traced.ground, *p.site);
    }
}

} // namespace

bool is_armed_already(State &state, Traced &traced, std::size_t probe, VirtAddr at) {
    auto arming = state.armings.find(traced.ground.get());
    if (arming == state.armings.end()) return false;
    return std::any_of(arming->second.locations.begin(), arming->second.locations.end(), [&](const auto &armed) {
        return armed->at == at && state.locations[armed->location]->probe == probe;
    });
}

void plan_internal(ArmPlan &plan, Armed::Kind kind, VirtAddr at) {
    plan.internal.push_back(std::make_unique<Armed>());
    plan.internal.back()->kind = kind;
    plan.internal_at.push_back(at);
}

Result<ArmPlan> plan_arming(State &state, Traced &traced, bool complete) {
    auto search = find_all(state, traced, complete);
    if (!search) return tl::make_unexpected(search.error());
    auto plan = plan_places(state, traced, std::move(search->found));
    if (plan) plan_resolvers(state, traced, *plan, std::move(search->ifuncs));
    return plan;
}

Result<ArmPlan> plan_places(State &state, Traced &traced, std::vector<Found> found) {
    std::vector<probe::LocationRequest> requests;
    for (const Found &f : found) {
        const probe::Probe &wish = state.config.probes[f.probe];
        requests.push_back({wish.number, wish.kind, f.location, f.bias});
    }
    probe::CompileOptions options;
    options.arguments_at_return = state.config.format == Config::Format::json;
    options.additional = !state.locations.empty();
    auto compiled = probe::compile_all(state.config.actions, requests, options);
    if (!compiled) return tl::make_unexpected(compiled.error());

    ArmPlan plan;
    std::vector<bool> specs(state.config.probes.size());
    bool returns = false;
    for (std::size_t i = 0; i < found.size(); i++) {
        Found &f = found[i];
        const probe::Probe &wish = state.config.probes[f.probe];
        auto armed = std::make_unique<ArmedLocation>();
        armed->program = std::make_shared<program::Program>(std::move((*compiled)[i].program));
        armed->at = VirtAddr{f.location.vaddr + f.bias};
        armed->location = counted_location(state, f.probe, f.location, std::move((*compiled)[i].info));
        armed->armed.kind = armed_kind(wish.kind);
        armed->armed.location = static_cast<std::uint32_t>(armed->location);
        armed->armed.program = armed->program.get();
        armed->armed.state = state.locations[armed->location]->state.get();
        armed->armed.counters = &state.locations[armed->location]->counters;
        armed->armed.maxactive = state.config.actions.maxactive.value_or(default_maxactive);
        if (f.location.function != 0) {
            armed->armed.function = VirtAddr{f.location.function + f.bias};
            armed->armed.function_end = VirtAddr{f.location.function_end + f.bias};
        }
        returns = returns || wish.kind == probe::Kind::ret;
        specs[f.probe] = true;
        plan.locations.push_back(std::move(armed));
    }
    plan.specs = static_cast<std::size_t>(std::count(specs.begin(), specs.end(), true));
    if (returns) plan_unwinding(state, traced, plan);
    // What cannot be probed is refused here, before anything is touched.
    if (auto sites = plan_sites(state, traced, plan); !sites) return tl::make_unexpected(sites.error());
    return plan;
}

Status carry_out(State &state, Traced &traced, ArmPlan plan, os::Stopped &stopped) {
    trap::Ground &ground = *traced.ground;
    auto planned = plan_sites(state, traced, plan);
    if (!planned) return tl::make_unexpected(planned.error());
    std::vector<trap::Site *> sites;
    bool returns = false;
    for (const Planned &p : *planned) {
        sites.push_back(p.site);
        returns = returns || p.armed->kind == Armed::Kind::ret;
    }
    if (auto room = make_room(state, traced, sites, returns, stopped); !room) return room;
    std::vector<Planned> done;
    for (const Planned &p : *planned) {
        Status armed;
        if (!trap::give_slot(ground, *p.site))
            armed = fail(Error::Kind::refused, "there is no place for its instruction within reach");
        else
            armed = trap::arm(ground, *p.site);
        if (!armed) {
            roll_back(traced, done);
            return fail(armed.error().kind, p.name + ": " + armed.error().message);
        }
        p.site->probes.push_back(p.armed);
        done.push_back(p);
    }
    state.last_names[traced.process.pid.value] = traced.process.comm;
    Arming &arming = state.armings[traced.ground.get()];
    for (auto &location : plan.locations) {
        state.placed[state.locations[location->location]->probe] = true;
        arming.locations.push_back(std::move(location));
    }
    for (auto &internal : plan.internal) arming.internal.push_back(std::move(internal));
    for (WaitingIfunc &ifunc : plan.ifuncs) {
        state.placed[ifunc.probe] = true;
        arming.ifuncs.push_back(std::move(ifunc));
    }
    if (returns) state.world.waiter.look_often(true);
    return {};
}

Status watch_loader(State &state, Traced &traced, os::Stopped &stopped) {
    auto base = os::read_auxv(traced.process.pid, AT_BASE);
    if (!base || *base == 0) return {};
    const target::LoadedModule *loader = target::module_at(traced.process.modules, VirtAddr{*base});
    if (!loader) return {};
    auto symbols = loader->module->named("_dl_debug_state");
    if (symbols.empty()) return {};
    ArmPlan plan;
    plan_internal(plan, Armed::Kind::loader, VirtAddr{symbols.front()->vaddr + loader->bias});
    return carry_out(state, traced, std::move(plan), stopped);
}

} // namespace ktrace::session
