#include "session/waking.h"

#include <algorithm>

#include "base/clock.h"
#include "os/asleep.h"
#include "os/freezer.h"
#include "os/interrupts.h"
#include "session/plan.h"
#include "session/rearm.h"
#include "session/tripwires.h"
#include "trap/roster.h"

namespace ktrace::session {

using trap::Armed;
using trap::Ground;
using trap::Task;
using trap::Traced;

namespace {

constexpr std::uint64_t second_ns = 1'000'000'000;
constexpr std::uint64_t longest_s = 10; // that sleepers are waited for
constexpr std::uint64_t moment_s = 1;   // that nothing is said of it

/// Where a task will go on whose call must not be interrupted; nothing: it may be.
std::optional<VirtAddr> waking_place(const Task &task) {
    auto place = os::read_task_place(task.pid, task.tid);
    if (!place || os::interrupted(task.pid, task.tid) != os::Interrupted::begins_anew) return std::nullopt;
    return place->pc;
}

/// Also one that does not sleep any more: it may be on its way from its call to the trap.
bool is_waited_for(const State &state, const Ground &ground, const Task &task) {
    auto process = state.world.processes.find(task.pid.value);
    return process != state.world.processes.end() && process->second->ground.get() == &ground &&
           task.watched_as != ground.watch_generation && !os::has_ended(task.tid);
}

/// A trap that tells of waking at an address. False: there can be none.
bool plant_at(State &state, Traced &traced, VirtAddr at) {
    Ground &ground = *traced.ground;
    for (const auto &known : state.armings[&ground].internal)
        if (known->at == at && known->armed.kind == Armed::Kind::waking)
            if (trap::Site *site = ground.site_at(at)) return trap::switch_on(ground, *site, known->armed).has_value();
    if (!trap::make_site(ground, at)) return false;
    ArmPlan plan;
    plan_internal(plan, Armed::Kind::waking, at);
    return carry_out(state, traced, std::move(plan), nullptr).has_value();
}

} // namespace

bool watch_waking(State &state, Traced &traced, Tid tid) {
    auto task = state.world.tasks.find(tid.value);
    if (task == state.world.tasks.end()) return false; // it has ended meanwhile
    auto at = waking_place(task->second);
    if (!at) return false;
    if (set_tripwire(*traced.ground, task->second)) return true;
    // It may have woken up before the trap was there.
    return plant_at(state, traced, *at) && waking_place(task->second) == at;
}

void on_woken(State &state, trap::Event event) {
    os::Stopped stopped = std::move(*event.stopped);
    Task &task = state.world.tasks.at(event.tid.value);
    Traced &traced = *state.world.process_of(task);
    Ground &ground = *traced.ground;
    bool others = std::any_of(state.world.tasks.begin(), state.world.tasks.end(), [&](const auto &entry) {
        return entry.first != task.tid.value && is_waited_for(state, ground, entry.second);
    });
    trap::Site &site = *ground.site_at(arch::Host::trap_address(stopped.pc()));
    if (!others)
        for (const auto &internal : state.armings[&ground].internal)
            if (trap::Site *at = ground.site_at(internal->at); at && internal->armed.kind == Armed::Kind::waking)
                trap::switch_off(ground, *at, internal->armed);
    trap::finish_hit(state.world, traced, task, site, std::move(stopped));
}

Trapped trap_sleepers(State &state, const std::shared_ptr<Ground> &ground, const HeldTasks &held) {
    const bool registers = has_spared(state, ground);
    bool told_by_one = false, missed = false;
    Trapped trapped = Trapped::already;
    for (Tid tid : tasks_in(state, ground)) {
        Task &task = state.world.tasks.at(tid.value);
        if ((registers && task.watching.empty()) || held.contains(tid.value) || os::has_ended(tid)) continue;
        auto at = waking_place(task);
        if (at && set_tripwire(*ground, task)) {
            told_by_one = true;
            continue;
        }
        if (!at || waking_place(task) != at) { // it has woken up
            missed = true;
            continue;
        }
        auto site = trap::make_site(*ground, *at);
        told_by_one = true;
        if (site && (*site)->armed) continue;
        if (!site || !trap::arm(*ground, **site)) return Trapped::never;
        trapped = Trapped::now;
    }
    // Where debug registers are waited for, who is awake is stopped with the first one who stops.
    return missed && !(registers && told_by_one) ? Trapped::now : trapped;
}

bool WakingTime::is_left() {
    const std::uint64_t now_ns = monotonic_ns();
    if (began_ns_ == 0) began_ns_ = now_ns;
    if (os::Interrupts::are_pending() || now_ns - began_ns_ >= longest_s * second_ns) return false;
    if (now_ns - began_ns_ >= moment_s * second_ns) tell();
    return true;
}

void WakingTime::tell() {
    if (told_) return;
    told_ = true;
    const std::string waiting = "waiting for up to " + std::to_string(longest_s) + " s until ";
    for (const auto &[pid, traced] : state_.world.processes)
        if (auto freezer = os::frozen_by(Pid{pid})) {
            tell_once(state_, waiting + "process " + std::to_string(pid) + ", which its control group has frozen, is " +
                                  "thawed (" + freezer->thawing() + "); Ctrl-C ends the waiting");
            return;
        }
    tell_once(state_, waiting + "threads wake up whose time-outs would begin anew, or whose calls would be cut short, "
                                "if they were interrupted; Ctrl-C ends the waiting");
}

} // namespace ktrace::session
