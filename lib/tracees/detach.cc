// How an address space is left, by all processes that run in it:
//
// 1. All traps come out. What was hit before is understood still (the sites stay known).
// 2. Every task that runs is stopped outside of the slots.
// 3. Who sleeps in the kernel is not disturbed: woken by something else, it finds nothing of ours in its way. Where one
//    of them is needed nevertheless (debug registers, or all sleep), and an interrupt would make its time-out begin
//    anew, everybody runs on until it wakes up by itself, at a trap behind its call; then all are stopped once more.
// 4. From here on they stay stopped: one that was let go could fork, and its child would have our pages. These are
//    unmapped by one of the stopped tasks.
// 5. Children that a fork under way has given a copy of anything of ours have stopped at their birth: they are cleaned.
// 6. All go. The sleepers are let go by the end of the tracing thread, without a stop.
//
// Where a control group keeps the process from running (os/freezer), nothing but the first is done before it is thawed.
#include "tracees/detach.h"

#include <algorithm>
#include <csignal>
#include <ctime>
#include <map>
#include <set>

#include <sys/syscall.h>

#include "base/signals.h"
#include "engine/calls/calls.h"
#include "engine/hit/dispatch.h"
#include "engine/transparent/restart/syscall_restart.h"
#include "engine/transparent/signals/deferred_signals.h"
#include "engine/transparent/sigtrap/disposition.h"
#include "engine/watch/watch.h"
#include "lifecycle/events.h"
#include "os/facts/freezer.h"
#include "os/self/ticker.h"
#include "tracees/seize.h"
#include "tracees/stop.h"
#include "tracees/tripwires.h"
#include "tracees/unmap.h"
#include "tracees/waking.h"

