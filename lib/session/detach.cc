#include "session/detach.h"

#include <algorithm>
#include <csignal>
#include <set>

#include "session/seize.h"
#include "session/settle.h"
#include "trap/calls.h"
#include "trap/dispatch.h"

namespace ktrace::session {

using arch::Host;
using arch::SlotPosition;
using trap::Over;
using trap::Task;
using trap::Traced;

namespace {

/// Takes all traps out and looks whether anything of ours is left.
void restore_text(State &state, Traced &traced) {
    bool lost = false;
    for (auto &[at, site] : traced.ground->sites) trap::disarm(*traced.ground, *site);
    for (VirtAddr at : traced.ground->space->plants()) lost = !traced.ground->space->unplant(at) || lost;
    if (lost)
        state.voice.complain({Error::Kind::refused,
                              "some of the code of process " + std::to_string(traced.process.pid.value) +
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
        if (task.over == Over::stepping) return false;
        task.over = Over::none;
        return true;
    }
    switch (Host::slot_position(site->placed, site->slot, stopped.pc())) {
    case SlotPosition::at_start:
        if (task.over == Over::stepping)
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

/// Sleeping in the kernel, at an address of its own: it can be let go by the end of the tracing thread, undisturbed.
bool sleeps_outside(Traced &traced, const Task &task) {
    if (task.over == Over::stepping || task.over == Over::to_syscall) return false;
    auto place = os::read_task_place(task.pid, task.tid);
    return place && !place->running && place->syscall >= 0 && !traced.ground->slots.contains(place->pc);
}

/// Brings a task to a stop from which it can be let go; nothing: it has ended, or it sleeps and may stay as it is.
std::optional<os::Stopped> bring_out(State &state, Traced &traced, Tid tid) {
    while (true) {
        auto found = state.world.tasks.find(tid.value);
        if (found == state.world.tasks.end()) return std::nullopt;
        if (!os::interrupt(tid)) {
            settle_ended(state, tid);
            return std::nullopt;
        }
        while (true) {
            auto stop = state.world.waiter.next_of(tid);
            if (!stop) {
                settle_ended(state, tid);
                return std::nullopt;
            }
            if (stop->kind == os::Stop::Kind::started || stop->kind == os::Stop::Kind::group) {
                os::Stopped stopped(state.world.waiter, *stop);
                if (leave_slot(traced, found->second, stopped)) return stopped;
                trap::continue_task(state.world, found->second, std::move(stopped));
                break; // the step's own stop comes, then another interrupt
            }
            settle(state, trap::dispatch(state.world, *stop));
            found = state.world.tasks.find(tid.value);
            if (found == state.world.tasks.end()) return std::nullopt;
        }
    }
}

void release(State &state, os::Stopped stopped) {
    Tid tid = stopped.tid();
    auto found = state.world.tasks.find(tid.value);
    int signal = 0;
    if (found != state.world.tasks.end() && found->second.held) signal = found->second.held->si_signo;
    std::move(stopped).resume(os::Resume::detach, signal);
    state.world.waiter.forget(tid);
    state.world.tasks.erase(tid.value);
}

/// Serves the stops that are there already: traps that were hit before they were taken out.
void drain(State &state) {
    while (auto stop = state.world.waiter.next(os::Waiter::Block::no))
        settle(state, trap::dispatch(state.world, *stop));
}

std::vector<Tid> tasks_of(const State &state, Pid pid) {
    std::vector<Tid> tids;
    for (const auto &[id, task] : state.world.tasks)
        if (task.pid == pid) tids.push_back(Tid{id});
    return tids;
}

void detach(State &state, Traced &traced) {
    Pid pid = traced.process.pid;
    std::optional<os::Stopped> last; // unmaps our pages when all others are out of them
    // Tasks that start meanwhile come in through their parents' events: until none is new.
    std::set<pid_t> asleep;
    for (bool changed = true; changed;) {
        changed = false;
        drain(state);
        for (Tid tid : tasks_of(state, pid)) {
            auto found = state.world.tasks.find(tid.value);
            if (found == state.world.tasks.end() || (last && last->tid() == tid) || asleep.contains(tid.value))
                continue;
            if (sleeps_outside(traced, found->second)) {
                asleep.insert(tid.value);
                continue;
            }
            changed = true;
            auto stopped = bring_out(state, traced, tid);
            if (!stopped) continue;
            if (last)
                release(state, std::move(*stopped));
            else
                last.emplace(std::move(*stopped));
        }
    }
    if (!traced.ground->slots.arenas().empty() && !traced.borrowed) {
        if (!last)
            if (auto one = stop_one(state, traced)) last.emplace(std::move(*one));
        if (last) {
            auto unmapped = trap::unmap_arenas(*traced.ground, traced.process, state.world.waiter, *last);
            if (!unmapped && unmapped.error().kind != Error::Kind::gone) state.voice.complain(unmapped.error());
        }
    }
    if (last) {
        // Where job control has stopped the process it stays stopped.
        bool group = last->stop().kind == os::Stop::Kind::group;
        int signal = group ? last->stop().signal : 0;
        Tid tid = last->tid();
        std::move(*last).resume(os::Resume::detach, signal);
        state.world.waiter.forget(tid);
        state.world.tasks.erase(tid.value);
    }
}

} // namespace

void detach_all(State &state) {
    state.world.closing = true;
    std::vector<pid_t> pids;
    for (auto &[pid, traced] : state.world.processes) {
        if (!traced->borrowed) restore_text(state, *traced);
        pids.push_back(pid);
    }
    for (pid_t pid : pids) {
        auto found = state.world.processes.find(pid);
        if (found == state.world.processes.end()) continue;
        detach(state, *found->second);
    }
    for (auto &[pid, traced] : state.world.processes) trap::end_all(state.world, *traced);
}

} // namespace ktrace::session
