// How an address space is left, by all processes that run in it:
//
// 1. All traps come out. Hits from before can still be classified (the sites stay known).
// 2. Every task that runs, or has debug registers of ktrace's, is stopped outside of the slots. Another task that
// sleeps
//    in the kernel is not disturbed: woken by something else, it finds nothing of ktrace's in its way.
// 3. From here on they stay stopped: a task that was detached could fork, and its child would have ktrace's pages.
// These
//    are unmapped by one of the stopped tasks; where all sleep, one is stopped for that.
// 4. Children that a fork under way has given a copy of anything of ktrace's have stopped at their birth: they are
//    cleaned.
// 5. All are detached. A task whose call is restarted (engine/transparent/restart), and those that sleep, are detached
// by
//    the end of the tracing thread, without a stop.
//
// Where a task that has to be stopped cannot be (a control group keeps it from running, it waits for a disk, or in
// vfork for its child), nothing but the first is done: the page and the slots stay, at rest, as after a kill of ktrace,
// and the handler in the page still swallows SIGTRAPs of debug registers.
#include "tracees/detach.h"

#include <algorithm>
#include <csignal>
#include <map>

#include <sys/syscall.h>

#include "base/signals.h"
#include "engine/agent/agent_calls.h"
#include "engine/calls/calls.h"
#include "engine/hit/dispatch.h"
#include "engine/transparent/restart/syscall_restart.h"
#include "engine/transparent/signals/deferred_signals.h"
#include "engine/transparent/sigtrap/disposition.h"
#include "engine/watch/watch.h"
#include "os/facts/freezer.h"
#include "trace/run_until.h"
#include "tracees/stop.h"
#include "tracees/unmap.h"

