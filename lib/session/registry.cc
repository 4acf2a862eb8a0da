#include "session/registry.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <unordered_set>

#include "session/calibrate.h"
#include "session/rearm.h"
#include "session/seize.h"
#include "session/unload.h"
#include "trap/roster.h"
#include "trap/watch.h"

namespace ktrace::session {

using trap::Ground;
using trap::Traced;

namespace {

using Numbers = std::vector<std::uint32_t>;

/// One process for each address space that is traced and can be armed now. A program that is just being started gets
/// all probes when its libraries are mapped.
std::vector<Pid> armable_processes(const State &state) {
    std::vector<Pid> pids;
    std::unordered_set<const Ground *> seen;
    for (const auto &[pid, traced] : state.world.processes) {
        if (traced->silent || traced->borrowed) continue;
        auto arming = state.armings.find(traced->ground.get());
        bool starting = arming != state.armings.end() && arming->second.waits_for_loader;
        if (!starting && seen.insert(traced->ground.get()).second) pids.push_back(Pid{pid});
    }
    return pids;
}

Traced *process(State &state, Pid pid) {
    auto found = state.world.processes.find(pid.value);
    return found == state.world.processes.end() ? nullptr : found->second.get();
}

os::Stopped *stopped_of(State &state, os::Stopped *stopped, Pid pid) {
    if (!stopped) return nullptr;
    auto task = state.world.tasks.find(stopped->tid().value);
    return task != state.world.tasks.end() && task->second.pid == pid ? stopped : nullptr;
}

tl::unexpected<Error> has_ended(Pid pid) {
    return fail(Error::Kind::gone, "process " + std::to_string(pid.value) + " has ended");
}

/// Arms probes in one process. Errors: those of the probes; gone.
Status arm_in(State &state, Pid pid, const Numbers &numbers, os::Stopped *stopped) {
    Traced *traced = process(state, pid);
    if (!traced) return has_ended(pid);
    if (auto refreshed = refresh_modules(state, *traced); !refreshed) return fail(refreshed.error());
    auto plan = plan_arming(state, *traced, numbers, Missing::wait);
    if (!plan) return tl::make_unexpected(plan.error());
    if (plan->empty()) return {};
    if (stopped || has_room(state, *traced, *plan) || !may_stop_one(state, pid))
        return carry_out(state, *traced, std::move(*plan), stopped);
    // While one is stopped for it the others go on, and anything may happen to the process: it is planned again.
    auto one = stop_one(state, *traced);
    if (!one) return tl::make_unexpected(one.error());
    Status armed = arm_in(state, pid, numbers, &*one);
    release_one(state, std::move(*one));
    return armed;
}

/// A process has ended under us: that is no error of the probes.
bool is_failure(const Status &status) { return !status && status.error().kind != Error::Kind::gone; }

/// Arms probes in all processes, up to the first error. Errors: those of the probes; gone where none is left, denied
/// where one is that may not be read any more.
Status arm_everywhere(State &state, const std::vector<Pid> &pids, const Numbers &numbers, os::Stopped *stopped) {
    bool alive = pids.empty();
    std::optional<Error> denied;
    for (Pid pid : pids) {
        Status armed = arm_in(state, pid, numbers, stopped_of(state, stopped, pid));
        // What cannot be read in a process that is just ending is no error either.
        auto maps = armed ? std::nullopt : os::read_maps(pid);
        if (is_failure(armed) && maps && !maps->empty()) return armed;
        alive = alive || armed.has_value();
        if (!armed && armed.error().kind == Error::Kind::denied) denied = armed.error();
    }
    if (alive) return {};
    return denied ? fail(*denied) : has_ended(pids.front());
}

/// The error of a probe that no process has.
Status check_found(State &state, const std::vector<Pid> &pids, const Numbers &numbers) {
    for (std::uint32_t number : numbers) {
        const probe::Registered &registered = state.registry.at(number);
        if (registered.placed || registered.set->allow_missing) continue;
        for (Pid pid : pids)
            if (Traced *traced = process(state, pid))
                if (auto plan = plan_arming(state, *traced, {number}, Missing::refuse); !plan)
                    return tl::make_unexpected(plan.error());
    }
    return {};
}

/// Calls visit(Traced &, ArmedLocation &, Site *) for what is armed of these probes, wherever that is; a watchpoint has
/// no site.
template <class F> void for_armed(State &state, std::span<const std::uint32_t> numbers, F &&visit) {
    std::unordered_set<std::uint32_t> wanted(numbers.begin(), numbers.end());
    std::unordered_set<const Ground *> seen;
    for (auto &[pid, traced] : state.world.processes) {
        Ground &ground = *traced->ground;
        auto arming = state.armings.find(&ground);
        if (arming == state.armings.end() || !seen.insert(&ground).second) continue;
        std::uint32_t returns = ground.return_probes;
        for (auto &location : arming->second.locations)
            if (wanted.contains(state.locations[location->location]->probe))
                if (trap::Site *site = location->watch ? nullptr : ground.site_at(location->at);
                    site || location->watch)
                    visit(*traced, *location, site);
        watch_returns(state, *traced);
        if (ground.return_probes < returns) trap::drop_idle_return_sites(ground);
    }
}

void look_for_enclosing_calls(State &state) {
    for (auto &[tid, task] : state.world.tasks) task.enclosures_known = false;
}

/// Brings what is armed in line with what is on. Errors: the first; the rest is done nevertheless.
Status apply_switches(State &state, std::span<const std::uint32_t> numbers) {
    Status status;
    for_armed(state, numbers, [&](Traced &traced, ArmedLocation &location, trap::Site *site) {
        const CountedLocation &counted = *state.locations[location.location];
        bool on = is_on(state, counted);
        if (!site) {
            trap::switch_watch(*traced.ground, location.armed, on);
            return;
        }
        if (!on) {
            trap::switch_off(*traced.ground, *site, location.armed);
            return;
        }
        // Calls may have begun meanwhile: they are looked for once more.
        if (location.armed.encloses != 0 && !location.armed.on) look_for_enclosing_calls(state);
        auto done = trap::switch_on(*traced.ground, *site, location.armed);
        if (is_failure(done) && status) status = fail(std::move(done.error()).with(counted.info.symbol));
    });
    return status;
}

bool has_watchpoint(const State &state, std::span<const std::uint32_t> numbers) {
    return std::any_of(numbers.begin(), numbers.end(), [&](std::uint32_t number) {
        return state.registry.at(number).probe.kind == probe::Kind::watch;
    });
}

/// Where watchpoints among these were switched on: every task gets its debug registers. Errors: refused.
Status set_watches_of(State &state, std::span<const std::uint32_t> numbers) {
    if (!has_watchpoint(state, numbers)) return {};
    std::vector<Pid> pids;
    for (const auto &[pid, traced] : state.world.processes) pids.push_back(Pid{pid});
    for (Pid pid : pids)
        if (Traced *traced = process(state, pid))
            if (auto set = set_all_watches(state, *traced); !set) return set;
    return {};
}

/// No location of these probes has been seen by anybody: they are as if they had never been. False: others are behind
/// them.
bool drop_locations(State &state, const Numbers &numbers) {
    auto is_theirs = [&](const auto &location) {
        return std::find(numbers.begin(), numbers.end(), location->probe) != numbers.end();
    };
    std::erase_if(state.location_of, [&](const auto &entry) { return is_theirs(state.locations[entry.second]); });
    while (!state.locations.empty() && is_theirs(state.locations.back())) state.locations.pop_back();
    return std::none_of(state.locations.begin(), state.locations.end(), is_theirs);
}

/// Numbers and places are free again, unless a handler is running: it may be one of a probe that is cleared away.
void take_back(State &state, const Numbers &numbers, bool between_stops) {
    unregister_probes(state, numbers);
    if (!between_stops) return;
    clear_away(state);
    if (!state.has_dismissed && drop_locations(state, numbers)) state.registry.take_back(numbers);
}

/// The probes that follow an `inside` function for removed ones alone.
Numbers unneeded_enclosing(const State &state, const Numbers &removed) {
    std::unordered_set<std::uint32_t> enclosing, needed;
    for (std::uint32_t number : removed) enclosing.insert(state.registry.at(number).set->inside);
    for (std::uint32_t number : state.registry.shown()) needed.insert(state.registry.at(number).set->inside);
    Numbers unneeded;
    for (std::uint32_t number : enclosing)
        if (number != 0 && !needed.contains(number) && !state.registry.at(number).removed) unneeded.push_back(number);
    return unneeded;
}

void forget_waiting_ifuncs(State &state, std::span<const std::uint32_t> numbers) {
    for (auto &[ground, arming] : state.armings)
        std::erase_if(arming.ifuncs, [&](const WaitingIfunc &ifunc) {
            return std::find(numbers.begin(), numbers.end(), ifunc.probe) != numbers.end();
        });
}

/// The probe that follows the calls of a set's `inside` function.
std::uint32_t enter_enclosing(State &state, probe::ProbeSet &set) {
    auto enclosing = std::make_shared<probe::ProbeSet>();
    enclosing->hidden = true;
    enclosing->allow_missing = set.allow_missing;
    enclosing->actions.aggregate = probe::Actions::Aggregate::count; // no types are asked for
    enclosing->actions.maxactive = std::numeric_limits<std::uint32_t>::max();
    set.inside = state.registry.enter(enclosing, {{probe::Kind::ret, *set.actions.inside}}).front();
    return set.inside;
}

} // namespace

bool wants_calibration(const State &state, const probe::Actions &actions, const std::vector<probe::Wish> &wishes) {
    auto returns = [](const probe::Wish &wish) { return wish.kind == probe::Kind::ret; };
    return state.world.corrections.is_empty() && probe::wants_durations(actions) &&
           std::any_of(wishes.begin(), wishes.end(), returns);
}

Result<Numbers> register_probes(State &state, const std::shared_ptr<probe::ProbeSet> &set,
                                const std::vector<probe::Wish> &wishes, os::Stopped *stopped) {
    if (auto expressions = probe::check_expressions(set->actions); !expressions) return fail(expressions.error());
    // Else the hits of who is traced would have to wait for that: it was seen to before, or comes to nothing.
    if (state.world.processes.empty() && wants_calibration(state, set->actions, wishes))
        state.world.corrections = calibrate();
    Numbers numbers = state.registry.enter(set, wishes);
    if (set->actions.inside) numbers.push_back(enter_enclosing(state, *set));
    std::vector<Pid> pids = armable_processes(state);
    Status armed = arm_everywhere(state, pids, numbers, stopped);
    if (armed) armed = check_found(state, pids, numbers);
    if (armed) {
        for (std::uint32_t number : numbers) state.registry.at(number).ready = true;
        armed = apply_switches(state, numbers);
    }
    if (armed) armed = set_watches_of(state, numbers);
    if (armed) {
        if (set->inside != 0) numbers.pop_back();
        return numbers;
    }
    for (std::uint32_t number : numbers) state.registry.at(number).ready = false;
    take_back(state, numbers, stopped == nullptr);
    return tl::make_unexpected(armed.error());
}

void unregister_probes(State &state, std::span<const std::uint32_t> given) {
    for (std::uint32_t number : given) state.registry.at(number).removed = true;
    Numbers numbers(given.begin(), given.end());
    for (std::uint32_t number : unneeded_enclosing(state, numbers)) {
        state.registry.at(number).removed = true;
        numbers.push_back(number);
    }
    forget_waiting_ifuncs(state, numbers);
    for_armed(state, numbers, [&](Traced &traced, ArmedLocation &location, trap::Site *site) {
        if (site)
            trap::dismiss(*traced.ground, *site, location.armed);
        else
            trap::remove_watch(*traced.ground, location.armed);
    });
    for (auto &[pid, traced] : state.world.processes) {
        auto found = state.armings.find(traced->ground.get());
        if (found == state.armings.end()) continue;
        trap::end_calls_of_dismissed(state.world, *traced);
        trap::drop_idle_return_sites(*traced->ground);
        std::vector<std::unique_ptr<ArmedLocation>> staying;
        for (auto &location : found->second.locations)
            (location->armed.dismissed ? found->second.dismissed : staying).push_back(std::move(location));
        found->second.locations = std::move(staying);
    }
    state.has_dismissed = true;
}

bool is_on(const State &state, const CountedLocation &location) {
    return !location.too_costly && state.registry.is_on(location.probe);
}

void apply_switches(State &state, std::uint32_t number) {
    static_cast<void>(apply_switches(state, std::span(&number, 1)));
}

Status enable_probes(State &state, std::span<const std::uint32_t> numbers) {
    Numbers changed;
    for (std::uint32_t number : numbers) {
        probe::Registered &registered = state.registry.at(number);
        bool was_off = !std::exchange(registered.enabled, true);
        for (auto &location : state.locations)
            if (location->probe == number) was_off = std::exchange(location->too_costly, false) || was_off;
        if (was_off) changed.push_back(number);
    }
    auto done = apply_switches(state, changed);
    if (done) done = set_watches_of(state, changed);
    if (!done) disable_probes(state, changed);
    return done;
}

void disable_probes(State &state, std::span<const std::uint32_t> numbers) {
    for (std::uint32_t number : numbers) state.registry.at(number).enabled = false;
    static_cast<void>(apply_switches(state, numbers));
}

Status switch_all(State &state, bool on) {
    state.registry.switch_all(on);
    auto numbers = state.registry.present();
    auto done = apply_switches(state, numbers);
    return done && on ? set_watches_of(state, numbers) : done;
}

void clear_away(State &state) {
    if (!state.has_dismissed) return;
    state.has_dismissed = false;
    auto in_use = trap::sites_in_use(state.world);
    for (auto &[ground, arming] : state.armings) {
        std::erase_if(arming.dismissed, [&, ground = ground](const auto &location) {
            trap::Site *site = ground->site_at(location->at);
            return !site || trap::strike_off(*site, location->armed, in_use);
        });
        state.has_dismissed = state.has_dismissed || !arming.dismissed.empty();
    }
}

} // namespace ktrace::session
