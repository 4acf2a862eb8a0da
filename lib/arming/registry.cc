#include "arming/registry.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <unordered_set>

#include "arming/install.h"
#include "arming/modules_changed.h"
#include "arming/planning.h"
#include "engine/calls/consumers.h"
#include "engine/space/agent_threads.h"
#include "engine/watch/watch.h"
#include "trace/calibrate.h"
#include "tracees/seize.h"

namespace ktrace::arming {

using engine::AddressSpaceState;
using engine::Process;

namespace {

using Numbers = std::vector<std::uint32_t>;

/// One process for each address space that is traced and can be armed now. A program that is just being started gets
/// all probes when its libraries are mapped.
std::vector<Pid> armable_processes(const trace::Trace &trace) {
    std::vector<Pid> pids;
    std::unordered_set<const AddressSpaceState *> seen;
    for (const auto &[pid, process] : trace.engine.processes) {
        if (process->silent || process->borrowed) continue;
        auto arming = trace.installed.armings.find(process->space.get());
        bool starting = arming != trace.installed.armings.end() && arming->second.waits_for_loader;
        if (!starting && seen.insert(process->space.get()).second) pids.push_back(Pid{pid});
    }
    return pids;
}

Process *process_of(trace::Trace &trace, Pid pid) {
    auto found = trace.engine.processes.find(pid.value);
    return found == trace.engine.processes.end() ? nullptr : found->second.get();
}

os::Stopped *stopped_of(trace::Trace &trace, os::Stopped *stopped, Pid pid) {
    if (!stopped) return nullptr;
    auto task = trace.engine.tasks.find(stopped->tid().value);
    return task != trace.engine.tasks.end() && task->second.pid == pid ? stopped : nullptr;
}

tl::unexpected<Error> has_ended(Pid pid) {
    return fail(Error::Kind::gone, "process " + std::to_string(pid.value) + " has ended");
}

/// Arms probes in one process. Errors: those of the probes; gone.
Status arm_in(trace::Trace &trace, Pid pid, const Numbers &numbers, os::Stopped *stopped) {
    Process *process = process_of(trace, pid);
    if (!process) return has_ended(pid);
    if (auto refreshed = refresh_modules(trace, *process); !refreshed) return fail(refreshed.error());
    auto plan = make_plan(trace, *process, numbers, Missing::wait);
    if (!plan) return tl::make_unexpected(plan.error());
    if (plan->empty()) return {};
    if (stopped || has_room(trace, *process, *plan)) return install(trace, *process, std::move(*plan), stopped);
    // While one task is stopped for it the others run on, and may change the process: it is planned again.
    auto one = tracees::stop_one(trace, *process);
    if (!one) return tl::make_unexpected(one.error());
    Status armed = arm_in(trace, pid, numbers, &*one);
    tracees::release_one(trace, std::move(*one));
    return armed;
}

/// A process has ended under us: that is no error of the probes.
bool is_failure(const Status &status) { return !status && status.error().kind != Error::Kind::gone; }

/// Arms probes in all processes, up to the first error. Errors: those of the probes; gone where none is left, denied
/// where one is that may not be read any more.
Status arm_everywhere(trace::Trace &trace, const std::vector<Pid> &pids, const Numbers &numbers, os::Stopped *stopped) {
    bool alive = pids.empty();
    std::optional<Error> denied;
    for (Pid pid : pids) {
        Status armed = arm_in(trace, pid, numbers, stopped_of(trace, stopped, pid));
        // Maps that cannot be read in a process that is just ending are no error either.
        auto maps = armed ? std::nullopt : os::read_maps(pid);
        if (is_failure(armed) && maps && !maps->empty()) return armed;
        alive = alive || armed.has_value();
        if (!armed && armed.error().kind == Error::Kind::denied) denied = armed.error();
    }
    if (alive) return {};
    return denied ? fail(*denied) : has_ended(pids.front());
}

/// The error of a probe that no process has.
Status check_found(trace::Trace &trace, const std::vector<Pid> &pids, const Numbers &numbers) {
    for (std::uint32_t number : numbers) {
        const probe::ProbeEntry &registered = trace.registry.at(number);
        if (registered.placed || registered.set->allow_missing) continue;
        for (Pid pid : pids)
            if (Process *process = process_of(trace, pid))
                if (auto plan = make_plan(trace, *process, {number}, Missing::refuse); !plan)
                    return tl::make_unexpected(plan.error());
    }
    return {};
}

/// Their sites are about to change: all jumps become traps at once, and not each for itself.
void lift_jumps_of(const trace::Trace &trace, AddressSpaceState &space, const trace::Arming &arming,
                   const std::unordered_set<std::uint32_t> &probes) {
    if (!space.jumps) return;
    std::vector<engine::Jump *> theirs;
    for (const auto &location : arming.locations)
        if (probes.contains(trace.installed.locations[location->location]->probe))
            if (engine::Jump *jump = space.jumps->over(location->at)) theirs.push_back(jump);
    engine::lift(space, theirs);
}

/// Calls visit(Process &, AttachedLocation &, Site *) for each armed location of these probes, in all processes; a
/// watchpoint has no site.
template <class F> void for_armed(trace::Trace &trace, std::span<const std::uint32_t> numbers, F &&visit) {
    std::unordered_set<std::uint32_t> wanted(numbers.begin(), numbers.end());
    std::unordered_set<const AddressSpaceState *> seen;
    for (auto &[pid, process] : trace.engine.processes) {
        AddressSpaceState &space = *process->space;
        auto arming = trace.installed.armings.find(&space);
        if (arming == trace.installed.armings.end() || !seen.insert(&space).second) continue;
        std::uint32_t returns = space.return_probes;
        lift_jumps_of(trace, space, arming->second, wanted);
        for (auto &location : arming->second.locations)
            if (wanted.contains(trace.installed.locations[location->location]->probe))
                if (engine::Site *site = location->watch ? nullptr : space.site_at(location->at);
                    site || location->watch)
                    visit(*process, *location, site);
        watch_returns(trace, *process);
        if (space.return_probes < returns) engine::drop_idle_return_sites(space);
    }
}

void look_for_enclosing_calls(trace::Trace &trace) {
    for (auto &[tid, task] : trace.engine.tasks) task.calls.enclosures_known = false;
    for (const auto &[pid, process] : trace.engine.processes)
        if (process->space->threads) process->space->threads->doubt_enclosures();
}

/// Switches the armed locations of these probes on or off, as the probes are. Errors: the first; the rest is done
/// nevertheless.
Status apply_switches(trace::Trace &trace, std::span<const std::uint32_t> numbers) {
    Status status;
    for_armed(trace, numbers, [&](Process &process, trace::AttachedLocation &location, engine::Site *site) {
        const trace::CountedLocation &counted = *trace.installed.locations[location.location];
        bool on = trace::is_on(trace, counted);
        if (!site) {
            engine::switch_watch(*process.space, location.attachment, on);
            return;
        }
        if (!on) {
            engine::switch_off(*process.space, *site, location.attachment);
            return;
        }
        // Calls may have begun meanwhile: they are looked for once more.
        if (location.attachment.encloses != 0 && !location.attachment.on) look_for_enclosing_calls(trace);
        auto done = engine::switch_on(*process.space, *site, location.attachment);
        if (is_failure(done) && status) status = fail(std::move(done.error()).with(counted.info.symbol));
    });
    return status;
}

bool has_watchpoint(const trace::Trace &trace, std::span<const std::uint32_t> numbers) {
    return std::any_of(numbers.begin(), numbers.end(), [&](std::uint32_t number) {
        return trace.registry.at(number).probe.kind == probe::Kind::watch;
    });
}

/// Where watchpoints among these were switched on: every task gets its debug registers. Errors: refused.
Status set_watches_of(trace::Trace &trace, std::span<const std::uint32_t> numbers) {
    if (!has_watchpoint(trace, numbers)) return {};
    std::vector<Pid> pids;
    for (const auto &[pid, process] : trace.engine.processes) pids.push_back(Pid{pid});
    for (Pid pid : pids)
        if (Process *process = process_of(trace, pid))
            if (auto set = tracees::set_all_watches(trace, *process); !set) return set;
    return {};
}

/// Drops the locations of these probes, which nothing has used: they are as if they had never been. False: others are
/// behind them.
bool drop_locations(trace::Trace &trace, const Numbers &numbers) {
    auto is_theirs = [&](const auto &location) {
        return std::find(numbers.begin(), numbers.end(), location->probe) != numbers.end();
    };
    std::erase_if(trace.installed.location_of,
                  [&](const auto &entry) { return is_theirs(trace.installed.locations[entry.second]); });
    while (!trace.installed.locations.empty() && is_theirs(trace.installed.locations.back()))
        trace.installed.locations.pop_back();
    return std::none_of(trace.installed.locations.begin(), trace.installed.locations.end(), is_theirs);
}

/// Numbers and places are free again, unless a handler is running, which may be that of a probe that is cleared away.
void take_back(trace::Trace &trace, const Numbers &numbers, bool between_stops) {
    unregister_probes(trace, numbers);
    if (!between_stops) return;
    clear_away(trace);
    if (!trace.installed.has_dismissed && drop_locations(trace, numbers)) trace.registry.take_back(numbers);
}

/// The probes that follow an `inside` function for removed ones alone.
Numbers unneeded_enclosing(const trace::Trace &trace, const Numbers &removed) {
    std::unordered_set<std::uint32_t> enclosing, needed;
    for (std::uint32_t number : removed) enclosing.insert(trace.registry.at(number).inside);
    for (std::uint32_t number : trace.registry.shown()) needed.insert(trace.registry.at(number).inside);
    Numbers unneeded;
    for (std::uint32_t number : enclosing)
        if (number != 0 && !needed.contains(number) && !trace.registry.at(number).removed) unneeded.push_back(number);
    return unneeded;
}

void forget_waiting_ifuncs(trace::Trace &trace, std::span<const std::uint32_t> numbers) {
    for (auto &[space, arming] : trace.installed.armings)
        std::erase_if(arming.ifuncs, [&](const trace::WaitingIfunc &ifunc) {
            return std::find(numbers.begin(), numbers.end(), ifunc.probe) != numbers.end();
        });
}

/// The probes that follow the calls of the `inside` functions of these: one for each such function.
Numbers enter_enclosing(trace::Trace &trace, const Numbers &numbers) {
    Numbers entered;
    std::map<std::string, std::uint32_t> by_function;
    for (std::uint32_t number : numbers) {
        probe::ProbeEntry &entry = trace.registry.at(number);
        const std::optional<probe::Spec> &inside = entry.actions().inside;
        if (!inside) continue;
        auto [known, is_new] = by_function.try_emplace(inside->text, 0);
        if (is_new) {
            auto enclosing = std::make_shared<probe::ProbeSet>();
            enclosing->hidden = enclosing->encloses = true;
            enclosing->allow_missing = entry.set->allow_missing;
            enclosing->actions.aggregate = probe::Actions::Aggregate::count; // no types are asked for
            enclosing->actions.maxactive = std::numeric_limits<std::uint32_t>::max();
            known->second = trace.registry.enter(enclosing, {{0, probe::Kind::ret, *inside}}).front();
            entered.push_back(known->second);
        }
        entry.inside = known->second;
    }
    return entered;
}

/// Syntax of all EXPRs of a set's probes. Error: usage, with the column.
Status check_expressions(const probe::ProbeSet &set, const std::vector<probe::Probe> &probes) {
    if (auto right = probe::check_expressions(set.actions); !right) return right;
    for (const probe::Probe &each : probes)
        if (auto right = each.own ? probe::check_expressions(each.own->actions) : Status{}; !right)
            return fail(each.own->pointing(right.error()));
    return {};
}

} // namespace

bool wants_calibration(const trace::Trace &trace, const probe::Actions &actions,
                       const std::vector<probe::Probe> &probes) {
    auto measures = [&](const probe::Probe &probe) {
        return probe.kind == probe::Kind::ret && probe::wants_durations(probe.own ? probe.own->actions : actions);
    };
    return trace.engine.corrections.is_empty() && std::any_of(probes.begin(), probes.end(), measures);
}

Status check_any_left(const trace::Trace &trace) {
    const trace::Config &config = trace.config;
    if (config.probes.empty() || !config.plugins.empty() || config.follow) return {};
    for (std::uint32_t number = 1; number <= config.probes.size(); number++)
        if (trace.registry.at(number).expected) return {};
    return fail(Error::Kind::not_found, "no probe is left: none of them can be placed",
                "MODULE:FUNCTION waits for a library that is loaded later, and -f follows into other programs");
}

Result<Numbers> register_probes(trace::Trace &trace, const std::shared_ptr<probe::ProbeSet> &set,
                                const std::vector<probe::Probe> &probes, os::Stopped *stopped) {
    if (auto expressions = check_expressions(*set, probes); !expressions) return fail(expressions.error());
    // Where processes are traced, their hits would have to wait for it: then it was done before, or is left out.
    if (trace.engine.processes.empty() && wants_calibration(trace, set->actions, probes))
        trace.engine.corrections = trace::calibrate();
    Numbers numbers = trace.registry.enter(set, probes);
    const Numbers enclosing = enter_enclosing(trace, numbers);
    numbers.insert(numbers.end(), enclosing.begin(), enclosing.end());
    std::vector<Pid> pids = armable_processes(trace);
    Status armed = arm_everywhere(trace, pids, numbers, stopped);
    if (armed) armed = check_found(trace, pids, numbers);
    if (armed) {
        for (std::uint32_t number : numbers) trace.registry.at(number).ready = true;
        armed = apply_switches(trace, numbers);
    }
    if (armed) armed = set_watches_of(trace, numbers);
    if (armed) {
        numbers.resize(probes.size());
        return numbers;
    }
    for (std::uint32_t number : numbers) trace.registry.at(number).ready = false;
    take_back(trace, numbers, stopped == nullptr);
    return tl::make_unexpected(armed.error());
}

void unregister_probes(trace::Trace &trace, std::span<const std::uint32_t> given) {
    Numbers numbers = trace.registry.with_those_beside({given.begin(), given.end()});
    for (std::uint32_t number : numbers) trace.registry.at(number).removed = true;
    for (std::uint32_t number : unneeded_enclosing(trace, numbers)) {
        trace.registry.at(number).removed = true;
        numbers.push_back(number);
    }
    forget_waiting_ifuncs(trace, numbers);
    for_armed(trace, numbers, [&](Process &process, trace::AttachedLocation &location, engine::Site *site) {
        if (site)
            engine::dismiss(*process.space, *site, location.attachment);
        else
            engine::remove_watch(*process.space, location.attachment);
    });
    for (auto &[pid, process] : trace.engine.processes) {
        auto found = trace.installed.armings.find(process->space.get());
        if (found == trace.installed.armings.end()) continue;
        engine::end_calls_of_dismissed(trace.engine, *process);
        engine::drop_idle_return_sites(*process->space);
        std::vector<std::unique_ptr<trace::AttachedLocation>> staying;
        for (auto &location : found->second.locations)
            (location->attachment.dismissed ? found->second.dismissed : staying).push_back(std::move(location));
        found->second.locations = std::move(staying);
    }
    trace.installed.has_dismissed = true;
}

void apply_switches(trace::Trace &trace, std::uint32_t number) {
    static_cast<void>(apply_switches(trace, trace.registry.with_those_beside({number})));
}

Status enable_probes(trace::Trace &trace, std::span<const std::uint32_t> numbers) {
    Numbers changed;
    for (std::uint32_t number : numbers) {
        probe::ProbeEntry &registered = trace.registry.at(number);
        bool was_off = !std::exchange(registered.probe.enabled, true);
        for (auto &location : trace.installed.locations)
            if (location->probe == number) was_off = std::exchange(location->too_costly, false) || was_off;
        if (was_off) changed.push_back(number);
    }
    const Numbers all = trace.registry.with_those_beside(changed);
    auto done = apply_switches(trace, all);
    if (done) done = set_watches_of(trace, all);
    if (!done) disable_probes(trace, changed);
    return done;
}

void disable_probes(trace::Trace &trace, std::span<const std::uint32_t> numbers) {
    for (std::uint32_t number : numbers) trace.registry.at(number).probe.enabled = false;
    static_cast<void>(apply_switches(trace, trace.registry.with_those_beside({numbers.begin(), numbers.end()})));
}

Status switch_all(trace::Trace &trace, bool on) {
    trace.registry.switch_all(on);
    auto numbers = trace.registry.present();
    auto done = apply_switches(trace, numbers);
    return done && on ? set_watches_of(trace, numbers) : done;
}

void clear_away(trace::Trace &trace) {
    if (!trace.installed.has_dismissed) return;
    trace.installed.has_dismissed = false;
    auto in_use = engine::sites_in_use(trace.engine);
    for (auto &[space, arming] : trace.installed.armings) {
        std::erase_if(arming.dismissed, [&, space = space](const auto &location) {
            engine::Site *site = space->site_at(location->at);
            return !site || engine::remove_from_site(*site, location->attachment, in_use);
        });
        trace.installed.has_dismissed = trace.installed.has_dismissed || !arming.dismissed.empty();
    }
}

} // namespace ktrace::arming
