#include "engine/hit/apply.h"

#include <algorithm>
#include <utility>

#include <sys/syscall.h>

#include "engine/agent/agent_calls.h"
#include "engine/agent/agent_stops.h"
#include "engine/calls/calls.h"
#include "engine/calls/doubtful_calls.h"
#include "engine/calls/repeated_hit.h"
#include "engine/hit/hit.h"
#include "engine/hit/resume.h"
#include "engine/hit/step_over.h"
#include "engine/transparent/points.h"
#include "engine/watch/watch.h"
#include "os/proc/procfs.h"

namespace ktrace::engine {

using os::Stop;
using os::Stopped;

namespace {

/// All that a verdict is applied to. The token is apply's own: it is moved no more often than it is handed on.
struct At {
    Engine &engine;
    Process &process;
    Task &task;
    const Seen &seen;
    Stopped &stopped;
};

/// The task goes up with its stop.
Event event_of(Event::Kind kind, At &at) {
    Event event;
    event.kind = kind;
    event.pid = at.task.pid;
    event.tid = at.task.tid;
    event.stopped = std::make_unique<Stopped>(std::move(at.stopped));
    return event;
}

void run_on(At &at, int signal = 0) { continue_task(at.engine, at.task, std::move(at.stopped), signal); }

/// The event that an internal breakpoint of the site raises.
Event::Kind raised_by(const Site &site) {
    for (const InternalBreakpoint *breakpoint : site.internal)
        if (breakpoint->on && breakpoint->purpose->raises != EventKind::none) return breakpoint->purpose->raises;
    return Event::Kind::none;
}

/// Does a hit there read all registers?
bool reads_registers(const Site &site) {
    if (site.returns > 0 || site.kept_for_returns || site.exit || site.doubtful > 0 ||
        site.method() == arch::Method::step)
        return true;
    for (const Attachment *attachment : site.attachments) {
        if (!attachment->on) continue;
        if (attachment->kind == Attachment::Kind::ret || attachment->handler) return true;
        auto moment = attachment->kind == Attachment::Kind::probe ? program::Moment::pre : program::Moment::entry;
        if (attachment->program->needs(moment).registers) return true;
    }
    return false;
}

/// The task is at the trap of a site: its mask and the process's action are put back.
Site &take_site(At &at) {
    Site &site = *at.seen.site;
    site.stops++;
    at.stopped.rest_at(site.at);
    before_probes(at.engine, at.process, at.task, at.stopped, at.seen.sent);
    at.task.wants_registers = reads_registers(site);
    at.task.outside_at = at.engine.stops;
    take_hit(*at.process.space, at.task, site, at.stopped);
    return site;
}

/// All calls of the task are looked at there.
bool concerns_all_calls(const Site &site) {
    const auto is_on = [](const InternalBreakpoint *each) { return each->on && each->purpose->serves_returns; };
    const auto asks = [](const Attachment *each) { return each->on && (each->inside != 0 || each->encloses != 0); };
    return std::ranges::any_of(site.internal, is_on) || std::ranges::any_of(site.attachments, asks);
}

/// Those that what is done there looks at become the engine's.
void take_over_calls_for(At &at, const Site &site) {
    if (!at.process.space->threads) return;
    const auto follows = [](const Attachment *each) { return each->on && each->kind == Attachment::Kind::ret; };
    if (concerns_all_calls(site))
        take_over_calls(at.engine, at.process, at.task);
    else if (site.kept_for_returns || site.exit || site.doubtful > 0 || std::ranges::any_of(site.attachments, follows))
        take_over_calls(at.engine, at.process, at.task, at.stopped.sp());
}

/// Runs the calls that return or end here, then the site's attachments. Returns the probes that wait for the end of the
/// instruction.
Follows run_probes(At &at, Site &site) {
    take_over_calls_for(at, site);
    if (site.returns > 0) run_returns(at.engine, at.process, at.task, site, at.stopped);
    if (site.exit) run_exits(at.engine, at.process, at.task, site, at.stopped);
    if (site.doubtful > 0) end_left_calls(at.engine, at.process, site, at.stopped);
    return run_pre(at.engine, at.process, at.task, site, at.stopped);
}

/// A hit that counts.
Event hit(At &at) {
    Site &site = take_site(at);
    Follows follows = run_probes(at, site);
    if (follows.pc_is_set) {
        run_on(at);
        return {};
    }
    const Event::Kind raised = raised_by(site);
    if (raised != Event::Kind::none) return event_of(raised, at);
    step_over(at.engine, at.process, at.task, site, std::move(at.stopped), std::move(follows.post));
    return {};
}

void hit_again(At &at) {
    Site &site = take_site(at);
    step_over(at.engine, at.process, at.task, site, std::move(at.stopped), {});
}

Event hit_dispatched(At &at) {
    take_site(at);
    return event_of(Event::Kind::dispatched, at);
}

/// The debug registers' programs have run already, with their values as they were.
void watched(At &at) {
    before_probes(at.engine, at.process, at.task, at.stopped, at.seen.sent);
    const bool is_before = (at.seen.fired & at.task.watches.executing) != 0;
    if (is_before && arch::HostNative::watches_stop_before) step_off_watches(at.task, 0);
    run_on(at);
}

/// Nothing has been read or written yet.
void before_access(At &at) {
    before_probes(at.engine, at.process, at.task, at.stopped, at.seen.sent);
    step_off_watches(at.task, at.seen.fired);
    run_on(at);
}

/// The trap was taken out meanwhile: the task goes back to the program's own instruction.
void late_trap(At &at) {
    at.stopped.rest_at(at.seen.trap_at);
    before_probes(at.engine, at.process, at.task, at.stopped, at.seen.sent);
    at.task.outside_at = at.engine.stops;
    at.stopped.set_pc(at.seen.trap_at);
    mark_moved(at.process, at.task, at.stopped);
    run_on(at);
}

/// The task comes to its site once more.
void rang(At &at) {
    before_probes(at.engine, at.process, at.task, at.stopped, at.seen.sent);
    at.task.outside_at = at.engine.stops;
    mark_moved(at.process, at.task, at.stopped);
    run_on(at);
}

/// A step ends with the same trap as a hit.
void step_done(At &at) {
    before_probes(at.engine, at.process, at.task, at.stopped, at.seen.sent);
    finish_step(at.engine, at.process, at.task, std::move(at.stopped));
}

/// One of the task's own system calls, at which it was to stop: before an exec it may have to be detached.
Event own_syscall(At &at) {
    auto entry = os::syscall_entry(at.task.tid);
    if (entry && (entry->number == SYS_execve || entry->number == SYS_execveat))
        return event_of(Event::Kind::may_exec, at);
    run_on(at);
    return {};
}

void handler_syscall(At &at) {
    see_return(at.process, at.task, at.stopped);
    run_on(at);
}

/// The process is stopped by job control, and stays so.
void group_stop(At &at) {
    if (at.engine.watches) set_watches(at.engine, at.task, at.stopped);
    at.engine.verdicts.note_resume(at.task.verdict, os::Resume::listen, 0);
    std::move(at.stopped).resume(os::Resume::listen);
}

/// The parent is resumed when its child is as the program may find it.
Event new_process(At &at) {
    const bool is_vfork = at.stopped.stop().kind == Stop::Kind::vfork;
    auto child = os::event_message(at.task.tid);
    Event event = event_of(Event::Kind::new_process, at);
    event.vfork = is_vfork;
    if (child) event.other = Tid{static_cast<pid_t>(*child)};
    return event;
}

/// clone: of a thread, or without CLONE_THREAD: a process, often in the same memory.
Event new_task(At &at) {
    auto message = os::event_message(at.task.tid);
    const Tid child{message ? static_cast<pid_t>(*message) : 0};
    auto status = child.value ? os::read_status(child.value) : std::nullopt;
    if (status && status->tgid != at.task.pid.value) return new_process(at);
    if (status) {
        at.process.had_threads = true;
        Task &made = at.engine.tasks[child.value];
        made.tid = child;
        made.pid = at.process.target.pid;
        at_birth(made, at.task);
        at.engine.waiter.watch(child);
    }
    run_on(at);
    return {};
}

Event exec(At &at) {
    auto former = os::event_message(at.task.tid);
    Event event = event_of(Event::Kind::exec, at);
    if (former) event.other = Tid{static_cast<pid_t>(*former)};
    return event;
}

} // namespace

Event apply(Engine &engine, Process &process, Task &task, Verdict verdict, const Seen &seen, Stopped stopped) {
    // Data may be watched by a step or a trap, too: whatever the verdict is.
    if (seen.fired != 0 && !seen.facts.before_access) {
        arch::HostNative::clear_watch_hits(task.tid);
        run_watches(engine, process, task, seen.fired, stopped);
    }
    if (stopped.stop().kind == Stop::Kind::signal) end_step_off(task);
    At at{engine, process, task, seen, stopped};
    switch (verdict) {
    case Verdict::hit: return hit(at);
    case Verdict::hit_again: hit_again(at); break;
    case Verdict::hit_dispatched: return hit_dispatched(at);
    case Verdict::watched: watched(at); break;
    case Verdict::before_access: before_access(at); break;
    case Verdict::rang: rang(at); break;
    case Verdict::late_trap: late_trap(at); break;
    case Verdict::deliver: run_on(at, at.stopped.stop().signal); break;
    case Verdict::deliver_behind: deliver_outside(engine, process, task, std::move(at.stopped), false); break;
    case Verdict::deliver_fault: fault_outside(engine, process, task, std::move(at.stopped)); break;
    case Verdict::deliver_retry: deliver_outside(engine, process, task, std::move(at.stopped), true); break;
    case Verdict::hold: hold_signal(engine, process, task, std::move(at.stopped)); break;
    case Verdict::step_done: step_done(at); break;
    case Verdict::step_fault: fault_in_step(engine, process, task, std::move(at.stopped)); break;
    case Verdict::syscall_entered: enter_syscall(engine, task, std::move(at.stopped)); break;
    case Verdict::syscall_left: leave_syscall(engine, process, task, std::move(at.stopped)); break;
    case Verdict::handler_syscall: handler_syscall(at); break;
    case Verdict::own_syscall: return own_syscall(at);
    case Verdict::group_stop: group_stop(at); break;
    case Verdict::go_on: run_on(at); break;
    case Verdict::new_task: return new_task(at);
    case Verdict::new_process: return new_process(at);
    case Verdict::exec: return exec(at);
    case Verdict::ended:
    case Verdict::unknown: break; // apply_end, dispatch: they have no task that stands
    }
    return {};
}

Event apply_end(Engine &engine, const Stop &stop) {
    engine.verdicts.note(stop, {}, Verdict::ended);
    Event event;
    event.kind = Event::Kind::ended;
    event.tid = stop.tid;
    event.stop = stop;
    auto found = engine.tasks.find(stop.tid.value);
    if (found != engine.tasks.end()) {
        event.pid = found->second.pid;
        if (Process *process = engine.process_of(found->second)) {
            end_calls(engine, *process, found->second);
            part_with_agent(engine, *process, stop.tid);
            if (engine.watches) forget_values(*process->space, found->second);
        }
        engine.tasks.erase(found);
    }
    engine.waiter.forget(stop.tid);
    return event;
}

void end_calls(Engine &engine, Process &process, Task &task) {
    take_over_calls(engine, process, task);
    while (task.calls.youngest) end_unfinished(engine, process, *task.calls.youngest);
}

void finish_hit(Engine &engine, Process &process, Task &task, Site &site, Stopped stopped) {
    step_over(engine, process, task, site, std::move(stopped), {});
}

} // namespace ktrace::engine
