// How an address space is left, by all processes that run in it:
//
// 1. All traps come out. What was hit before is understood still (the sites stay known).
// 2. Every task that runs is stopped outside of the slots, and stays stopped: one that was let go could fork, and its
//    child would have our pages. Who sleeps in the kernel is not disturbed: woken by something else, it finds nothing
//    of ours in its way. Where one of them is needed nevertheless (debug registers, or all sleep), and an interrupt
//    would make its time-out begin anew, it may wake up by itself first, for some seconds.
// 3. Our pages are unmapped by one of the stopped tasks.
// 4. Children that a fork under way has given a copy of anything of ours have stopped at their birth: they are cleaned.
// 5. All go. The sleepers are let go by the end of the tracing thread, without a stop.
#include "session/detach.h"

#include <algorithm>
#include <csignal>
#include <map>
#include <set>

#include <sys/syscall.h>

#include "os/ticker.h"
#include "session/handlers.h"
#include "session/hold.h"
#include "session/seize.h"
#include "session/settle.h"
#include "session/waking.h"
#include "trap/calls.h"
#include "trap/dispatch.h"
#include "trap/over.h"
#include "trap/restore.h"
#include "trap/watch.h"

namespace ktrace::session {

using trap::Ground;
using trap::Task;
using trap::Traced;

namespace {

/// Takes all traps out and looks whether anything of ours is left. Memory that is not mapped any more needs nothing.
void restore_text(State &state, Ground &ground, Pid pid) {
    for (auto &[at, site] : ground.sites) site->armed = false;
    bool lost = false;
    for (VirtAddr at : ground.space->plants()) {
        std::byte one;
        if (!ground.space->unplant(at)) lost = lost || ground.space->read(at, std::span(&one, 1)) == 1;
    }
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
    std::set<pid_t> pids, served; // processes; those in which a task is held
    for (Tid tid : tasks_in(state, ground)) {
        const Task &task = state.world.tasks.at(tid.value);
        bool is_held = held.contains(tid.value);
        if (!is_held && is_spared(task)) return true;
        pids.insert(task.pid.value);
        if (is_held) served.insert(task.pid.value);
    }
    if (ground->slots.arenas().empty() && !ground->rescue.mapped()) return false;
    return std::any_of(pids.begin(), pids.end(),
                       [&](pid_t pid) { return !served.contains(pid) && !may_stop_one(state, Pid{pid}); });
}

/// Waits until those wake up by themselves who should not be interrupted: a trap behind their calls stops them.
void await_sleepers(State &state, const GroundPointer &ground, Pid pid, WakingTime &time, HeldTasks &held) {
    if (!needs_sleepers(state, ground, held)) return;
    trap_sleepers(state, ground);
    while (needs_sleepers(state, ground, held) && time.is_left()) {
        auto stop = state.world.waiter.next(os::Waiter::Block::briefly);
        if (!stop) continue;
        auto task = state.world.tasks.find(stop->tid.value);
        Traced *traced = task == state.world.tasks.end() ? nullptr : state.world.process_of(task->second);
        bool stays = traced && traced->ground == ground && os::interrupt(stop->tid); // it stops before it runs on
        settle(state, trap::dispatch(state.world, *stop));
        if (!stays || !state.world.tasks.contains(stop->tid.value)) continue;
        if (auto stopped = bring_out(state, *traced, stop->tid, held))
            held.emplace(stop->tid.value, std::move(*stopped));
    }
    restore_text(state, *ground, pid);
}

/// One of the process that is held or, where all sleep, one that is woken for it; nothing: they are gone.
os::Stopped *task_of(State &state, Pid pid, HeldTasks &held) {
    for (auto &[tid, stopped] : held) {
        auto task = state.world.tasks.find(tid);
        if (task != state.world.tasks.end() && task->second.pid == pid) return &stopped;
    }
    auto found = state.world.processes.find(pid.value);
    if (found == state.world.processes.end()) return nullptr;
    auto one = stop_one(state, *found->second);
    if (!one) return nullptr;
    Tid tid = one->tid();
    return &held.emplace(tid.value, std::move(*one)).first->second;
}

/// A stopped task of each process that runs in the memory.
std::vector<std::pair<Traced *, os::Stopped *>> tasks_of_all(State &state, const GroundPointer &ground,
                                                             HeldTasks &held) {
    std::vector<Pid> members;
    for (const auto &[pid, traced] : state.world.processes)
        if (traced->ground == ground) members.push_back(Pid{pid});
    for (Pid pid : members) task_of(state, pid, held); // one may end while another is waited for
    std::vector<std::pair<Traced *, os::Stopped *>> tasks;
    for (Pid pid : members) {
        auto found = state.world.processes.find(pid.value);
        if (found == state.world.processes.end()) continue;
        if (os::Stopped *stopped = task_of(state, pid, held)) tasks.emplace_back(found->second.get(), stopped);
    }
    return tasks;
}

/// Our pages go, and each process gets its action for SIGTRAP back; the rescue page stays (and does no harm) where an
/// action may still lead into it.
Status unmap_pages(State &state, Ground &ground, const std::vector<std::pair<Traced *, os::Stopped *>> &tasks) {
    auto hands = [&](const auto &task) {
        return rescue::Hands{*ground.space, *task.first->process.syscall_instruction, state.world.waiter, *task.second};
    };
    auto unmapped = trap::unmap_arenas(ground, tasks.back().first->process, state.world.waiter, *tasks.back().second);
    if (!unmapped) return unmapped;
    bool unused = true;
    for (const auto &task : tasks) {
        auto restored = ground.rescue.restore_action(hands(task));
        unused = unused && restored && *restored;
    }
    return unused ? ground.rescue.unmap(hands(tasks.back())) : Status();
}

void clear_memory(State &state, const GroundPointer &ground, HeldTasks &held) {
    const std::vector<trap::Arena> arenas = ground->slots.arenas();
    const rescue::Page page = ground->rescue;
    if (arenas.empty() && !page.mapped()) return;
    auto tasks = tasks_of_all(state, ground, held);
    if (tasks.empty()) return;
    if (state.world.mending && !lead_handlers_out(state, ground, held)) {
        state.voice.complain({Error::Kind::refused,
                              "a thread is in a handler that returns into what a killed ktrace has mapped: that stays",
                              "ktrace repair takes it out when the handler has returned",
                              {},
                              -1,
                              1});
        return;
    }
    auto unmapped = unmap_pages(state, *ground, tasks);
    if (!unmapped && unmapped.error().kind != Error::Kind::gone) state.voice.complain(unmapped.error());
    // For the children that were born with them.
    for (const trap::Arena &arena : arenas) ground->slots.add(arena);
    ground->rescue = page;
}

/// A signal was held in the middle of an instruction from which the task has gone back: a stand-in stops the task where
/// that signal can be told, before it runs on. Nothing: it has ended.
std::optional<os::Stopped> stop_for_held(State &state, const Task &task, os::Stopped stopped) {
    const Tid tid = task.tid;
    const siginfo_t held = *task.held;
    ::syscall(SYS_tgkill, task.pid.value, tid.value, held.si_signo);
    std::move(stopped).resume(os::Resume::run);
    while (auto stop = state.world.waiter.next_of(tid)) {
        os::Stopped again(state.world.waiter, *stop);
        const bool is_signal = stop->kind == os::Stop::Kind::signal;
        if (is_signal && stop->signal == held.si_signo) {
            os::set_signal_info(tid, held);
            return again;
        }
        if (stop->kind == os::Stop::Kind::exited || stop->kind == os::Stop::Kind::killed) {
            std::move(again).keep();
            break;
        }
        std::move(again).resume(os::Resume::run, is_signal ? stop->signal : 0);
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
        const int signal = at_signal->stop().signal;
        std::move(*at_signal).resume(os::Resume::detach, signal);
    } else {
        // Where job control has stopped the process, the kernel stops the task again.
        std::move(stopped).resume(os::Resume::detach);
    }
    if (state.world.ledger) state.world.ledger->settle(tid);
    state.world.waiter.forget(tid);
    state.world.tasks.erase(tid.value);
}

void detach(State &state, const GroundPointer &ground, Pid pid, WakingTime &time) {
    HeldTasks held;
    hold_tasks(state, ground, Spare::yes, held);
    await_sleepers(state, ground, pid, time, held);
    hold_tasks(state, ground, Spare::no, held);
    clear_memory(state, ground, held);
    serve_once(state);
    for (auto &[tid, stopped] : held) release(state, std::move(stopped));
}

} // namespace

void detach_all(State &state) {
    os::Ticker ticker; // no wait for one task is for ever
    ticker.start();
    state.world.closing = true;
    std::map<GroundPointer, Pid> grounds; // each with one of its processes
    for (auto &[pid, traced] : state.world.processes)
        if (grounds.try_emplace(traced->ground, Pid{pid}).second) restore_text(state, *traced->ground, Pid{pid});
    WakingTime time(state);
    for (const auto &[ground, pid] : grounds) detach(state, ground, pid, time);
    for (auto &[pid, traced] : state.world.processes) trap::end_all(state.world, *traced);
    if (state.world.ledger) state.world.ledger->clear();
}

} // namespace ktrace::session