namespace ktrace::tracees {

using engine::AddressSpaceState;
using engine::Process;
using engine::Task;

namespace {

/// Takes all traps out and looks whether any is left. Memory that is not mapped any more needs nothing.
void restore_text(trace::Trace &trace, const SpacePointer &space, Pid pid) {
    engine::lift_all(*space);
    for (auto &[at, site] : space->sites) site->armed = false;
    bool lost = false;
    for (VirtAddr at : space->memory->plants()) {
        std::byte one;
        if (!space->memory->unplant(at)) lost = lost || space->memory->read(at, std::span(&one, 1)) == 1;
    }
    if (!lost) return;
    trace.voice.complain({Error::Kind::refused,
                          "some of the code of process " + std::to_string(pid.value) +
                              " was changed meanwhile, not by ktrace, and was left as it is",
                          {},
                          {},
                          -1,
                          1});
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
/// that signal can be delivered, before it runs on. Real-time signals of its number that stand before the stand-in in
/// the queue have come behind it, and are queued again. Nothing: the task has ended.
std::optional<os::Stopped> stop_for_held(trace::Trace &trace, Task &task, os::Stopped stopped) {
    const Tid tid = task.tid;
    const siginfo_t held = *task.signals.held;
    int stand_in = send_stand_in(task, held.si_signo);
    if (stand_in == 0 && !os::has_signal_queued(tid)) return stopped; // others have them; it would run on meanwhile
    std::vector<siginfo_t> behind;
    std::move(stopped).resume(os::Resume::run);
    while (auto stop = trace::next_stop_of(trace, tid)) {
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
    trace.events.handle_end(trace, tid);
    return std::nullopt;
}

/// Serves a task that is on its way to a restarted call until the call has begun, or has failed after all.
void let_call_begin(trace::Trace &trace, Tid tid) {
    auto is_on_its_way = [&] {
        auto found = trace.engine.tasks.find(tid.value);
        return found != trace.engine.tasks.end() && found->second.restart.failed;
    };
    while (is_on_its_way())
        if (!trace::serve_next_of(trace, tid, trace::Wait::yes)) trace.events.handle_end(trace, tid);
}

void release(trace::Trace &trace, os::Stopped stopped) {
    Tid tid = stopped.tid();
    auto found = trace.engine.tasks.find(tid.value);
    if (found != trace.engine.tasks.end()) {
        engine::give_back_at_end(found->second);
        if (engine::Process *process = trace.engine.process_of(found->second)) {
            engine::take_over_calls(trace.engine, *process, found->second);
            engine::restore_mask(*process, found->second);
        }
        engine::clear_watches(found->second);
    }
    if (found != trace.engine.tasks.end() && found->second.restart.failed) {
        engine::continue_task(trace.engine, found->second, std::move(stopped));
        let_call_begin(trace, tid);
        if (trace.engine.ledger) trace.engine.ledger->forget(tid);
        return;
    }
    if (found != trace.engine.tasks.end() && found->second.signals.held) {
        auto at_signal = stop_for_held(trace, found->second, std::move(stopped));
        if (!at_signal) return;
        std::move(*at_signal).resume(os::Resume::detach, found->second.signals.held->si_signo);
    } else {
        // Where job control has stopped the process, the kernel stops the task again.
        std::move(stopped).resume(os::Resume::detach);
    }
    if (trace.engine.ledger) trace.engine.ledger->forget(tid);
    trace.engine.waiter.forget(tid);
    trace.engine.tasks.erase(tid.value);
}

std::vector<Pid> processes_in(const trace::Trace &trace, const SpacePointer &space) {
    std::vector<Pid> pids;
    for (const auto &[pid, process] : trace.engine.processes)
        if (process->space == space) pids.push_back(Pid{pid});
    return pids;
}

/// One of the processes is kept from running by a control group: before it is thawed, none of its tasks makes an
/// injected call, nor comes to the end of a step.
std::optional<os::Freezer> freezer_of(const trace::Trace &trace, const SpacePointer &space) {
    for (Pid pid : processes_in(trace, space))
        if (auto freezer = os::frozen_by(pid)) return freezer;
    return std::nullopt;
}

/// The page and the slots stay. Signals that were held in the middle of an instruction are sent again.
void leave_at_rest(trace::Trace &trace, const SpacePointer &space, Pid pid, const std::optional<os::Freezer> &freezer) {
    for (Tid tid : tasks_in(trace, space)) {
        Task &task = trace.engine.tasks.at(tid.value);
        if (auto held = std::exchange(task.signals.held, std::nullopt)) os::send_again(task.pid, tid, *held);
    }
    const std::string id = std::to_string(pid.value);
    const char *why = freezer ? "its control group has frozen it" : "a thread of it waits in the kernel";
    trace.voice.complain({Error::Kind::refused,
                          "process " + id + " cannot be stopped (" + why +
                              "): its code is as it was, and ktrace's mappings stay in it, at rest",
                          (freezer ? "thaw it (" + freezer->thawing() + "), and then " : std::string()) +
                              "ktrace repair -p " + id + " takes it out",
                          {},
                          -1,
                          1});
}

void leave(trace::Trace &trace, const SpacePointer &space, Pid pid) {
    HeldTasks held;
    const auto freezer = freezer_of(trace, space);
    const bool has_left = !freezer && hold_tasks(trace, space, held) && unmap_ours(trace, space, held);
    trace::serve_each(trace);
    for (auto &[tid, stopped] : held) release(trace, std::move(stopped));
    if (!has_left && !processes_in(trace, space).empty()) leave_at_rest(trace, space, pid, freezer);
}

} // namespace

void serve_for_the_last_time(trace::Trace &trace) {
    trace::serve_each(trace);
    std::vector<Tid> tids;
    for (const auto &[id, task] : trace.engine.tasks) tids.push_back(Tid{id});
    for (Tid tid : tids) let_call_begin(trace, tid);
}

void detach_all(trace::Trace &trace) {
    trace.engine.closing = true;
    std::map<SpacePointer, Pid> spaces;
    for (auto &[pid, process] : trace.engine.processes)
        if (spaces.try_emplace(process->space, Pid{pid}).second) restore_text(trace, process->space, Pid{pid});
    for (const auto &[space, pid] : spaces) leave(trace, space, pid);
    for (auto &[tid, task] : trace.engine.tasks) // of processes that could not be stopped
        if (engine::Process *process = trace.engine.process_of(task))
            engine::take_over_calls(trace.engine, *process, task);
    for (auto &[pid, process] : trace.engine.processes) engine::end_all(trace.engine, *process);
    if (trace.engine.ledger) trace.engine.ledger->clear();
}

} // namespace ktrace::tracees
