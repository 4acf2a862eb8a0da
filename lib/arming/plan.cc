#include "arming/plan.h"

#include <algorithm>

#include <fmt/format.h>

#include "arming/go_runtime.h"
#include "arming/internal_sites.h"
#include "arming/jumps_back.h"
#include "arming/sigtrap_sites.h"
#include "engine/watch/watch.h"
#include "tracees/access_errors.h"

namespace ktrace::arming {

namespace {

std::vector<probe::Loaded> loaded_modules(const Snapshot &now) {
    std::vector<probe::Loaded> loaded;
    for (const target::LoadedModule &m : now.modules) loaded.push_back({m.module, m.bias, m.is_program});
    return loaded;
}

/// Where a location's module lies in this process: more than once where it was loaded into several namespaces. An
/// address is at one place only.
std::vector<std::uint64_t> biases_of(const Snapshot &now, const probe::Spec &spec, const probe::Location &location) {
    if (!location.module) return {0};
    bool one_place = spec.form == probe::Spec::Form::address;
    std::vector<std::uint64_t> biases;
    for (const target::LoadedModule &m : now.modules)
        if (m.module == location.module && (!one_place || location.vaddr + m.bias == spec.address))
            biases.push_back(m.bias);
    return biases;
}

/// The result of resolving the probes: locations, and resolvers that will lead to more.
struct Search {
    std::vector<PlannedLocation> found;
    std::vector<trace::WaitingIfunc> ifuncs;
    std::vector<std::string> notices; // of the places found, for when nothing is refused
};

void add_found(const Snapshot &now, const probe::ProbeEntry &entry, probe::Resolved resolved, Search &search,
               Remarks &remarks) {
    const std::uint32_t number = entry.probe.number;
    const probe::Spec &spec = entry.probe.spec;
    if (resolved.pending || !resolved.ifunc_resolvers.empty()) remarks.expected.insert(number);
    search.notices.insert(search.notices.end(), resolved.notices.begin(), resolved.notices.end());
    if (resolved.pending)
        search.notices.push_back(spec.text + " waits for " + spec.module + " to be loaded" +
                                 (resolved.near_module.empty() ? "" : "; did you mean " + resolved.near_module + "?"));
    for (const probe::Location &location : resolved.locations)
        for (std::uint64_t bias : biases_of(now, spec, location))
            if (!is_attached(now, number, VirtAddr{location.vaddr + bias}, location.instance))
                search.found.push_back({number, location, bias});
    for (const probe::Location &resolver : resolved.ifunc_resolvers)
        for (std::uint64_t bias : biases_of(now, spec, resolver)) search.ifuncs.push_back({number, resolver, bias});
}

enum class Access { any, execute };

/// The mapping there that allows this; nullptr: there is none.
const os::Mapping *mapping_at(const Snapshot &now, VirtAddr at, Access access) {
    for (const os::Mapping &m : now.maps)
        if ((m.executable || access == Access::any) && m.contains(at)) return &m;
    return nullptr;
}

bool is_watched(const Snapshot &now, std::uint32_t number) {
    return std::any_of(now.space.watches.begin(), now.space.watches.end(), [&](const engine::Watchpoint &watch) {
        return now.trace.installed.locations[watch.attachment->location]->probe == number;
    });
}

/// Finds the place of a watchpoint.
Status find_watch(const Snapshot &now, const probe::ProbeEntry &entry, const std::vector<probe::Loaded> &loaded,
                  Search &search) {
    if (!now.has_debug_registers)
        return fail(Error::Kind::refused, "there are no watchpoints here: " + std::string(tracees::no_watchpoints));
    auto place = probe::resolve_watch(entry.probe.spec.text, loaded);
    if (!place) return tl::make_unexpected(place.error());
    if (is_watched(now, entry.probe.number)) return {};
    std::size_t wanted = place->parts.size() + engine::watch_registers_used(now.space);
    for (const PlannedLocation &other : search.found)
        if (other.watch) wanted += other.watch->parts.size();
    if (wanted > arch::HostNative::watch_registers)
        return fail(Error::Kind::refused,
                    "all watchpoints together need " + std::to_string(wanted) +
                        " debug registers, and a processor has " + std::to_string(arch::HostNative::watch_registers),
                    "watch less at a time");
    if (!place->location.module && !mapping_at(now, place->at, Access::any))
        search.notices.push_back(
            fmt::format("nothing is mapped at {:#x} in process {} yet: it is not hit before something is",
                        place->at.value, now.pid.value));
    search.found.push_back({entry.probe.number, place->location, place->bias, *place});
    return {};
}

/// Finds the locations of one probe. Errors: it cannot be placed.
Status find(const Snapshot &now, const probe::ProbeEntry &entry, const std::vector<probe::Loaded> &loaded,
            Search &search, Remarks &remarks) {
    const probe::Probe &wanted = entry.probe;
    if (wanted.kind == probe::Kind::watch) return find_watch(now, entry, loaded, search);
    auto resolved = probe::resolve(wanted.spec, wanted.kind, loaded, &now.memory, now.trace.gives_up);
    if (!resolved) return tl::make_unexpected(resolved.error());
    add_found(now, entry, std::move(*resolved), search, remarks);
    return {};
}

/// The locations of all probes. Errors: those of a probe that cannot be placed, and may not be left out.
Result<Search> find_all(const Snapshot &now, const std::vector<std::uint32_t> &probes, Missing missing,
                        Remarks &remarks) {
    std::vector<probe::Loaded> loaded = loaded_modules(now);
    Search search;
    for (std::uint32_t number : probes) {
        const probe::ProbeEntry &entry = now.trace.registry.at(number);
        auto found = find(now, entry, loaded, search, remarks);
        if (found) continue;
        const Error &error = found.error();
        if (error.kind == Error::Kind::given_up) return tl::make_unexpected(error);
        const bool nowhere = error.kind == Error::Kind::not_found;
        if (nowhere || entry.probe.kind != probe::Kind::watch) remarks.nowhere[number] = error.message;
        if (nowhere && (missing == Missing::wait || entry.placed)) continue;
        if (!entry.set->allow_missing) return tl::make_unexpected(error);
        remarks.notices.push_back(error.message);
    }
    return search;
}

/// Compiles the locations that share the options of one command.
Status compile_set(const Snapshot &now, probe::ProbeSet &set, const std::vector<PlannedLocation *> &places,
                   const std::vector<probe::Loaded> &modules, Remarks &remarks) {
    std::vector<probe::LocationRequest> requests;
    for (const PlannedLocation *place : places) {
        const probe::ProbeEntry &wanted = now.trace.registry.at(place->probe);
        // A handler's probe has no program that needs types.
        probe::Kind kind = wanted.probe.handler ? probe::Kind::probe : wanted.probe.kind;
        requests.push_back({wanted.probe.number, kind, place->location, place->bias,
                            place->watch ? place->watch->binding : std::nullopt, wanted.probe.own.get()});
    }
    probe::CompileOptions options;
    options.additional = set.compiled;
    options.modules = modules;
    options.memory = &now.memory;
    auto compiled = probe::compile_all(set.actions, requests, options);
    if (!compiled) return tl::make_unexpected(compiled.error());
    remarks.compiled.insert(&set);
    for (std::size_t i = 0; i < places.size(); i++) places[i]->compiled = std::move((*compiled)[i]);
    return {};
}

Status compile(const Snapshot &now, std::vector<PlannedLocation> &locations, Remarks &remarks) {
    std::map<probe::ProbeSet *, std::vector<PlannedLocation *>> by_set;
    for (PlannedLocation &each : locations) by_set[now.trace.registry.at(each.probe).set.get()].push_back(&each);
    std::vector<probe::Loaded> modules = loaded_modules(now);
    for (auto &[set, places] : by_set)
        if (auto done = compile_set(now, *set, places, modules, remarks); !done) return done;
    return {};
}

/// The name of a place in errors: its function, or the SPEC where none is known.
const std::string &name_of(const Snapshot &now, const PlannedLocation &place) {
    return place.location.symbol.empty() ? now.trace.registry.at(place.probe).probe.spec.text : place.location.symbol;
}

/// Errors: refused (there can be no site), fault.
Status check_site(const Snapshot &now, const PlannedLocation &place) {
    if (place.watch) return {};
    const std::string &name = name_of(now, place);
    const os::Mapping *code = mapping_at(now, place.at(), Access::execute);
    if (!code) return fail(Error::Kind::refused, name + ": its address is not in executable memory");
    if (code->shared)
        return fail(Error::Kind::refused,
                    name + ": its memory is shared (MAP_SHARED), and what else runs there, a child perhaps, would " +
                        "run into the probe");
    auto instruction = engine::plan_instruction(now.space, now.memory, place.at());
    if (!instruction) return fail(std::move(instruction.error()).with(name));
    return {};
}

/// Leaves out the locations that cannot be probed, where their set goes on without them, with a notice each.
void leave_out_refused(const Snapshot &now, std::vector<PlannedLocation> &locations, Remarks &remarks) {
    std::erase_if(locations, [&](const PlannedLocation &place) {
        if (!now.trace.registry.at(place.probe).set->allow_missing) return false;
        auto possible = check_site(now, place);
        if (possible || possible.error().kind == Error::Kind::gone) return false;
        remarks.notices.push_back(possible.error().message);
        return true;
    });
}

/// Advice where one of a SPEC's places is refused: the others may be all that is wanted.
std::string without_it(const Snapshot &now, const InstallPlan &plan, std::uint32_t probe) {
    auto places = std::count_if(plan.locations.begin(), plan.locations.end(),
                                [&](const PlannedLocation &location) { return location.probe == probe; });
    bool by_option = !now.trace.registry.at(probe).probe.handler;
    return places > 1 && by_option ? "--allow-missing goes on without it" : "";
}

/// Refuses places that cannot be probed, before anything is touched.
Status check_sites(const Snapshot &now, const InstallPlan &plan) {
    for (const PlannedLocation &location : plan.locations) {
        auto possible = check_site(now, location);
        if (possible) continue;
        possible.error().hint = without_it(now, plan, location.probe);
        return possible;
    }
    return {};
}

void plan_resolvers(const Snapshot &now, InstallPlan &plan, std::vector<trace::WaitingIfunc> ifuncs) {
    for (trace::WaitingIfunc &ifunc : ifuncs) {
        auto same = [&](const trace::WaitingIfunc &other) {
            return other.probe == ifunc.probe && other.at() == ifunc.at();
        };
        if (std::any_of(now.installed.ifuncs.begin(), now.installed.ifuncs.end(), same)) continue;
        plan_internal(now, plan, resolves_ifunc, ifunc.at());
        plan.ifuncs.push_back(std::move(ifunc));
    }
}

} // namespace

bool is_attached(const Snapshot &now, std::uint32_t probe, VirtAddr at, std::uint32_t instance) {
    auto found = now.space.sites.find(at);
    if (found == now.space.sites.end()) return false;
    const std::vector<engine::Attachment *> &there = found->second->attachments;
    return std::any_of(there.begin(), there.end(), [&](const engine::Attachment *attachment) {
        if (attachment->dismissed) return false;
        const trace::CountedLocation &location = *now.trace.installed.locations[attachment->location];
        return location.probe == probe && location.instance == instance;
    });
}

Result<InstallPlan> plan(const Snapshot &now, const std::vector<std::uint32_t> &probes, Missing missing,
                         Remarks &remarks) {
    auto search = find_all(now, probes, missing, remarks);
    if (!search) return tl::make_unexpected(search.error());
    auto plan = plan_locations(now, std::move(search->found), remarks);
    if (!plan) return plan;
    plan_resolvers(now, *plan, std::move(search->ifuncs));
    remarks.notices.insert(remarks.notices.end(), search->notices.begin(), search->notices.end());
    return plan;
}

Result<InstallPlan> plan_locations(const Snapshot &now, std::vector<PlannedLocation> locations, Remarks &remarks) {
    leave_out_refused(now, locations, remarks);
    for (PlannedLocation &each : locations) {
        remarks.expected.insert(each.probe);
        each.kind = now.trace.registry.at(each.probe).probe.kind;
    }
    if (auto compiled = compile(now, locations, remarks); !compiled) return tl::make_unexpected(compiled.error());
    InstallPlan plan;
    plan.locations = std::move(locations);
    for (const PlannedLocation &each : plan.locations)
        if (std::string unread = each.location.module ? each.location.module->unread_debug_information() : "";
            !unread.empty())
            remarks.notices.push_back(unread);
    if (plan.has_return_probe()) plan_unwinding(now, plan);
    plan_go(now, plan);
    plan_jumps_back(now, plan);
    plan_sigtrap(now, plan);
    if (auto possible = check_sites(now, plan); !possible) return tl::make_unexpected(possible.error());
    return plan;
}

} // namespace ktrace::arming
