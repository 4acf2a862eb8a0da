#include "session/settle.h"

#include <algorithm>
#include <csignal>

#include <unistd.h>

#include "base/text.h"
#include "session/follow.h"
#include "session/ifunc.h"
#include "session/names.h"
#include "session/rearm.h"
#include "session/sigtrap.h"
#include "session/start.h"
#include "session/waking.h"
#include "trap/calls.h"
#include "trap/restore.h"

namespace ktrace::session {

using trap::Event;
using trap::Traced;

namespace {

/// The process has ended: all that was kept of it goes.
void end_process(State &state, Pid pid) {
    auto found = state.world.processes.find(pid.value);
    if (found == state.world.processes.end()) return;
    Traced &traced = *found->second;
    part_with_modules(state, traced);
    // Others may use the same memory still (vfork).
    if (traced.ground.use_count() == 1) {
        trap::end_all(state.world, traced);
        state.armings.erase(traced.ground.get());
    }
    leave_ledger(state, pid);
    state.world.processes.erase(found);
}

/// A child that nobody knows yet: it is traced from its birth, and stops before it runs.
void meet_child(State &state, Pid parent, Tid child) {
    if (!child.value || state.world.tasks.contains(child.value)) return;
    auto stop = state.world.waiter.next_of(child);
    if (!stop || stop->kind == os::Stop::Kind::exited || stop->kind == os::Stop::Kind::killed) {
        state.world.waiter.forget(child);
        return;
    }
    auto process = state.world.processes.find(parent.value);
    adopt_child(state, process == state.world.processes.end() ? nullptr : process->second.get(),
                os::Stopped(state.world.waiter, *stop));
}

/// Children of a process that was killed, or ended by another thread, before their birth was told: each has a copy of
/// what was in it.
void meet_orphans(State &state, Pid parent) {
    for (Pid child : os::read_processes()) {
        if (child == parent || state.world.tasks.contains(child.value)) continue;
        auto status = os::read_status(child.value);
        const bool is_ours = status && status->tracer == ::gettid();
        if (is_ours && !state.world.processes.contains(status->ppid)) meet_child(state, parent, Tid{child.value});
    }
}

/// The user is told how what they named has ended. (Of a program that `run` started the exit status is ktrace's own.)
void tell_end(const State &state, const Traced &traced, const os::Stop &stop) {
    const Config &config = state.config;
    const pid_t pid = traced.process.pid.value;
    const bool killed = stop.kind == os::Stop::Kind::killed;
    const bool is_named = std::find(config.pids.begin(), config.pids.end(), pid) != config.pids.end();
    const bool is_program = pid == state.program.value && state.trouble == 0; // else it was ktrace that ended it
    if (config.quiet || !(is_named || (killed && is_program))) return;
    state.voice.notice(std::to_string(pid) + " (" + text::escape(traced.process.comm) + ") " +
                       (killed ? "was killed by " + text::signal_name(stop.status)
                               : "has ended with exit status " + std::to_string(stop.status)));
}

/// A thread has called exec, and has the id of its leader now, which nobody knows: that had ended before ktrace came.
/// Its event comes.
bool goes_on_under_new_id(const State &state, Pid pid) {
    const Tid leader{pid.value};
    if (state.world.tasks.contains(pid.value) || os::has_ended(leader)) return false;
    auto status = os::read_status(pid.value);
    return status && status->tracer == ::gettid();
}

void on_ended(State &state, const Event &event) {
    const os::Stop &stop = event.stop;
    if (stop.tid.value == state.program.value) // known or let go already
        state.program_status = stop.kind == os::Stop::Kind::exited ? stop.status : 128 + stop.status;
    if (stop.tid.value != event.pid.value) return;
    auto process = state.world.processes.find(event.pid.value);
    const bool in_a_call = process != state.world.processes.end() && process->second->had_threads;
    if (process != state.world.processes.end()) tell_end(state, *process->second, stop);
    if (stop.kind == os::Stop::Kind::killed || in_a_call) meet_orphans(state, event.pid);
    end_process(state, event.pid);
}

/// A thread has called exec and has the id of its leader now, which had ended when the process was attached to.
void on_exec_under_new_id(State &state, Event event) {
    event.pid = Pid{event.tid.value};
    if (auto former = os::event_message(event.tid)) event.other = Tid{static_cast<pid_t>(*former)};
    state.world.waiter.watch(event.tid);
    on_exec(state, std::move(event));
}

/// A stop of a task that nobody has announced: a child that was faster than its parent's event.
void on_unknown(State &state, Event event) {
    Tid tid = event.tid;
    auto status = os::read_status(tid.value);
    if (!status) {
        std::move(*event.stopped).resume(os::Resume::run);
        return;
    }
    auto process = state.world.processes.find(status->tgid);
    if (process != state.world.processes.end() && event.stop.kind == os::Stop::Kind::exec) {
        on_exec_under_new_id(state, std::move(event));
        return;
    }
    if (process != state.world.processes.end()) {
        process->second->had_threads = true;
        trap::Task &task = state.world.tasks[tid.value];
        task.tid = tid;
        task.pid = Pid{status->tgid};
        state.world.waiter.watch(tid);
        std::move(*event.stopped).keep();
        settle(state, trap::dispatch(state.world, event.stop)); // its process may be stopped, and it with that
        return;
    }
    adopt_child(state, maker_of(state, Pid{tid.value}, Pid{status->ppid}), std::move(*event.stopped));
}

/// The room that was owed is made before the task goes on.
void on_owed_room(State &state, Event event) {
    std::optional<os::Stopped> stopped(std::move(*event.stopped));
    trap::Task &task = state.world.tasks.at(event.tid.value);
    Traced &traced = *state.world.process_of(task);
    const VirtAddr at = arch::Host::trap_address(stopped->pc());
    const bool at_trap = event.stop.kind == os::Stop::Kind::signal && !os::is_tripwire(event.tid);
    trap::Site *hit = at_trap ? traced.ground->site_at(at) : nullptr;
    if (hit) stopped->rest_at(at);
    pay_owed_room(state, traced, stopped);
    if (!stopped) return;
    if (hit)
        settle(state, trap::serve_hit(state.world, traced, task, *hit, std::move(*stopped)));
    else
        trap::continue_task(state.world, task, std::move(*stopped));
}

void on_blocks_traps(State &state, Event event) {
    os::Stopped stopped = std::move(*event.stopped);
    trap::Task &task = state.world.tasks.at(event.tid.value);
    Traced &traced = *state.world.process_of(task);
    trap::Site &site = *traced.ground->site_at(arch::Host::trap_address(stopped.pc()));
    watch_masks(state, traced, stopped);
    settle(state, trap::serve_restored_hit(state.world, traced, task, site, std::move(stopped)));
}

/// The parent waits meanwhile: it may want to trace the child itself, at once.
void on_new_process(State &state, Event event) {
    meet_child(state, event.pid, event.other);
    auto parent = state.world.tasks.find(event.tid.value);
    if (parent == state.world.tasks.end()) {
        std::move(*event.stopped).resume(os::Resume::run);
        return;
    }
    auto child = state.world.tasks.find(event.other.value);
    if (child != state.world.tasks.end()) trap::inherit_mask(child->second, parent->second);
    trap::continue_task(state.world, parent->second, std::move(*event.stopped));
}

void act_on(State &state, Event event) {
    switch (event.kind) {
    case Event::Kind::none: return;
    case Event::Kind::ended: on_ended(state, event); return;
    case Event::Kind::unknown: on_unknown(state, std::move(event)); return;
    case Event::Kind::may_exec: before_exec(state, std::move(event)); return;
    case Event::Kind::exec: on_exec(state, std::move(event)); return;
    case Event::Kind::loader: on_loader(state, std::move(event)); return;
    case Event::Kind::ifunc: on_ifunc(state, std::move(event)); return;
    case Event::Kind::woken: on_woken(state, std::move(event)); return;
    case Event::Kind::owed_room: on_owed_room(state, std::move(event)); return;
    case Event::Kind::blocks_traps: on_blocks_traps(state, std::move(event)); return;
    case Event::Kind::new_process: on_new_process(state, std::move(event)); return;
    }
}

} // namespace

void settle(State &state, Event event) {
    if (event.kind == Event::Kind::none) return;
    act_on(state, std::move(event));
    begin_time(state); // it may be the one that everything has waited for
}

void settle_ended(State &state, Tid tid) {
    auto found = state.world.tasks.find(tid.value);
    if (found == state.world.tasks.end()) return;
    Pid pid = found->second.pid;
    if (Traced *traced = state.world.process_of(found->second)) trap::end_calls(state.world, *traced, found->second);
    state.world.tasks.erase(found);
    state.world.waiter.forget(tid);
    bool others = std::any_of(state.world.tasks.begin(), state.world.tasks.end(),
                              [&](const auto &entry) { return entry.second.pid == pid; });
    if (others || goes_on_under_new_id(state, pid)) return;
    meet_orphans(state, pid);
    end_process(state, pid);
}

} // namespace ktrace::session
