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
#include "session/detach.h"

#include <algorithm>
#include <csignal>
#include <ctime>
#include <map>
#include <set>

#include <sys/syscall.h>

#include "os/freezer.h"
#include "os/ticker.h"
#include "session/hold.h"
#include "session/seize.h"
#include "session/settle.h"
#include "session/tripwires.h"
#include "session/unmap.h"
#include "session/waking.h"
#include "trap/calls.h"
#include "trap/dispatch.h"
#include "trap/interruption.h"
#include "trap/owed.h"
#include "trap/restore.h"
#include "trap/watch.h"

namespace ktrace::session {

using trap::Ground;
using trap::Task;
using trap::Traced;

namespace {

/// Takes all traps out and looks whether anything of ours is left. Memory that is not mapped any more needs nothing.
void restore_text(State &state, const GroundPointer &ground, Pid pid) {
    for (auto &[at, site] : ground->sites) site->armed = false;
    bool lost = false;
    for (VirtAddr at : ground->space->plants()) {
        std::byte one;
        if (!ground->space->unplant(at)) lost = lost || ground->space->read(at, std::span(&one, 1)) == 1;
    }
    static_cast<void>(ground->space->release()); // nothing is left to be written
    drop_tripwires(state, ground);
    if (!lost) return;
    state.voice.complain({Error::Kind::refused,
                          "some of the code of process " + std::to_string(pid.value) +
                              " was changed by somebody else meanwhile and was left as it is",
                          {},
                          {},
                          -1,
                          1});
}

/// Is somebody needed who sleeps in such a call? Debug registers are cleared, and our pages unmapped, in a stopped
/// task.
bool needs_sleepers(State &state, const GroundPointer &ground, const HeldTasks &held) {
    std::set<pid_t> pids;
    for (Tid tid : tasks_in(state, ground)) {
        const Task &task = state.world.tasks.at(tid.value);
        if (!held.contains(tid.value) && is_spared(task)) return true;
        pids.insert(task.pid.value);
    }
    if (pids.empty() || !held.empty() || (ground->slots.arenas().empty() && !ground->rescue.mapped())) return false;
    return std::none_of(pids.begin(), pids.end(), [&](pid_t pid) { return may_stop_one(state, Pid{pid}); });
}

/// Sends a task a signal that stands in for another one. SIGCONT, sent again, would take back a stop that was asked for
/// since: for it stands a real-time signal that the task has not blocked, which the kernel queues though it may be
/// pending already. 0: as many signals are queued as are allowed (RLIMIT_SIGPENDING).
int send_stand_in(const Task &task, int held) {
    auto send = [&](int signal) { return ::syscall(SYS_tgkill, task.pid.value, task.tid.value, signal) == 0; };
    const std::uint64_t blocked = os::signal_mask(task.tid).value_or(0);
    if (held == SIGCONT)
        for (int signal = SIGRTMIN; signal <= SIGRTMAX; signal++)
            if ((blocked & os::signal_bit(signal)) == 0 && send(signal)) return signal;
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
std::optional<os::Stopped> stop_for_held(State &state, Task &task, os::Stopped stopped) {
    const Tid tid = task.tid;
    const siginfo_t held = *task.held;
    int stand_in = send_stand_in(task, held.si_signo);
    if (stand_in == 0 && !os::has_signal_queued(tid)) return stopped; // others have them; it would run on meanwhile
    std::vector<siginfo_t> behind;
    std::move(stopped).resume(os::Resume::run);
    while (auto stop = state.world.waiter.next_of(tid)) {
        os::Stopped again(state.world.waiter, *stop);
        const bool is_signal = stop->kind == os::Stop::Kind::signal;
        if (is_signal) trap::tell_as_sent(task, stop->signal);
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
    settle_ended(state, tid);
    return std::nullopt;
}

void release(State &state, os::Stopped stopped) {
    Tid tid = stopped.tid();
    auto found = state.world.tasks.find(tid.value);
    if (found != state.world.tasks.end()) {
        trap::pay(found->second);
        if (const trap::Traced *traced = state.world.process_of(found->second))
            trap::restore_mask(*traced, found->second, stopped);
        trap::clear_watches(found->second);
    }
    if (found != state.world.tasks.end() && found->second.held) {
        auto at_signal = stop_for_held(state, found->second, std::move(stopped));
        if (!at_signal) return;
        std::move(*at_signal).resume(os::Resume::detach, found->second.held->si_signo);
    } else {
        // Where job control has stopped the process, the kernel stops the task again.
        std::move(stopped).resume(os::Resume::detach);
    }
    if (state.world.ledger) state.world.ledger->settle(tid);
    state.world.waiter.forget(tid);
    state.world.tasks.erase(tid.value);
}

/// What has come since they are held: a signal, or a stop of the process by job control.
void see_late_signals(State &state, HeldTasks &held) {
    for (const auto &[tid, stopped] : held)
        if (auto task = state.world.tasks.find(tid); task != state.world.tasks.end() && stopped.has_group_stop())
            trap::note_group_stop(state.world, task->second.pid);
    for (auto &[tid, stopped] : held)
        if (auto task = state.world.tasks.find(tid); task != state.world.tasks.end())
            trap::see_late_signal(task->second, stopped);
}

/// None of its tasks runs its own code, nor makes a call for us, before it is thawed.
bool runs_no_code(const State &state, const GroundPointer &ground) {
    return std::any_of(state.world.processes.begin(), state.world.processes.end(), [&](const auto &entry) {
        return entry.second->ground == ground && os::frozen_by(Pid{entry.first});
    });
}

/// They run on as they were, for as long as others are waited for: without debug registers, which some had.
void let_run(State &state, HeldTasks &held) {
    for (auto &[tid, stopped] : held) {
        auto task = state.world.tasks.find(tid);
        if (task == state.world.tasks.end()) { // it has ended, and its end comes
            std::move(stopped).keep();
            continue;
        }
        trap::clear_watches(task->second);
        task->second.tripwire.reset();
        run_on(state, task->second, std::move(stopped));
    }
    held.clear();
}

} // namespace

Leaving::Leaving(State &state) : state_{state} {
    state.world.closing = true;
    for (auto &[pid, traced] : state.world.processes)
        if (grounds_.try_emplace(traced->ground, Pid{pid}).second) restore_text(state, traced->ground, Pid{pid});
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
bool Leaving::leave(const GroundPointer &ground, Pid pid, HeldTasks &held) {
    if (runs_no_code(state_, ground)) {
        frozen_.insert(ground);
        let_run(state_, held);
        return false;
    }
    hold_tasks(state_, ground, Spare::yes, held);
    while (needs_sleepers(state_, ground, held)) {
        const Trapped trapped = trap_sleepers(state_, ground, held);
        if (trapped == Trapped::now) continue;
        if (trapped == Trapped::never) break;
        let_run(state_, held);
        return false;
    }
    let_go(ground, pid, held);
    return true;
}

void Leaving::let_go(const GroundPointer &ground, Pid pid, HeldTasks &held) {
    restore_text(state_, ground, pid); // and what stops those who wake up
    hold_tasks(state_, ground, Spare::no, held);
    unmap_ours(state_, ground, held);
    serve_once(state_);
    see_late_signals(state_, held);
    for (auto &[tid, stopped] : held) release(state_, std::move(stopped));
}

/// It was asleep when its process was let go.
void Leaving::let_go_late(Traced &traced, Tid tid) {
    HeldTasks held;
    if (auto stopped = bring_out(state_, traced, tid, held)) release(state_, std::move(*stopped));
}

void Leaving::serve(const os::Stop &stop) {
    const Tid tid = stop.tid;
    auto task = state_.world.tasks.find(tid.value);
    Traced *traced = task == state_.world.tasks.end() ? nullptr : state_.world.process_of(task->second);
    const GroundPointer ground = traced ? traced->ground : nullptr;
    auto awaited = grounds_.find(ground);
    // Where debug registers are waited for, who has none just goes on; so does who is frozen.
    if (!traced || frozen_.contains(ground) ||
        (awaited != grounds_.end() && task->second.watching.empty() && has_spared(state_, ground))) {
        settle(state_, trap::dispatch(state_.world, stop));
        return;
    }
    os::Ticker ticker;
    ticker.start();
    os::interrupt(tid); // it stops before it runs on
    settle(state_, trap::dispatch(state_.world, stop));
    traced =
        state_.world.tasks.contains(tid.value) ? state_.world.process_of(state_.world.tasks.at(tid.value)) : nullptr;
    const bool stays = traced && traced->ground == ground;
    if (awaited == grounds_.end()) {
        if (stays) let_go_late(*traced, tid);
        return;
    }
    HeldTasks held;
    if (stays)
        if (auto stopped = bring_out(state_, *traced, tid, held)) held.emplace(tid.value, std::move(*stopped));
    if (needs_sleepers(state_, ground, held))
        let_run(state_, held);
    else if (leave(ground, awaited->second, held))
        grounds_.erase(awaited);
}

void Leaving::await(os::Waiter::Block block, const std::function<bool()> &go_on) {
    while (!is_done() && go_on()) {
        if (auto stop = state_.world.waiter.next(frozen_.empty() ? block : os::Waiter::Block::no))
            serve(*stop);
        else if (state_.world.waiter.none_left())
            grounds_.clear();
        else if (!frozen_.empty())
            await_thaw();
    }
    for (auto &[pid, traced] : state_.world.processes) trap::end_all(state_.world, *traced);
}

/// For a moment, which a signal of our own ends: the kernel tells a tracer nothing of it.
void Leaving::await_thaw() {
    constexpr timespec moment{0, 20'000'000};
    ::nanosleep(&moment, nullptr);
    if (std::any_of(frozen_.begin(), frozen_.end(), [&](const auto &ground) { return !runs_no_code(state_, ground); }))
        look_again();
}

void Leaving::serve_who_is_there() {
    while (!is_done()) {
        auto stop = state_.world.waiter.next(os::Waiter::Block::no);
        if (!stop) return;
        serve(*stop);
    }
}

std::vector<Pid> Leaving::awaited() const {
    std::vector<Pid> pids;
    for (const auto &[pid, traced] : state_.world.processes)
        if (grounds_.contains(traced->ground)) pids.push_back(Pid{pid});
    return pids;
}

void Leaving::end() {
    os::Ticker ticker;
    ticker.start();
    for (const auto &[ground, pid] : grounds_) {
        HeldTasks held;
        let_go(ground, pid, held);
    }
    grounds_.clear();
    for (auto &[pid, traced] : state_.world.processes) trap::end_all(state_.world, *traced);
    if (state_.world.ledger) state_.world.ledger->clear();
}

void detach_all(State &state, Patience patience) {
    Leaving leaving(state);
    WakingTime time(state);
    if (patience == Patience::until_they_wake_up)
        leaving.await(os::Waiter::Block::briefly, [&] { return time.is_left(); });
    leaving.end();
}

} // namespace ktrace::session