namespace ktrace::tracees {

using engine::AddressSpaceState;
using engine::Process;
using engine::Task;

namespace {

/// Takes all traps out and looks whether anything of ours is left. Memory that is not mapped any more needs nothing.
void restore_text(trace::Trace &trace, const SpacePointer &space, Pid pid) {
    for (auto &[at, site] : space->sites) site->armed = false;
    bool lost = false;
    for (VirtAddr at : space->memory->plants()) {
        std::byte one;
        if (!space->memory->unplant(at)) lost = lost || space->memory->read(at, std::span(&one, 1)) == 1;
    }
    static_cast<void>(space->memory->release()); // nothing is left to be written
    drop_tripwires(trace, space);
    if (!lost) return;
    trace.voice.complain({Error::Kind::refused,
                          "some of the code of process " + std::to_string(pid.value) +
                              " was changed by somebody else meanwhile and was left as it is",
                          {},
                          {},
                          -1,
                          1});
}

/// Is somebody needed who sleeps in such a call? Debug registers are cleared, and our pages unmapped, in a stopped
/// task.
bool needs_sleepers(trace::Trace &trace, const SpacePointer &space, const HeldTasks &held) {
    std::set<pid_t> pids;
    for (Tid tid : tasks_in(trace, space)) {
        const Task &task = trace.engine.tasks.at(tid.value);
        if (!held.contains(tid.value) && is_spared(task)) return true;
        pids.insert(task.pid.value);
    }
    if (pids.empty() || !held.empty() || (space->slots.arenas().empty() && !space->recovery.mapped())) return false;
    return std::none_of(pids.begin(), pids.end(), [&](pid_t pid) { return may_stop_one(trace, Pid{pid}); });
}

/// Sends a task a signal that stands in for another one. SIGCONT, sent again, would take back a stop that was asked for
/// since: for it stands a real-time signal that the task has not blocked, which the kernel queues though it may be
/// pending already. 0: as many signals are queued as are allowed (RLIMIT_SIGPENDING).
int send_stand_in(const Task &task, int held) {
    auto send = [&](int signal) { return ::syscall(SYS_tgkill, task.pid.value, task.tid.value, signal) == 0; };
    const std::uint64_t blocked = os::signal_mask(task.tid).value_or(0);
    if (held == SIGCONT)
        for (int signal = SIGRTMIN; signal <= SIGRTMAX; signal++)
            if ((blocked & signal_bit(signal)) == 0 && send(signal)) return signal;
    return send(held) ? held : 0;
}

bool is_sent_by_us(Tid tid) {
    auto info = os::signal_info(tid);
    return info && info->si_code == SI_TKILL && (info->si_pid == ::getpid() || info->si_pid == 0);
}

/// Of a real-time signal several may be queued, each with what was sent along: none is another one's stand-in.
bool comes_in_order(int signal) { return signal >= os::first_real_time; }

/// A signal was held in the middle of an instruction from which the task has gone back: a stand-in stops the task where
/// that signal can be told, before it runs on. Real-time signals of its number that stand before the stand-in in the
/// queue have come behind it, and are queued again. Nothing: the task has ended.
std::optional<os::Stopped> stop_for_held(trace::Trace &trace, Task &task, os::Stopped stopped) {
    const Tid tid = task.tid;
    const siginfo_t held = *task.signals.held;
    int stand_in = send_stand_in(task, held.si_signo);
    if (stand_in == 0 && !os::has_signal_queued(tid)) return stopped; // others have them; it would run on meanwhile
    std::vector<siginfo_t> behind;
    std::move(stopped).resume(os::Resume::run);
    while (auto stop = trace.engine.waiter.next_of(tid)) {
        os::Stopped again(trace.engine.waiter, *stop);
        const bool is_signal = stop->kind == os::Stop::Kind::signal;
        if (is_signal && stop->signal == SIGTRAP) engine::see_sent_again(task);
        if (is_signal && stop->signal == stand_in && (!comes_in_order(stand_in) || is_sent_by_us(tid))) {
            os::set_signal_info(tid, held);
            for (const siginfo_t &info : behind) os::send_again(task.pid, tid, info);
            return again;
        }
        if (stop->kind == os::Stop::Kind::exited || stop->kind == os::Stop::Kind::killed) {
            std::move(again).keep();
            break;
        }
        const bool waits = is_signal && stop->signal == held.si_signo && comes_in_order(stop->signal);
        if (auto info = waits ? os::signal_info(tid) : std::nullopt) behind.push_back(*info);
        if (is_signal && stand_in == 0) stand_in = send_stand_in(task, held.si_signo); // there is room for one now
        std::move(again).resume(os::Resume::run, is_signal && !waits ? stop->signal : 0);
    }
    lifecycle::handle_end(trace, tid);
    return std::nullopt;
}

void release(trace::Trace &trace, os::Stopped stopped) {
    Tid tid = stopped.tid();
    auto found = trace.engine.tasks.find(tid.value);
    if (found != trace.engine.tasks.end()) {
        engine::give_back_at_end(found->second);
        if (engine::Process *process = trace.engine.process_of(found->second))
            engine::restore_mask(*process, found->second);
        engine::clear_watches(found->second);
    }
    if (found != trace.engine.tasks.end() && found->second.signals.held) {
        auto at_signal = stop_for_held(trace, found->second, std::move(stopped));
        if (!at_signal) return;
        std::move(*at_signal).resume(os::Resume::detach, found->second.signals.held->si_signo);
    } else {
        // Where job control has stopped the process, the kernel stops the task again.
        std::move(stopped).resume(os::Resume::detach);
    }
    if (trace.engine.ledger) trace.engine.ledger->settle(tid);
    trace.engine.waiter.forget(tid);
    trace.engine.tasks.erase(tid.value);
}

/// What has come since they are held: a signal, or a stop of the process by job control.
void see_late_signals(trace::Trace &trace, HeldTasks &held) {
    for (const auto &[tid, stopped] : held)
        if (auto task = trace.engine.tasks.find(tid); task != trace.engine.tasks.end() && stopped.has_group_stop())
            engine::note_group_stop(trace.engine, task->second.pid);
    for (auto &[tid, stopped] : held)
        if (auto task = trace.engine.tasks.find(tid); task != trace.engine.tasks.end())
            engine::see_late_signal(task->second, stopped);
}

/// None of its tasks runs its own code, nor makes a call for us, before it is thawed.
bool runs_no_code(const trace::Trace &trace, const SpacePointer &space) {
    return std::any_of(trace.engine.processes.begin(), trace.engine.processes.end(), [&](const auto &entry) {
        return entry.second->space == space && os::frozen_by(Pid{entry.first});
    });
}

/// They run on as they were, for as long as others are waited for: without debug registers, which some had.
void let_run(trace::Trace &trace, HeldTasks &held) {
    for (auto &[tid, stopped] : held) {
        auto task = trace.engine.tasks.find(tid);
        if (task == trace.engine.tasks.end()) { // it has ended, and its end comes
            std::move(stopped).keep();
            continue;
        }
        engine::clear_watches(task->second);
        task->second.tripwire.reset();
        run_on(trace, task->second, std::move(stopped));
    }
    held.clear();
}

} // namespace

Leaving::Leaving(trace::Trace &trace) : trace_{trace} {
    trace.engine.closing = true;
    for (auto &[pid, process] : trace.engine.processes)
        if (grounds_.try_emplace(process->space, Pid{pid}).second) restore_text(trace, process->space, Pid{pid});
    look_again();
}

void Leaving::look_again() {
    frozen_.clear();
    os::Ticker ticker; // no wait for one task is for ever
    ticker.start();
    std::erase_if(grounds_, [&](const auto &entry) {
        HeldTasks held;
        return leave(entry.first, entry.second, held);
    });
}

/// Nobody is kept from running while somebody else sleeps on.
bool Leaving::leave(const SpacePointer &space, Pid pid, HeldTasks &held) {
    if (runs_no_code(trace_, space)) {
        frozen_.insert(space);
        let_run(trace_, held);
        return false;
    }
    hold_tasks(trace_, space, Spare::yes, held);
    while (needs_sleepers(trace_, space, held)) {
        const Trapped trapped = trap_sleepers(trace_, space, held);
        if (trapped == Trapped::now) continue;
        if (trapped == Trapped::never) break;
        let_run(trace_, held);
        return false;
    }
    let_go(space, pid, held);
    return true;
}

void Leaving::let_go(const SpacePointer &space, Pid pid, HeldTasks &held) {
    restore_text(trace_, space, pid); // and what stops those who wake up
    hold_tasks(trace_, space, Spare::no, held);
    unmap_ours(trace_, space, held);
    serve_once(trace_);
    see_late_signals(trace_, held);
    for (auto &[tid, stopped] : held) release(trace_, std::move(stopped));
}

/// It was asleep when its process was let go.
void Leaving::let_go_late(Process &process, Tid tid) {
    HeldTasks held;
    if (auto stopped = bring_out(trace_, process, tid, held)) release(trace_, std::move(*stopped));
}

void Leaving::serve(const os::Stop &stop) {
    const Tid tid = stop.tid;
    auto task = trace_.engine.tasks.find(tid.value);
    Process *process = task == trace_.engine.tasks.end() ? nullptr : trace_.engine.process_of(task->second);
    const SpacePointer space = process ? process->space : nullptr;
    auto awaited = grounds_.find(space);
    // Where debug registers are waited for, who has none just goes on; so does who is frozen.
    if (!process || frozen_.contains(space) ||
        (awaited != grounds_.end() && task->second.watching.empty() && has_spared(trace_, space))) {
        lifecycle::handle_event(trace_, engine::dispatch(trace_.engine, stop));
        return;
    }
    os::Ticker ticker;
    ticker.start();
    os::interrupt(tid); // it stops before it runs on
    lifecycle::handle_event(trace_, engine::dispatch(trace_.engine, stop));
    process =
        trace_.engine.tasks.contains(tid.value) ? trace_.engine.process_of(trace_.engine.tasks.at(tid.value)) : nullptr;
    const bool stays = process && process->space == space;
    if (awaited == grounds_.end()) {
        if (stays) let_go_late(*process, tid);
        return;
    }
    HeldTasks held;
    if (stays)
        if (auto stopped = bring_out(trace_, *process, tid, held)) held.emplace(tid.value, std::move(*stopped));
    if (needs_sleepers(trace_, space, held))
        let_run(trace_, held);
    else if (leave(space, awaited->second, held))
        grounds_.erase(awaited);
}

void Leaving::await(os::Waiter::Block block, const std::function<bool()> &go_on) {
    while (!is_done() && go_on()) {
        if (auto stop = trace_.engine.waiter.next(frozen_.empty() ? block : os::Waiter::Block::no))
            serve(*stop);
        else if (trace_.engine.waiter.none_left())
            grounds_.clear();
        else if (!frozen_.empty())
            await_thaw();
    }
    for (auto &[pid, process] : trace_.engine.processes) engine::end_all(trace_.engine, *process);
}

/// For a moment, which a signal of our own ends: the kernel tells a tracer nothing of it.
void Leaving::await_thaw() {
    constexpr timespec moment{0, 20'000'000};
    ::nanosleep(&moment, nullptr);
    if (std::any_of(frozen_.begin(), frozen_.end(), [&](const auto &space) { return !runs_no_code(trace_, space); }))
        look_again();
}

void Leaving::serve_who_is_there() {
    while (!is_done()) {
        auto stop = trace_.engine.waiter.next(os::Waiter::Block::no);
        if (!stop) return;
        serve(*stop);
    }
}

std::vector<Pid> Leaving::awaited() const {
    std::vector<Pid> pids;
    for (const auto &[pid, process] : trace_.engine.processes)
        if (grounds_.contains(process->space)) pids.push_back(Pid{pid});
    return pids;
}

void Leaving::end() {
    os::Ticker ticker;
    ticker.start();
    for (const auto &[space, pid] : grounds_) {
        HeldTasks held;
        let_go(space, pid, held);
    }
    grounds_.clear();
    for (auto &[pid, process] : trace_.engine.processes) engine::end_all(trace_.engine, *process);
    if (trace_.engine.ledger) trace_.engine.ledger->clear();
}

void detach_all(trace::Trace &trace, Patience patience) {
    Leaving leaving(trace);
    WakingTime time(trace);
    if (patience == Patience::until_they_wake_up)
        leaving.await(os::Waiter::Block::briefly, [&] { return time.is_left(); });
    leaving.end();
}

} // namespace ktrace::tracees
