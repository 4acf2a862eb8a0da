// How an address space is left, by all processes that run in it:
//
// 1. All traps come out. What was hit before is understood still (the sites stay known).
// 2. Every task that runs is stopped outside of the slots, and stays stopped: one that was let go could fork, and its
//    child would have our pages. Who sleeps in the kernel is not disturbed: woken by something else, it finds nothing
//    of ours in its way. Where one of them is needed nevertheless (debug registers, or all sleep), and an interrupt
//    would make its time-out begin anew, it may wake up by itself first, for a moment.
// 3. Our pages are unmapped by one of the stopped tasks.
// 4. Children that a fork under way has given a copy of anything of ours have stopped at their birth: they are cleaned.
// 5. All go. The sleepers are let go by the end of the tracing thread, without a stop.
#include "session/detach.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <map>
#include <set>

#include <sys/syscall.h>

#include "base/clock.h"
#include "os/asleep.h"
#include "os/ticker.h"
#include "session/seize.h"
#include "session/settle.h"
#include "session/waking.h"
#include "trap/calls.h"
#include "trap/dispatch.h"
#include "trap/interruption.h"
#include "trap/restore.h"
#include "trap/watch.h"

namespace ktrace::session {

using arch::Host;
using arch::SlotPosition;
using trap::Ground;
using trap::Over;
using trap::Task;
using trap::Traced;

namespace {

using GroundPointer = std::shared_ptr<Ground>;
using HeldTasks = std::map<pid_t, os::Stopped>;

constexpr std::uint64_t patience_ns = 1'000'000'000; // for those who sleep in calls that should not be interrupted

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

/// A task at an interrupt's stop: its pc goes out of the slot it may be in. False: it is in the middle of an
/// instruction there and has to run on first.
bool leave_slot(Traced &traced, Task &task, os::Stopped &stopped) {
    trap::Site *site = traced.ground->site_of_pc_in_slot(stopped.pc());
    if (!site) {
        if (traced.ground->rescue.contains(stopped.pc())) return false;
        if (task.over == Over::stepping) return false;
        task.over = Over::none;
        return true;
    }
    switch (Host::slot_position(site->placed, site->slot, stopped.pc())) {
    case SlotPosition::at_start:
        // One that sets the trap flag is only ever stepped: by a ktrace that was killed, if not by this one.
        if (task.over == Over::stepping || site->placed.sets_trap_flag)
            Host::abort_step(site->placed, site->at, site->slot, task.old_scratch, stopped.change_registers());
        stopped.set_pc(site->at);
        break;
    case SlotPosition::after:
        if (task.over == Over::stepping) return false;
        stopped.set_pc(site->at + site->plan.length);
        break;
    case SlotPosition::inside: return false;
    case SlotPosition::elsewhere: break;
    }
    if (task.saved_mask) os::set_signal_mask(task.tid, *task.saved_mask);
    task.saved_mask.reset();
    task.over = Over::none;
    task.site = nullptr;
    return true;
}

/// A call that makes a copy of the memory: what it copies must be known before our pages go.
bool copies_memory(const os::TaskPlace &place) {
#ifdef SYS_fork
    if (place.syscall == SYS_fork) return true;
#endif
    constexpr std::uint64_t shares = CLONE_VM;
    return place.syscall == SYS_clone && (place.arguments[0] & shares) == 0;
}

/// Sleeping in the kernel, at an address of its own, or a leader that has ended before its threads: it can be let go by
/// the end of the tracing thread, undisturbed.
bool sleeps_outside(const Ground &ground, const Task &task) {
    if (os::has_ended(task.tid)) return true;
    if (task.over == Over::stepping || task.over == Over::to_syscall || !task.watching.empty()) return false;
    auto place = os::read_task_place(task.pid, task.tid);
    return place && !place->running && place->syscall >= 0 && !ground.slots.contains(place->pc) &&
           !ground.rescue.contains(place->pc) && !copies_memory(*place);
}

/// A trap of ours was hit and is still to be told. Until that is done the pc stands behind its first byte.
bool trap_is_pending(os::Stopped &stopped) { return os::has_fault_pending(stopped.tid(), SIGTRAP); }

/// Lets a task run on before it is interrupted again, twice as long each time. On a busy processor an interrupt that
/// follows at once is there before the task has come to its next instruction, again and again.
class Pause {
  public:
    void take() {
        const std::uint64_t end = monotonic_ns() + next_ns_;
        const timespec until{static_cast<time_t>(end / second_ns), static_cast<long>(end % second_ns)};
        while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
        }
        next_ns_ = std::min(next_ns_ * 2, second_ns / 2);
    }

