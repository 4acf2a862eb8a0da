#include "lifecycle/events.h"

#include <algorithm>
#include <csignal>

#include <unistd.h>

#include "arming/ifunc.h"
#include "arming/install.h"
#include "arming/syscall_sites.h"
#include "base/text.h"
#include "engine/agent/agent_stops.h"
#include "engine/calls/calls.h"
#include "engine/hit/step_over.h"
#include "engine/transparent/sigtrap/disposition.h"
#include "lifecycle/exec_and_loader.h"
#include "lifecycle/fork.h"
#include "report/symbolizer.h"
#include "trace/run_until.h"

namespace ktrace::lifecycle {

using engine::Event;
using engine::Process;

namespace {

/// The process has ended: all state of it goes.
void end_process(trace::Trace &trace, Pid pid) {
    auto found = trace.engine.processes.find(pid.value);
    if (found == trace.engine.processes.end()) return;
    Process &process = *found->second;
    report::part_with_modules(trace, process);
    // Others may use the same memory still (vfork).
    if (process.space.use_count() == 1) {
        engine::end_all(trace.engine, process);
        trace.installed.armings.erase(process.space.get());
    }
    leave_ledger(trace, pid);
    trace.engine.processes.erase(found);
}

/// A child that is not known yet: it is traced from its birth, and stops before it runs.
void meet_child(trace::Trace &trace, Pid parent, Tid child) {
    if (!child.value || trace.engine.tasks.contains(child.value)) return;
    auto stop = trace::next_stop_of(trace, child);
    if (!stop || stop->kind == os::Stop::Kind::exited || stop->kind == os::Stop::Kind::killed) {
        trace.engine.waiter.forget(child);
        return;
    }
    auto process = trace.engine.processes.find(parent.value);
    adopt_child(trace, process == trace.engine.processes.end() ? nullptr : process->second.get(),
                os::Stopped(trace.engine.waiter, *stop));
}

/// Children of a process that was killed, or ended by another thread, before their birth was reported: each has a copy
/// of its traps.
void meet_orphans(trace::Trace &trace, Pid parent) {
    for (Pid child : os::read_processes()) {
        if (child == parent || trace.engine.tasks.contains(child.value)) continue;
        auto status = os::read_status(child.value);
        const bool is_ours = status && status->tracer == ::gettid();
        if (is_ours && !trace.engine.processes.contains(status->ppid)) meet_child(trace, parent, Tid{child.value});
    }
}

/// Prints how a process that the user named has ended. (Of a program that `run` started the exit status is ktrace's
/// own.)
void tell_end(const trace::Trace &trace, const Process &process, const os::Stop &stop) {
    const trace::Config &config = trace.config;
    const pid_t pid = process.target.pid.value;
    const bool killed = stop.kind == os::Stop::Kind::killed;
    const bool is_named = std::find(config.pids.begin(), config.pids.end(), pid) != config.pids.end();
    const bool is_program = pid == trace.program.pid.value && trace.trouble == 0; // else it was ktrace that ended it
    if (config.quiet || !(is_named || (killed && is_program))) return;
    trace.voice.notice(std::to_string(pid) + " (" + text::escape(process.target.comm) + ") " +
                       (killed ? "was killed by " + text::signal_name(stop.status)
                               : "has ended with exit status " + std::to_string(stop.status)));
}

/// A thread has called exec, and has the id of its leader now, which is not known: the leader had ended before ktrace
/// attached. The event is still to come.
bool goes_on_under_new_id(const trace::Trace &trace, Pid pid) {
    const Tid leader{pid.value};
    if (trace.engine.tasks.contains(pid.value) || os::has_ended(leader)) return false;
    auto status = os::read_status(pid.value);
    return status && status->tracer == ::gettid();
}

void on_ended(trace::Trace &trace, const Event &event) {
    const os::Stop &stop = event.stop;
    if (stop.tid.value == trace.program.pid.value) // known or let go already
        trace.program.status = stop.kind == os::Stop::Kind::exited ? stop.status : 128 + stop.status;
    if (stop.tid.value != event.pid.value) return;
    auto process = trace.engine.processes.find(event.pid.value);
    const bool in_a_call = process != trace.engine.processes.end() && process->second->had_threads;
    if (process != trace.engine.processes.end()) tell_end(trace, *process->second, stop);
    if (stop.kind == os::Stop::Kind::killed || in_a_call) meet_orphans(trace, event.pid);
    end_process(trace, event.pid);
}

/// A thread has called exec and has the id of its leader now, which had ended when the process was attached to.
void on_exec_under_new_id(trace::Trace &trace, Event event) {
    event.pid = Pid{event.tid.value};
    if (auto former = os::event_message(event.tid)) event.other = Tid{static_cast<pid_t>(*former)};
    trace.engine.waiter.watch(event.tid);
    on_exec(trace, std::move(event));
}

/// A stop of a task that is not known yet: a child whose stop came before its parent's event.
void on_unknown(trace::Trace &trace, Event event) {
    Tid tid = event.tid;
    auto status = os::read_status(tid.value);
    if (!status) {
        std::move(*event.stopped).resume(os::Resume::run);
        return;
    }
    auto process = trace.engine.processes.find(status->tgid);
    if (process != trace.engine.processes.end() && event.stop.kind == os::Stop::Kind::exec) {
        on_exec_under_new_id(trace, std::move(event));
        return;
    }
    if (process != trace.engine.processes.end()) {
        process->second->had_threads = true;
        engine::Task &task = trace.engine.tasks[tid.value];
        task.tid = tid;
        task.pid = Pid{status->tgid};
        engine::guess_mask(trace.engine, task, task.pid);
        trace.engine.waiter.watch(tid);
        std::move(*event.stopped).keep();
        trace::serve(trace, event.stop); // its process may be stopped, and it with that
        return;
    }
    Process *maker = maker_of(trace, Pid{tid.value}, Pid{status->ppid});
    adopt_child(trace, maker, std::move(*event.stopped));
    auto child = trace.engine.tasks.find(tid.value);
    if (maker && child != trace.engine.tasks.end()) engine::guess_mask(trace.engine, child->second, maker->target.pid);
}

/// A probe that would have been refused, had the thread's dispatch been known: it is taken out, and the call is the
/// program's own again.
void on_dispatched(trace::Trace &trace, Event event) {
    os::Stopped stopped = std::move(*event.stopped);
    engine::Task &task = trace.engine.tasks.at(event.tid.value);
    Process &process = *trace.engine.process_of(task);
    engine::Site &site = *process.space->site_at(arch::Host::trap_address(stopped.pc()));
    trace.trouble = 1;
    trace::tell_once(trace, arming::why_not_dispatched(site.at, task.tid) + ": it is taken out of the process");
    engine::disarm(*process.space, site);
    stopped.set_pc(site.at);
    engine::mark_moved(process, task, stopped);
    engine::continue_task(trace.engine, task, std::move(stopped));
}

/// The parent waits meanwhile: it may want to trace the child itself, at once.
void on_new_process(trace::Trace &trace, Event event) {
    meet_child(trace, event.pid, event.other);
    auto parent = trace.engine.tasks.find(event.tid.value);
    if (parent == trace.engine.tasks.end()) {
        std::move(*event.stopped).resume(os::Resume::run);
        return;
    }
    auto child = trace.engine.tasks.find(event.other.value);
    if (child != trace.engine.tasks.end()) engine::inherit_mask(child->second, parent->second);
    engine::continue_task(trace.engine, parent->second, std::move(*event.stopped));
}

void act_on(trace::Trace &trace, Event event) {
    switch (event.kind) {
    case Event::Kind::none: return;
    case Event::Kind::ended: on_ended(trace, event); return;
    case Event::Kind::unknown: on_unknown(trace, std::move(event)); return;
    case Event::Kind::may_exec: before_exec(trace, std::move(event)); return;
    case Event::Kind::exec: on_exec(trace, std::move(event)); return;
    case Event::Kind::loader: on_loader(trace, std::move(event)); return;
    case Event::Kind::ifunc: arming::on_ifunc(trace, std::move(event)); return;
    case Event::Kind::dispatched: on_dispatched(trace, std::move(event)); return;
    case Event::Kind::new_process: on_new_process(trace, std::move(event)); return;
    }
}

} // namespace

void handle_event(trace::Trace &trace, Event event) {
    if (event.kind == Event::Kind::none) return;
    act_on(trace, std::move(event));
    begin_time(trace); // it may be the one that everything has waited for
}

void handle_end(trace::Trace &trace, Tid tid) {
    auto found = trace.engine.tasks.find(tid.value);
    if (found == trace.engine.tasks.end()) return;
    Pid pid = found->second.pid;
    if (Process *process = trace.engine.process_of(found->second)) {
        engine::end_calls(trace.engine, *process, found->second);
        engine::part_with_agent(trace.engine, *process, tid);
    }
    trace.engine.tasks.erase(found);
    trace.engine.waiter.forget(tid);
    bool others = std::any_of(trace.engine.tasks.begin(), trace.engine.tasks.end(),
                              [&](const auto &entry) { return entry.second.pid == pid; });
    if (others || goes_on_under_new_id(trace, pid)) return;
    meet_orphans(trace, pid);
    end_process(trace, pid);
}

} // namespace ktrace::lifecycle
