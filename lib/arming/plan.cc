#include "arming/plan.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "arming/go_runtime.h"
#include "arming/ifunc.h"
#include "arming/sigtrap_sites.h"
#include "engine/calls/unwinding.h"
#include "engine/watch/watch.h"
#include "os/facts/hw_breakpoint.h"
#include "os/self/sigbus_guard.h"
#include "tracees/access_errors.h"

namespace ktrace::arming {

using engine::Attachment;
using engine::Process;

namespace {

constexpr std::uint32_t default_maxactive = 4096;

std::vector<probe::Loaded> loaded_modules(const Process &process) {
    std::vector<probe::Loaded> loaded;
    for (const target::LoadedModule &m : process.target.modules) loaded.push_back({m.module, m.bias, m.is_program});
    return loaded;
}

/// Where a location's module lies in this process: more than once where it was loaded into several namespaces. An
/// address is at one place only.
std::vector<std::uint64_t> biases_of(const Process &process, const probe::Spec &spec, const probe::Location &location) {
    if (!location.module) return {0};
    bool one_place = spec.form == probe::Spec::Form::address;
    std::vector<std::uint64_t> biases;
    for (const target::LoadedModule &m : process.target.modules)
        if (m.module == location.module && (!one_place || location.vaddr + m.bias == spec.address))
            biases.push_back(m.bias);
    return biases;
}

Attachment::Kind kind_of(probe::Kind kind) {
    switch (kind) {
    case probe::Kind::entry: return Attachment::Kind::entry;
    case probe::Kind::ret: return Attachment::Kind::ret;
    case probe::Kind::watch: return Attachment::Kind::watch;
    default: return Attachment::Kind::probe;
    }
}

/// The counted location of this place, a new one where there is none yet.
std::size_t counted_location(trace::Trace &trace, std::uint32_t probe, const probe::Location &location,
                             program::LocationInfo info) {
    auto [known, is_new] = trace.location_of.try_emplace(
        {probe, location.module.get(), location.vaddr, location.instance}, trace.locations.size());
    if (!is_new) return known->second;
    auto made = std::make_unique<trace::CountedLocation>();
    made->probe = probe;
    made->module = location.module.get();
    made->vaddr = location.vaddr;
    made->instance = location.instance;
    made->info = std::move(info);
    made->state = program::ProbeStatePointer(new program::ProbeState(*trace.registry.at(probe).state));
    trace.locations.push_back(std::move(made));
    return known->second;
}

/// What find_all finds: places, and resolvers that will tell of more.
struct Search {
    std::vector<Found> found;
    std::vector<trace::WaitingIfunc> ifuncs;
    std::vector<std::string> notices; // of what was found, for when nothing is refused
};

void note_found(trace::Trace &trace, Process &process, std::uint32_t number, probe::Resolved resolved, Search &search) {
    probe::ProbeEntry &registered = trace.registry.at(number);
    const probe::Spec &spec = registered.probe.spec;
    registered.expected = registered.expected || resolved.pending || !resolved.ifunc_resolvers.empty();
    search.notices.insert(search.notices.end(), resolved.notices.begin(), resolved.notices.end());
    if (resolved.pending)
        search.notices.push_back(spec.text + " waits for " + spec.module + " to be loaded" +
                                 (resolved.near_module.empty() ? "" : "; did you mean " + resolved.near_module + "?"));
    for (const probe::Location &location : resolved.locations)
        for (std::uint64_t bias : biases_of(process, spec, location))
            if (!is_armed_already(trace, process, number, VirtAddr{location.vaddr + bias}, location.instance))
                search.found.push_back({number, location, bias});
    for (const probe::Location &resolver : resolved.ifunc_resolvers)
        for (std::uint64_t bias : biases_of(process, spec, resolver)) search.ifuncs.push_back({number, resolver, bias});
}

enum class Access { any, execute };

/// The mapping there that allows this; nullptr: there is none.
const os::Mapping *mapping_at(Process &process, VirtAddr at, Access access) {
    auto look = [&]() -> const os::Mapping * {
        for (const os::Mapping &m : process.target.maps)
            if ((m.executable || access == Access::any) && m.contains(at)) return &m;
        return nullptr;
    };
    if (const os::Mapping *known = look()) return known;
    auto maps = os::read_maps(process.target.pid);
    if (!maps) return nullptr;
    process.target.maps = std::move(*maps);
    return look();
}

/// Where a watchpoint is.
Status find_watch(trace::Trace &trace, Process &process, std::uint32_t number, const std::vector<probe::Loaded> &loaded,
                  Search &search) {
    if (!os::debug_registers_trap())
        return fail(Error::Kind::refused, "there are no watchpoints here: " + std::string(tracees::no_watchpoints));
    auto place = probe::resolve_watch(trace.registry.at(number).probe.spec.text, loaded);
    if (!place) return tl::make_unexpected(place.error());
    for (const engine::Watchpoint &watch : process.space->watches)
        if (trace.locations[watch.attachment->location]->probe == number) return {};
    std::size_t wanted = place->parts.size() + engine::watch_registers_used(*process.space);
    for (const Found &other : search.found)
        if (other.watch) wanted += other.watch->parts.size();
    if (wanted > arch::HostNative::watch_registers)
        return fail(Error::Kind::refused,
                    "all watchpoints together need " + std::to_string(wanted) +
                        " debug registers, and a processor has " + std::to_string(arch::HostNative::watch_registers),
                    "watch less at a time");
    if (!place->location.module && !mapping_at(process, place->at, Access::any))
        search.notices.push_back(
            fmt::format("nothing is mapped at {:#x} in process {} yet: it is not hit before something is",
                        place->at.value, process.target.pid.value));
    search.found.push_back({number, place->location, place->bias, *place});
    return {};
}

/// Where each probe is, as far as it is found. Errors are those of a probe that cannot be placed.
Result<Search> find_all(trace::Trace &trace, Process &process, const std::vector<std::uint32_t> &probes,
                        Missing missing) {
    std::vector<probe::Loaded> loaded = loaded_modules(process);
    Search search;
    for (std::uint32_t number : probes) {
        probe::ProbeEntry &registered = trace.registry.at(number);
        const probe::Probe &wish = registered.probe;
        if (wish.kind == probe::Kind::watch) {
            auto found = find_watch(trace, process, number, loaded, search);
            bool nowhere = !found && found.error().kind == Error::Kind::not_found;
            if (nowhere) registered.why_nowhere = found.error().message;
            if (found || (nowhere && (missing == Missing::wait || registered.placed))) continue;
            if (!registered.set->allow_missing) return tl::make_unexpected(found.error());
            trace::tell_once(trace, found.error().message);
            continue;
        }
        auto resolved = probe::resolve(wish.spec, wish.kind, loaded, process.space->memory.get(), trace.gives_up);
        if (!resolved && resolved.error().kind == Error::Kind::given_up) return tl::make_unexpected(resolved.error());
        for (const std::string &notice : os::take_cut_file_notices()) trace::tell_once(trace, notice);
        if (resolved) {
            note_found(trace, process, number, std::move(*resolved), search);
            continue;
        }
        registered.why_nowhere = resolved.error().message;
        bool nowhere = resolved.error().kind == Error::Kind::not_found;
        if (nowhere && (missing == Missing::wait || registered.placed)) continue;
        if (!registered.set->allow_missing) return tl::make_unexpected(resolved.error());
        trace::tell_once(trace, resolved.error().message);
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

void plan_unwinding(trace::Trace &trace, Process &process, ArmPlan &plan) {
    const trace::Arming &arming = trace.armings[process.space.get()];
    for (const target::LoadedModule &loaded : process.target.modules) {
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
        for (std::uint64_t vaddr : addresses) plan_internal(plan, engine::unwinds, VirtAddr{vaddr + loaded.bias});
    }
}

/// The programs of places that share the options of one command.
Result<std::vector<probe::Compiled>> compile_set(trace::Trace &trace, probe::ProbeSet &set,
                                                 const std::vector<const Found *> &places,
                                                 const std::vector<probe::Loaded> &modules) {
    std::vector<probe::LocationRequest> requests;
    for (const Found *place : places) {
        const probe::ProbeEntry &wanted = trace.registry.at(place->probe);
        // A handler's probe has no program that would ask for types.
        probe::Kind kind = wanted.handler ? probe::Kind::probe : wanted.probe.kind;
        requests.push_back({wanted.probe.number, kind, place->location, place->bias,
                            place->watch ? place->watch->binding : std::nullopt});
    }
    probe::CompileOptions options;
    options.arguments_at_return = trace.config.format == trace::Config::Format::json;
    options.additional = set.compiled;
    options.modules = modules;
    auto compiled = probe::compile_all(set.actions, requests, options);
    if (compiled) set.compiled = true;
    return compiled;
}

std::unique_ptr<trace::AttachedLocation> make_location(trace::Trace &trace, const Found &found,
                                                       probe::Compiled compiled) {
    const probe::ProbeEntry &registered = trace.registry.at(found.probe);
    auto made = std::make_unique<trace::AttachedLocation>();
    made->program = std::make_shared<program::Program>(std::move(compiled.program));
    made->at = VirtAddr{found.location.vaddr + found.bias};
    compiled.info.kind = static_cast<char>(registered.probe.kind);
    made->location = counted_location(trace, found.probe, found.location, std::move(compiled.info));
    trace::CountedLocation &counted = *trace.locations[made->location];
    made->watch = found.watch;
    Attachment &attachment = made->attachment;
    attachment.kind = kind_of(registered.probe.kind);
    attachment.location = static_cast<std::uint32_t>(made->location);
    attachment.program = registered.handler ? nullptr : made->program.get();
    attachment.state = counted.state.get();
    attachment.counters = &counted.counters;
    attachment.handler = registered.handler;
    attachment.inside = registered.set->inside;
    attachment.encloses = registered.set->hidden ? found.probe : 0;
    attachment.maxactive = registered.maxactive.value_or(registered.set->actions.maxactive.value_or(default_maxactive));
    if (found.location.function != 0) {
        attachment.function = VirtAddr{found.location.function + found.bias};
        attachment.function_end = VirtAddr{found.location.function_end + found.bias};
    }
    return made;
}

/// What errors call a place by: its function, or the SPEC where none is known.
const std::string &name_of(const trace::Trace &trace, std::uint32_t probe, const std::string &symbol) {
    return symbol.empty() ? trace.registry.at(probe).probe.spec.text : symbol;
}

/// The site of a place. Errors: refused (the instruction cannot be probed), fault.
Result<engine::Site *> site_for(Process &process, const std::string &name, VirtAddr at) {
    const os::Mapping *code = mapping_at(process, at, Access::execute);
    if (!code) return fail(Error::Kind::refused, name + ": its address is not in executable memory");
    if (code->shared)
        return fail(Error::Kind::refused,
                    name + ": its memory is shared (MAP_SHARED), and what else runs there, a child perhaps, would " +
                        "run into the probe");
    auto site = engine::make_site(*process.space, at);
    if (!site) return fail(std::move(site.error()).with(name));
    return site;
}

/// Leaves out the places that cannot be probed, where their set goes on without them, and tells of each.
void leave_out_refused(trace::Trace &trace, Process &process, std::vector<Found> &found) {
    std::erase_if(found, [&](const Found &place) {
        if (place.watch || !trace.registry.at(place.probe).set->allow_missing) return false;
        auto site = site_for(process, name_of(trace, place.probe, place.location.symbol),
                             VirtAddr{place.location.vaddr + place.bias});
        if (site || site.error().kind == Error::Kind::gone) return false;
        trace::tell_once(trace, site.error().message);
        return true;
    });
}

/// What to do where one of a SPEC's places is refused: the others may be all that is wanted.
std::string without_it(const trace::Trace &trace, const ArmPlan &plan, std::uint32_t probe) {
    auto places = std::count_if(plan.locations.begin(), plan.locations.end(), [&](const auto &location) {
        return trace.locations[location->location]->probe == probe;
    });
    bool by_option = !trace.registry.at(probe).handler;
    return places > 1 && by_option ? "--allow-missing goes on without it" : "";
}

} // namespace

bool is_armed_already(const trace::Trace &trace, const Process &process, std::uint32_t probe, VirtAddr at,
                      std::uint32_t instance) {
    const engine::Site *site = process.space->site_at(at);
    return site && std::any_of(site->attachments.begin(), site->attachments.end(), [&](const Attachment *attachment) {
               if (attachment->dismissed) return false;
               const trace::CountedLocation &location = *trace.locations[attachment->location];
               return location.probe == probe && location.instance == instance;
           });
}

void plan_internal(ArmPlan &plan, const engine::InternalPurpose &purpose, VirtAddr at) {
    plan.internal.push_back(std::make_unique<engine::InternalBreakpoint>());
    plan.internal.back()->purpose = &purpose;
    plan.internal.back()->at = at;
}

void plan_once(const Process &process, ArmPlan &plan, const engine::InternalPurpose &purpose, VirtAddr at) {
    const engine::Site *site = process.space->site_at(at);
    const bool is_there = site && std::any_of(site->internal.begin(), site->internal.end(),
                                              [&](const auto *breakpoint) { return breakpoint->purpose == &purpose; });
    const bool is_planned = std::any_of(plan.internal.begin(), plan.internal.end(), [&](const auto &breakpoint) {
        return breakpoint->at == at && breakpoint->purpose == &purpose;
    });
    if (!is_there && !is_planned) plan_internal(plan, purpose, at);
}

Result<ArmPlan> plan_arming(trace::Trace &trace, Process &process, const std::vector<std::uint32_t> &probes,
                            Missing missing) {
    auto search = find_all(trace, process, probes, missing);
    if (!search) return tl::make_unexpected(search.error());
    auto plan = plan_places(trace, process, std::move(search->found));
    if (!plan) return plan;
    plan_resolvers(trace, process, *plan, std::move(search->ifuncs));
    for (const std::string &notice : search->notices) trace::tell_once(trace, notice);
    return plan;
}

Result<ArmPlan> plan_places(trace::Trace &trace, Process &process, std::vector<Found> found) {
    leave_out_refused(trace, process, found);
    for (const Found &f : found) trace.registry.at(f.probe).expected = true;
    std::map<probe::ProbeSet *, std::vector<const Found *>> by_set;
    for (const Found &f : found) by_set[trace.registry.at(f.probe).set.get()].push_back(&f);
    std::vector<probe::Loaded> modules = loaded_modules(process);
    std::map<const Found *, probe::Compiled> compiled;
    for (auto &[set, places] : by_set) {
        auto programs = compile_set(trace, *set, places, modules);
        if (!programs) return tl::make_unexpected(programs.error());
        for (std::size_t i = 0; i < places.size(); i++) compiled.emplace(places[i], std::move((*programs)[i]));
    }
    ArmPlan plan;
    bool returns = false;
    for (const Found &f : found) {
        plan.locations.push_back(make_location(trace, f, std::move(compiled.at(&f))));
        returns = returns || plan.locations.back()->attachment.kind == Attachment::Kind::ret;
    }
    for (const Found &f : found)
        if (std::string unread = f.location.module ? f.location.module->unread_debug_information() : "";
            !unread.empty())
            trace::tell_once(trace, unread);
    if (returns) plan_unwinding(trace, process, plan);
    plan_go(process, plan);
    plan_sigtrap(process, plan);
    // What cannot be probed is refused here, before anything is touched.
    if (auto sites = plan_sites(trace, process, plan); !sites) return tl::make_unexpected(sites.error());
    return plan;
}

Result<std::vector<PlannedSite>> plan_sites(trace::Trace &trace, Process &process, const ArmPlan &plan) {
    std::vector<PlannedSite> planned;
    for (const auto &location : plan.locations) {
        if (location->watch) continue;
        const trace::CountedLocation &counted = *trace.locations[location->location];
        auto site = site_for(process, name_of(trace, counted.probe, counted.info.symbol), location->at);
        if (!site) {
            site.error().hint = without_it(trace, plan, counted.probe);
            return tl::make_unexpected(std::move(site.error()));
        }
        planned.push_back({*site, &location->attachment, counted.info.symbol});
    }
    for (const auto &internal : plan.internal)
        if (auto site = engine::make_site(*process.space, internal->at))
            planned.push_back({*site, internal.get(), "unwinding"});
    return planned;
}

} // namespace ktrace::arming
