#include "session/plan.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "os/cut_files.h"
#include "os/debug_registers.h"
#include "session/go.h"
#include "session/ifunc.h"
#include "session/refusals.h"
#include "session/sigtrap.h"
#include "trap/watch.h"

namespace ktrace::session {

using trap::Armed;
using trap::Traced;

namespace {

constexpr std::uint32_t default_maxactive = 4096;

std::vector<probe::Loaded> loaded_modules(const Traced &traced) {
    std::vector<probe::Loaded> loaded;
    for (const target::LoadedModule &m : traced.process.modules) loaded.push_back({m.module, m.bias, m.is_program});
    return loaded;
}

/// Where a location's module lies in this process: more than once where it was loaded into several namespaces. An
/// address is at one place only.
std::vector<std::uint64_t> biases_of(const Traced &traced, const probe::Spec &spec, const probe::Location &location) {
    if (!location.module) return {0};
    bool one_place = spec.form == probe::Spec::Form::address;
    std::vector<std::uint64_t> biases;
    for (const target::LoadedModule &m : traced.process.modules)
        if (m.module == location.module && (!one_place || location.vaddr + m.bias == spec.address))
            biases.push_back(m.bias);
    return biases;
}

Armed::Kind armed_kind(probe::Kind kind) {
    switch (kind) {
    case probe::Kind::entry: return Armed::Kind::entry;
    case probe::Kind::ret: return Armed::Kind::ret;
    case probe::Kind::watch: return Armed::Kind::watch;
    default: return Armed::Kind::probe;
    }
}

/// The counted location of this place, a new one where there is none yet.
std::size_t counted_location(State &state, std::uint32_t probe, const probe::Location &location,
                             program::LocationInfo info) {
    auto [known, is_new] = state.location_of.try_emplace(
        {probe, location.module.get(), location.vaddr, location.instance}, state.locations.size());
    if (!is_new) return known->second;
    auto made = std::make_unique<CountedLocation>();
    made->probe = probe;
    made->module = location.module.get();
    made->vaddr = location.vaddr;
    made->instance = location.instance;
    made->info = std::move(info);
    made->state = program::ProbeStatePointer(new program::ProbeState(*state.registry.at(probe).state));
    state.locations.push_back(std::move(made));
    return known->second;
}

/// What find_all finds: places, and resolvers that will tell of more.
struct Search {
    std::vector<Found> found;
    std::vector<WaitingIfunc> ifuncs;
};

void note_found(State &state, Traced &traced, std::uint32_t number, probe::Resolved resolved, Search &search) {
    const probe::Spec &spec = state.registry.at(number).probe.spec;
    for (const std::string &notice : resolved.notices) tell_once(state, notice);
    if (resolved.pending)
        tell_once(state, spec.text + " waits for " + spec.module + " to be loaded" +
                             (resolved.near_module.empty() ? "" : "; did you mean " + resolved.near_module + "?"));
    for (const probe::Location &location : resolved.locations)
        for (std::uint64_t bias : biases_of(traced, spec, location))
            if (!is_armed_already(state, traced, number, VirtAddr{location.vaddr + bias}, location.instance))
                search.found.push_back({number, location, bias});
    for (const probe::Location &resolver : resolved.ifunc_resolvers)
        for (std::uint64_t bias : biases_of(traced, spec, resolver)) search.ifuncs.push_back({number, resolver, bias});
}

enum class Access { any, execute };

/// The mapping there that allows this; nullptr: there is none.
const os::Mapping *mapping_at(Traced &traced, VirtAddr at, Access access) {
    auto look = [&]() -> const os::Mapping * {
        for (const os::Mapping &m : traced.process.maps)
            if ((m.executable || access == Access::any) && m.contains(at)) return &m;
        return nullptr;
    };
    if (const os::Mapping *known = look()) return known;
    auto maps = os::read_maps(traced.process.pid);
    if (!maps) return nullptr;
    traced.process.maps = std::move(*maps);
    return look();
}

/// Where a watchpoint is.
Status find_watch(State &state, Traced &traced, std::uint32_t number, const std::vector<probe::Loaded> &loaded,
                  Search &search) {
    if (!os::debug_registers_trap())
        return fail(Error::Kind::refused, "there are no watchpoints here: " + std::string(no_watchpoints));
    auto place = probe::resolve_watch(state.registry.at(number).probe.spec.text, loaded);
    if (!place) return tl::make_unexpected(place.error());
    for (const trap::Watchpoint &watch : traced.ground->watches)
        if (state.locations[watch.armed->location]->probe == number) return {};
    std::size_t wanted = place->parts.size() + trap::watch_registers_used(*traced.ground);
    for (const Found &other : search.found)
        if (other.watch) wanted += other.watch->parts.size();
    if (wanted > arch::HostNative::watch_registers)
        return fail(Error::Kind::refused,
                    "all watchpoints together need " + std::to_string(wanted) +
                        " debug registers, and a processor has " + std::to_string(arch::HostNative::watch_registers),
                    "watch less at a time");
    if (!place->location.module && !mapping_at(traced, place->at, Access::any))
        tell_once(state, fmt::format("nothing is mapped at {:#x} in process {} yet: it is not hit before something is",
                                     place->at.value, traced.process.pid.value));
    search.found.push_back({number, place->location, place->bias, *place});
    return {};
}

/// Where each probe is, as far as it is found. Errors are those of a probe that cannot be placed.
Result<Search> find_all(State &state, Traced &traced, const std::vector<std::uint32_t> &probes, Missing missing) {
    std::vector<probe::Loaded> loaded = loaded_modules(traced);
    Search search;
    for (std::uint32_t number : probes) {
        probe::Registered &registered = state.registry.at(number);
        const probe::Probe &wish = registered.probe;
        if (wish.kind == probe::Kind::watch) {
            auto found = find_watch(state, traced, number, loaded, search);
            bool nowhere = !found && found.error().kind == Error::Kind::not_found;
            if (nowhere) registered.why_nowhere = found.error().message;
            if (found || (nowhere && (missing == Missing::wait || registered.placed))) continue;
            if (!registered.set->allow_missing) return tl::make_unexpected(found.error());
            tell_once(state, found.error().message);
            continue;
        }
        auto resolved = probe::resolve(wish.spec, wish.kind, loaded, traced.ground->space.get(), state.gives_up);
        if (!resolved && resolved.error().kind == Error::Kind::given_up) return tl::make_unexpected(resolved.error());
        for (const std::string &notice : os::take_cut_file_notices()) tell_once(state, notice);
        if (resolved) {
            note_found(state, traced, number, std::move(*resolved), search);
            continue;
        }
        registered.why_nowhere = resolved.error().message;
        bool nowhere = resolved.error().kind == Error::Kind::not_found;
        if (nowhere && (missing == Missing::wait || registered.placed)) continue;
        if (!registered.set->allow_missing) return tl::make_unexpected(resolved.error());
        tell_once(state, resolved.error().message);
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
                                            "siglongjmp",
                                            "runtime.recovery", // Go: a panic ends at a deferred function
                                            "runtime.Goexit"};

/// After these a thread goes on with another stack.
constexpr std::array switching_functions = {"swapcontext", "setcontext"};

void plan_unwinding(State &state, Traced &traced, ArmPlan &plan) {
    const Arming &arming = state.armings[traced.ground.get()];
    for (const target::LoadedModule &loaded : traced.process.modules) {
        if (arming.unwinders.contains(loaded.bias)) continue;
        plan.unwinders.push_back(loaded.bias);
        std::vector<std::uint64_t> addresses;
        std::vector<const char *> names(unwinding_functions.begin(), unwinding_functions.end());
        names.insert(names.end(), switching_functions.begin(), switching_functions.end());
        for (const char *name : names)
            for (const symbols::Symbol *symbol : loaded.module->named(name))
                if (symbol->kind == symbols::Symbol::Kind::function && symbol->vaddr != 0)
                    addresses.push_back(symbol->vaddr);
        std::sort(addresses.begin(), addresses.end());
        addresses.erase(std::unique(addresses.begin(), addresses.end()), addresses.end());
        for (std::uint64_t vaddr : addresses) plan_internal(plan, Armed::Kind::unwinds, VirtAddr{vaddr + loaded.bias});
    }
}

/// The programs of places that share the options of one command.
Result<std::vector<probe::Compiled>> compile_set(State &state, probe::ProbeSet &set,
                                                 const std::vector<const Found *> &places,
                                                 const std::vector<probe::Loaded> &modules) {
    std::vector<probe::LocationRequest> requests;
    for (const Found *place : places) {
        const probe::Registered &wanted = state.registry.at(place->probe);
        // A handler's probe has no program that would ask for types.
        probe::Kind kind = wanted.handler ? probe::Kind::probe : wanted.probe.kind;
        requests.push_back({wanted.probe.number, kind, place->location, place->bias,
                            place->watch ? place->watch->binding : std::nullopt});
    }
    probe::CompileOptions options;
    options.arguments_at_return = state.config.format == Config::Format::json;
    options.additional = set.compiled;
    options.modules = modules;
    auto compiled = probe::compile_all(set.actions, requests, options);
    if (compiled) set.compiled = true;
    return compiled;
}

std::unique_ptr<ArmedLocation> make_location(State &state, const Found &found, probe::Compiled compiled) {
    const probe::Registered &registered = state.registry.at(found.probe);
    auto made = std::make_unique<ArmedLocation>();
    made->program = std::make_shared<program::Program>(std::move(compiled.program));
    made->at = VirtAddr{found.location.vaddr + found.bias};
    compiled.info.kind = static_cast<char>(registered.probe.kind);
    made->location = counted_location(state, found.probe, found.location, std::move(compiled.info));
    CountedLocation &counted = *state.locations[made->location];
    made->watch = found.watch;
    Armed &armed = made->armed;
    armed.kind = armed_kind(registered.probe.kind);
    armed.location = static_cast<std::uint32_t>(made->location);
    armed.program = registered.handler ? nullptr : made->program.get();
    armed.state = counted.state.get();
    armed.counters = &counted.counters;
    armed.handler = registered.handler;
    armed.inside = registered.set->inside;
    armed.encloses = registered.set->hidden ? found.probe : 0;
    armed.maxactive = registered.maxactive.value_or(registered.set->actions.maxactive.value_or(default_maxactive));
    if (found.location.function != 0) {
        armed.function = VirtAddr{found.location.function + found.bias};
        armed.function_end = VirtAddr{found.location.function_end + found.bias};
    }
    return made;
}

/// What errors call a place by: its function, or the SPEC where none is known.
const std::string &name_of(const State &state, std::uint32_t probe, const std::string &symbol) {
    return symbol.empty() ? state.registry.at(probe).probe.spec.text : symbol;
}

/// The site of a place. Errors: refused (the instruction cannot be probed), fault.
Result<trap::Site *> site_for(Traced &traced, const std::string &name, VirtAddr at) {
    const os::Mapping *code = mapping_at(traced, at, Access::execute);
    if (!code) return fail(Error::Kind::refused, name + ": its address is not in executable memory");
    if (code->shared)
        return fail(Error::Kind::refused,
                    name + ": its memory is shared (MAP_SHARED), and what else runs there, a child perhaps, would " +
                        "run into the probe");
    auto site = trap::make_site(*traced.ground, at);
    if (!site) return fail(std::move(site.error()).with(name));
    return site;
}

/// Leaves out the places that cannot be probed, where their set goes on without them, and tells of each.
void leave_out_refused(State &state, Traced &traced, std::vector<Found> &found) {
    std::erase_if(found, [&](const Found &place) {
        if (place.watch || !state.registry.at(place.probe).set->allow_missing) return false;
        auto site = site_for(traced, name_of(state, place.probe, place.location.symbol),
                             VirtAddr{place.location.vaddr + place.bias});
        if (site || site.error().kind == Error::Kind::gone) return false;
        tell_once(state, site.error().message);
        return true;
    });
}

/// What to do where one of a SPEC's places is refused: the others may be all that is wanted.
std::string without_it(const State &state, const ArmPlan &plan, std::uint32_t probe) {
    auto places = std::count_if(plan.locations.begin(), plan.locations.end(), [&](const auto &location) {
        return state.locations[location->location]->probe == probe;
    });
    bool by_option = !state.registry.at(probe).handler;
    return places > 1 && by_option ? "--allow-missing goes on without it" : "";
}

} // namespace

bool is_armed_already(const State &state, const Traced &traced, std::uint32_t probe, VirtAddr at,
                      std::uint32_t instance) {
    const trap::Site *site = traced.ground->site_at(at);
    return site && std::any_of(site->probes.begin(), site->probes.end(), [&](const Armed *armed) {
               if (!armed->counters || armed->dismissed) return false;
               const CountedLocation &location = *state.locations[armed->location];
               return location.probe == probe && location.instance == instance;
           });
}

void plan_internal(ArmPlan &plan, Armed::Kind kind, VirtAddr at) {
    plan.internal.push_back(std::make_unique<InternalSite>());
    plan.internal.back()->armed.kind = kind;
    plan.internal.back()->at = at;
}

void plan_once(const Traced &traced, ArmPlan &plan, Armed::Kind kind, VirtAddr at) {
    const trap::Site *site = traced.ground->site_at(at);
    const bool is_there = site && std::any_of(site->probes.begin(), site->probes.end(),
                                              [kind](const Armed *armed) { return armed->kind == kind; });
    const bool is_planned = std::any_of(plan.internal.begin(), plan.internal.end(), [&](const auto &internal) {
        return internal->at == at && internal->armed.kind == kind;
    });
    if (!is_there && !is_planned) plan_internal(plan, kind, at);
}

Result<ArmPlan> plan_arming(State &state, Traced &traced, const std::vector<std::uint32_t> &probes, Missing missing) {
    auto search = find_all(state, traced, probes, missing);
    if (!search) return tl::make_unexpected(search.error());
    auto plan = plan_places(state, traced, std::move(search->found));
    if (plan) plan_resolvers(state, traced, *plan, std::move(search->ifuncs));
    return plan;
}

Result<ArmPlan> plan_places(State &state, Traced &traced, std::vector<Found> found) {
    leave_out_refused(state, traced, found);
    std::map<probe::ProbeSet *, std::vector<const Found *>> by_set;
    for (const Found &f : found) by_set[state.registry.at(f.probe).set.get()].push_back(&f);
    std::vector<probe::Loaded> modules = loaded_modules(traced);
    std::map<const Found *, probe::Compiled> compiled;
    for (auto &[set, places] : by_set) {
        auto programs = compile_set(state, *set, places, modules);
        if (!programs) return tl::make_unexpected(programs.error());
        for (std::size_t i = 0; i < places.size(); i++) compiled.emplace(places[i], std::move((*programs)[i]));
    }
    ArmPlan plan;
    bool returns = false;
    for (const Found &f : found) {
        plan.locations.push_back(make_location(state, f, std::move(compiled.at(&f))));
        returns = returns || plan.locations.back()->armed.kind == Armed::Kind::ret;
    }
    for (const Found &f : found)
        if (std::string unread = f.location.module ? f.location.module->unread_debug_information() : "";
            !unread.empty())
            tell_once(state, unread);
    if (returns) plan_unwinding(state, traced, plan);
    plan_go(traced, plan);
    plan_sigtrap(traced, plan);
    // What cannot be probed is refused here, before anything is touched.
    if (auto sites = plan_sites(state, traced, plan); !sites) return tl::make_unexpected(sites.error());
    return plan;
}

Result<std::vector<PlannedSite>> plan_sites(State &state, Traced &traced, const ArmPlan &plan) {
    std::vector<PlannedSite> planned;
    for (const auto &location : plan.locations) {
        if (location->watch) continue;
        const CountedLocation &counted = *state.locations[location->location];
        auto site = site_for(traced, name_of(state, counted.probe, counted.info.symbol), location->at);
        if (!site) {
            site.error().hint = without_it(state, plan, counted.probe);
            return tl::make_unexpected(std::move(site.error()));
        }
        planned.push_back({*site, &location->armed, counted.info.symbol});
    }
    for (const auto &internal : plan.internal)
        if (auto site = trap::make_site(*traced.ground, internal->at))
            planned.push_back({*site, &internal->armed, "unwinding"});
    return planned;
}

} // namespace ktrace::session