  private:
    static constexpr std::uint64_t second_ns = 1'000'000'000;
    std::uint64_t next_ns_ = 50'000;
};

/// Of a task's processor time. The handler in our page is done in microseconds: what stays there is code that a process
/// has put into a page that only looks like ours. Other clocks go on while a task waits for a busy processor.
constexpr std::uint64_t longest_in_page_ms = 50;

/// Brings a task to a stop from which it can be let go; nothing: it has ended, or left the process's memory.
std::optional<os::Stopped> bring_out(State &state, Traced &traced, Tid tid) {
    bool asked = false; // a stop is sure to come
    Pause pause;
    const std::uint64_t run_before_ms = os::processor_time_ms(traced.process.pid, tid);
    auto has_run_long = [&] {
        return os::processor_time_ms(traced.process.pid, tid) > run_before_ms + longest_in_page_ms;
    };
    while (true) {
        if (!asked && !os::interrupt(tid)) break;
        asked = true;
        auto stop = state.world.waiter.next_of(tid);
        if (!stop) break;
        if (stop->kind == os::Stop::Kind::started || stop->kind == os::Stop::Kind::group) {
            os::Stopped stopped(state.world.waiter, *stop);
            Task &task = state.world.tasks.at(tid.value);
            bool pending = trap_is_pending(stopped);
            bool stays = traced.ground->rescue.contains(stopped.pc()) && has_run_long();
            if (!pending && (leave_slot(traced, task, stopped) || stays)) {
                if (stop->kind == os::Stop::Kind::started) trap::undo_interruption(stopped);
                return stopped;
            }
            // The trap's stop comes, or the step's; one that runs on in a slot is interrupted again.
            asked = pending || task.over != Over::none;
            if (pending)
                std::move(stopped).resume(os::Resume::run); // to step again is to leave a stepped popf its trap flag
            else
                trap::continue_task(state.world, task, std::move(stopped));
            if (!asked) pause.take();
            continue;
        }
        settle(state, trap::dispatch(state.world, *stop));
        if (!state.world.tasks.contains(tid.value)) return std::nullopt;
        asked = false;
    }
    settle_ended(state, tid);
    return std::nullopt;
}

/// Serves the stops that are there already: traps that were hit before they were taken out, children that were born.
void drain(State &state) {
    while (auto stop = state.world.waiter.next(os::Waiter::Block::no))
        settle(state, trap::dispatch(state.world, *stop));
}

std::vector<Tid> tasks_in(const State &state, const GroundPointer &ground) {
    std::vector<Tid> tids;
    for (const auto &[id, task] : state.world.tasks) {
        auto process = state.world.processes.find(task.pid.value);
        if (process != state.world.processes.end() && process->second->ground == ground) tids.push_back(Tid{id});
    }
    return tids;
}

/// Sleeps in a call that is not to be interrupted, though it has to be stopped once: its debug registers are armed.
bool is_spared(const Task &task) {
    return task.watched_as != 0 && task.over == Over::none && !os::has_ended(task.tid) &&
           os::interrupted(task.pid, task.tid) == os::Interrupted::begins_anew;
}

/// Those who sleep in calls with a time-out that would begin anew.
enum class Spare : std::uint8_t { yes, no };

/// Stops all that run, until nobody new comes.
void hold_tasks(State &state, const GroundPointer &ground, Spare spare, HeldTasks &held) {
    std::set<pid_t> asleep;
    for (bool changed = true; changed;) {
        changed = false;
        drain(state);
        for (Tid tid : tasks_in(state, ground)) {
            auto found = state.world.tasks.find(tid.value);
            if (found == state.world.tasks.end() || held.contains(tid.value) || asleep.contains(tid.value)) continue;
            Traced *traced = state.world.process_of(found->second);
            if (!traced) continue;
            if (sleeps_outside(*ground, found->second) || (spare == Spare::yes && is_spared(found->second))) {
                asleep.insert(tid.value);
                continue;
            }
            changed = true;
            if (auto stopped = bring_out(state, *traced, tid)) held.emplace(tid.value, std::move(*stopped));
        }
    }
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

/// Waits for a moment until those wake up by themselves who should not be interrupted: a trap behind their calls stops
/// them.
void await_sleepers(State &state, const GroundPointer &ground, Pid pid, HeldTasks &held) {
    if (!needs_sleepers(state, ground, held)) return;
    trap_sleepers(state, ground);
    const std::uint64_t until_ns = monotonic_ns() + patience_ns;
    while (needs_sleepers(state, ground, held) && monotonic_ns() < until_ns) {
        auto stop = state.world.waiter.next(os::Waiter::Block::briefly);
        if (!stop) continue;
        auto task = state.world.tasks.find(stop->tid.value);
        Traced *traced = task == state.world.tasks.end() ? nullptr : state.world.process_of(task->second);
        bool stays = traced && traced->ground == ground && os::interrupt(stop->tid); // it stops before it runs on
        settle(state, trap::dispatch(state.world, *stop));
        if (!stays || !state.world.tasks.contains(stop->tid.value)) continue;
        if (auto stopped = bring_out(state, *traced, stop->tid)) held.emplace(stop->tid.value, std::move(*stopped));
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
        trap::restore_mask(found->second);
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
    state.world.waiter.forget(tid);
    state.world.tasks.erase(tid.value);
}

void detach(State &state, const GroundPointer &ground, Pid pid) {
    HeldTasks held;
    hold_tasks(state, ground, Spare::yes, held);
    await_sleepers(state, ground, pid, held);
    hold_tasks(state, ground, Spare::no, held);
    clear_memory(state, ground, held);
    drain(state);
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
    for (const auto &[ground, pid] : grounds) detach(state, ground, pid);
    for (auto &[pid, traced] : state.world.processes) trap::end_all(state.world, *traced);
    if (state.ledger) state.ledger->clear();
}

} // namespace ktrace::session
