#include "tracees/waking.h"

#include <algorithm>

#include "arming/install.h"
#include "base/clock.h"
#include "engine/calls/consumers.h"
#include "os/facts/blocked_syscall.h"
#include "os/facts/freezer.h"
#include "os/self/own_signals.h"
#include "tracees/tripwires.h"

namespace ktrace::tracees {

using engine::AddressSpaceState;
using engine::Process;
using engine::Task;

namespace {

/// Behind a system call in which a task could not be stopped.
constexpr engine::InternalPurpose wakes{.raises = engine::EventKind::woken};

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
bool is_waited_for(const trace::Trace &trace, const AddressSpaceState &space, const Task &task) {
    auto process = trace.engine.processes.find(task.pid.value);
    return process != trace.engine.processes.end() && process->second->space.get() == &space &&
           task.watched_as != space.watch_generation && !os::has_ended(task.tid);
}

/// A trap that tells of waking at an address. False: there can be none.
bool plant_at(trace::Trace &trace, Process &process, VirtAddr at) {
    AddressSpaceState &space = *process.space;
    for (const auto &known : trace.armings[&space].internal)
        if (known->at == at && known->purpose == &wakes)
            if (engine::Site *site = space.site_at(at)) return engine::switch_on(space, *site, *known).has_value();
    if (!engine::make_site(space, at)) return false;
    arming::InstallPlan plan;
    plan.add(wakes, at);
    return arming::install(trace, process, std::move(plan), nullptr).has_value();
}

} // namespace

bool watch_waking(trace::Trace &trace, Process &process, Tid tid) {
    auto task = trace.engine.tasks.find(tid.value);
    if (task == trace.engine.tasks.end()) return false; // it has ended meanwhile
    auto at = waking_place(task->second);
    if (!at) return false;
    if (set_tripwire(*process.space, task->second)) return true;
    // It may have woken up before the trap was there.
    return plant_at(trace, process, *at) && waking_place(task->second) == at;
}

void on_woken(trace::Trace &trace, engine::Event event) {
    os::Stopped stopped = std::move(*event.stopped);
    Task &task = trace.engine.tasks.at(event.tid.value);
    Process &process = *trace.engine.process_of(task);
    AddressSpaceState &space = *process.space;
    bool others = std::any_of(trace.engine.tasks.begin(), trace.engine.tasks.end(), [&](const auto &entry) {
        return entry.first != task.tid.value && is_waited_for(trace, space, entry.second);
    });
    engine::Site &site = *space.site_at(arch::Host::trap_address(stopped.pc()));
    if (!others)
        for (const auto &internal : trace.armings[&space].internal)
            if (engine::Site *at = space.site_at(internal->at); at && internal->purpose == &wakes)
                engine::switch_off(space, *at, *internal);
    engine::finish_hit(trace.engine, process, task, site, std::move(stopped));
}

Trapped trap_sleepers(trace::Trace &trace, const std::shared_ptr<AddressSpaceState> &space, const HeldTasks &held) {
    const bool registers = has_spared(trace, space);
    bool told_by_one = false, missed = false;
    Trapped trapped = Trapped::already;
    for (Tid tid : tasks_in(trace, space)) {
        Task &task = trace.engine.tasks.at(tid.value);
        if ((registers && task.watching.empty()) || held.contains(tid.value) || os::has_ended(tid)) continue;
        auto at = waking_place(task);
        if (at && set_tripwire(*space, task)) {
            told_by_one = true;
            continue;
        }
        if (!at || waking_place(task) != at) { // it has woken up
            missed = true;
            continue;
        }
        auto site = engine::make_site(*space, *at);
        told_by_one = true;
        if (site && (*site)->armed) continue;
        if (!site || !engine::arm(*space, **site)) return Trapped::never;
        trapped = Trapped::now;
    }
    // Where debug registers are waited for, who is awake is stopped with the first one who stops.
    return missed && !(registers && told_by_one) ? Trapped::now : trapped;
}

bool WakingTime::is_left() {
    const std::uint64_t now_ns = monotonic_ns();
    if (began_ns_ == 0) began_ns_ = now_ns;
    if (os::OwnSignals::are_pending() || now_ns - began_ns_ >= longest_s * second_ns) return false;
    if (now_ns - began_ns_ >= moment_s * second_ns) tell();
    return true;
}

void WakingTime::tell() {
    if (told_) return;
    told_ = true;
    const std::string waiting = "waiting for up to " + std::to_string(longest_s) + " s until ";
    for (const auto &[pid, process] : trace_.engine.processes)
        if (auto freezer = os::frozen_by(Pid{pid})) {
            trace::tell_once(trace_, waiting + "process " + std::to_string(pid) +
                                         ", which its control group has frozen, is " + "thawed (" + freezer->thawing() +
                                         "); Ctrl-C ends the waiting");
            return;
        }
    trace::tell_once(trace_, waiting +
                                 "threads wake up whose time-outs would begin anew, or whose calls would be cut short, "
                                 "if they were interrupted; Ctrl-C ends the waiting");
}

} // namespace ktrace::tracees
