#include "session/attach.h"

#include <algorithm>
#include <unordered_set>

#include <sched.h>

#include "base/clock.h"
#include "base/text.h"
#include "os/interrupts.h"
#include "session/downloads.h"
#include "session/follow.h"
#include "session/handover.h"
#include "session/linger.h"
#include "session/plugins.h"
#include "session/rearm.h"
#include "session/refusals.h"
#include "session/seize.h"
#include "session/start.h"
#include "session/unload.h"

namespace ktrace::session {

using trap::Traced;

namespace {

/// True where a probe that may be in any module has no place in a plan.
bool lacks_some(const State &state, const ArmPlan &plan) {
    std::unordered_set<std::uint32_t> found;
    for (const auto &location : plan.locations) found.insert(state.locations[location->location]->probe);
    for (const WaitingIfunc &ifunc : plan.ifuncs) found.insert(ifunc.probe);
    auto numbers = state.registry.present();
    return std::any_of(numbers.begin(), numbers.end(), [&](std::uint32_t number) {
        return state.registry.at(number).probe.spec.module.empty() && !found.contains(number);
    });
}

/// The plan of all probes. In a process that was started a moment ago nothing is armed before everything is found, or
/// the loader has mapped all of the program's libraries.
Result<ArmPlan> plan_all(State &state, Traced &traced) {
    bool complete = modules_complete(traced);
    auto plan = plan_arming(state, traced, state.registry.present(), complete ? Missing::refuse : Missing::wait);
    bool waits = plan && !complete && (lacks_some(state, *plan) || !state.config.plugins.empty());
    state.armings[traced.ground.get()].waits_for_loader = waits;
    if (!waits) return plan;
    return ArmPlan{};
}

/// All that is known of a process, anew: it called exec after it was looked at and before it was seized.
Status look_anew(State &state, Traced &traced) {
    auto looked = look_at(state, traced.process.pid.value);
    if (!looked) return tl::make_unexpected(looked.error());
    state.armings.erase(traced.ground.get());
    traced.process = std::move((*looked)->process);
    traced.ground = std::move((*looked)->ground);
    return {};
}

/// True where libraries have come or gone since the process was looked at.
Result<bool> has_other_modules(State &state, Traced &traced) {
    const std::size_t modules = traced.process.modules.size();
    auto loaded = refresh_modules(state, traced);
    if (!loaded) return fail(loaded.error());
    return !loaded->empty() || traced.process.modules.size() != modules;
}

/// The plan of a process whose loader is watched. Where that is in the middle of its work still, what it takes out is
/// let alone, and what it has mapped by halves is not looked at: all is armed at the end of that.
Result<ArmPlan> plan_watched(State &state, Traced &traced) {
    const bool unloads = state.armings[traced.ground.get()].unloads = is_unloading(traced);
    auto plan = unloads ? Result<ArmPlan>(ArmPlan{}) : plan_all(state, traced);
    const bool waits = unloads || (!plan && !modules_complete(traced));
    if (!waits) return plan;
    state.armings[traced.ground.get()].waits_for_loader = true;
    return ArmPlan{};
}

/// `plan`: nothing where the process never held still for long enough to make one. `stopped`: a task of the process;
/// nullptr: none may be stopped.
Status arm_all(State &state, Traced &traced, std::optional<ArmPlan> plan, os::Stopped *stopped) {
    if (became_another(traced)) {
        if (auto looked = look_anew(state, traced); !looked) return looked;
        plan.reset();
    }
    // From here on no library comes or goes unseen. Where one has since the process was looked at, that is another
    // plan.
    if (auto watched = watch_loader(state, traced, stopped); !watched) return watched;
    auto others = has_other_modules(state, traced);
    if (!others) return tl::make_unexpected(others.error());
    if (!plan || *others || state.armings[traced.ground.get()].waits_for_loader || is_unloading(traced)) {
        auto anew = plan_watched(state, traced);
        if (!anew) return tl::make_unexpected(anew.error());
        plan = std::move(*anew);
    }
    return carry_out(state, traced, std::move(*plan), stopped);
}

void announce_attached(State &state, const Traced &traced) {
    Arming &arming = state.armings[traced.ground.get()];
    arming.told_to_wait = arming.waits_for_loader;
    const char *waits_for = arming.unloads ? "unloading libraries: its probes wait until that is done"
                                           : "being started: its probes wait until its libraries are loaded";
    if (arming.waits_for_loader) // it is told when all is armed
        tell_once(state, "process " + std::to_string(traced.process.pid.value) + " (" +
                             text::escape(traced.process.comm) + ") is just " + waits_for);
    else if (state.config.plugins.empty()) // else when the plugins' probes are there, too
        tell_attached(state, traced);
}

/// A task of the process that was to work for us has ended: true where an exec of another one was the reason. Until
/// that has taken over the leader's id, the leader is a zombie, as it is where it has ended by itself.
bool is_overtaken_by_exec(State &state, Pid pid) {
    constexpr std::uint64_t patience_ns = 1'000'000'000;
    std::uint64_t end = monotonic_ns() + patience_ns;
    while (os::has_ended(Tid{pid.value})) {
        auto tasks = os::read_tasks(pid);
        if (std::all_of(tasks.begin(), tasks.end(), os::has_ended) || monotonic_ns() > end) return false;
        state.world.waiter.look_at_others(Tid{pid.value}); // it waits for ends that only we can take
    }
    return true;
}

/// Seizes a process for which another ktrace may still linger.
Status seize_or_take_over(State &state, Traced &traced) {
    constexpr int attempts = 16; // for one that it takes back again and again, as it lets go of others
    for (int i = 1;; i++) {
        const bool obeyed = ask_for(state.world.ledger, traced.process.pid); // who does not is told as its tracer
        auto seized = seize_all(state, traced);
        if (seized || seized.error().kind != Error::Kind::denied || !obeyed || i == attempts) return seized;
        if (lingering_for(traced.process.pid) == 0) return seized;
    }
}

/// Seizes a process and arms everything in it; on an error lets it go as it was. `plan`: as for arm_all.
Status take(State &state, Pid pid, std::optional<ArmPlan> plan) {
    Traced &traced = *state.world.processes.at(pid.value);
    auto ground = traced.ground;
    forbid_downloads();
    if (auto seized = seize_or_take_over(state, traced); !seized) return seized;
    if (auto sharing = adopt_sharers(state, traced); !sharing) return sharing;
    take_over(state, traced);
    auto one = stop_one_gently(state, traced);
    if (!one) return tl::make_unexpected(one.error());
    std::optional<os::Stopped> stopped = std::move(*one);
    // An exec that was seen has seen to everything; it tells when all is armed.
    bool seen_exec = traced.ground != ground;
    Status armed = seen_exec ? Status() : arm_all(state, traced, std::move(plan), stopped ? &*stopped : nullptr);
    if (stopped) release_one(state, std::move(*stopped));
    if (armed) armed = set_all_watches(state, traced);
    // An exec has come in between: its event is there, or comes, and sees to everything.
    if (!armed && armed.error().kind == Error::Kind::gone && is_overtaken_by_exec(state, pid)) return {};
    if (!armed && !os::has_ended(Tid{pid.value}) && became_another(traced)) return {};
    if (armed && !seen_exec) announce_attached(state, traced);
    return armed;
}

/// Is it no wonder that something was not found, or is not what it was a moment ago? What is looked at runs meanwhile.
bool is_changing(State &state, Traced &traced) {
    return became_another(traced) || !modules_complete(traced) || has_other_modules(state, traced).value_or(false);
}

/// A look at a process that may be in the middle of an exec: for a moment nothing of its new memory is there to be
/// read.
Result<std::unique_ptr<Traced>> look_patiently(State &state, pid_t pid) {
    while (true) {
        auto looked = look_at(state, pid);
        if (looked || looked.error().kind != Error::Kind::gone) return looked;
        if (os::has_ended(Tid{pid}) || os::Interrupts::are_pending()) return looked;
        ::sched_yield();
    }
}

/// A process that is to be attached to, of which nothing is touched yet.
struct Candidate {
    std::unique_ptr<Traced> traced;
    std::optional<ArmPlan> plan; // as for arm_all
};

/// The first plan of a process: who interrupts ktrace does not wait for it.
Result<ArmPlan> plan_untouched(State &state, Traced &traced) {
    state.gives_up = os::Interrupts::are_pending;
    auto plan = plan_all(state, traced);
    state.gives_up = nullptr;
    return plan;
}

Result<Candidate> look_and_plan(State &state, pid_t pid) {
    constexpr int attempts = 4; // for one that calls exec again and again while it is being looked at
    for (int i = 1;; i++) {
        auto looked = look_patiently(state, pid);
        if (!looked) return tl::make_unexpected(looked.error());
        Traced &traced = **looked;
        if (auto thawed = refuse_frozen(traced.process.pid); !thawed) return tl::make_unexpected(thawed.error());
        auto plan = plan_untouched(state, traced);
        if (plan) return Candidate{std::move(*looked), std::move(*plan)};
        if (plan.error().kind == Error::Kind::given_up) return tl::make_unexpected(plan.error());
        const bool was_gone = plan.error().kind == Error::Kind::fault; // and may be there again
        if (!was_gone && !is_changing(state, traced)) return tl::make_unexpected(plan.error());
        // Seized, it cannot get ahead of ktrace any more.
        if (i == attempts) return Candidate{std::move(*looked), std::nullopt};
        state.armings.erase(traced.ground.get());
    }
}

Status take_candidate(State &state, Candidate candidate) {
    const Pid pid = candidate.traced->process.pid;
    if (auto known = state.world.processes.find(pid.value); known != state.world.processes.end()) {
        known->second->silent = false; // it shares the memory of another
        state.armings.erase(candidate.traced->ground.get());
        return {};
    }
    state.world.processes[pid.value] = std::move(candidate.traced);
    return take(state, pid, std::move(candidate.plan));
}

} // namespace

Status attach_to_all(State &state) {
    std::vector<Candidate> candidates;
    for (pid_t pid : state.config.pids) {
        auto candidate = look_and_plan(state, pid);
        if (!candidate) return tl::make_unexpected(candidate.error());
        candidates.push_back(std::move(*candidate));
    }
    for (Candidate &candidate : candidates)
        if (auto taken = take_candidate(state, std::move(candidate)); !taken) return taken;
    return {};
}

Status add_plugins(State &state) {
    if (state.config.plugins.empty() || state.world.processes.empty()) return {};
    if (anyone_waits_for_loader(state)) return {}; // they are started when it does no more
    Traced &first = *state.world.processes.begin()->second;
    if (auto started = start_plugins(state, first, nullptr); !started) return started;
    announce_all(state);
    return {};
}

} // namespace ktrace::session
