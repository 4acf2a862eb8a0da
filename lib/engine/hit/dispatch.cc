#include "engine/hit/dispatch.h"

#include <csignal>
#include <string>
#include <utility>

#include <sys/syscall.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/signals.h"
#include "engine/calls/calls.h"
#include "engine/calls/doubtful_calls.h"
#include "engine/calls/goroutines.h"
#include "engine/calls/timing.h"
#include "engine/hit/hit.h"
#include "engine/hit/step_over.h"
#include "engine/space/classify.h"
#include "engine/transparent/repeated_hit.h"
#include "engine/transparent/restart/syscall_restart.h"
#include "engine/transparent/signals/deferred_signals.h"
#include "engine/transparent/sigtrap/disposition.h"
#include "engine/watch/watch.h"
#include "os/tracee/syscall_user_dispatch.h"

namespace ktrace::engine {

using arch::Host;
using arch::SlotPosition;
using os::Stop;
using os::Stopped;

namespace {

/// What goes with a verdict: the site that was hit.
struct Seen {
    Facts facts;
    Site *site = nullptr;
    VirtAddr trap_at;
    unsigned fired = 0;            // debug registers
    std::optional<siginfo_t> sent; // in whose place the task has stopped for a trap
};

/// A trap instruction of the program's own at `at`?
bool own_trap_at(Process &process, VirtAddr at) {
    auto trap = Host::trap_bytes();
    std::byte code[8];
    std::size_t got = process.space->memory->read(at, std::span(code).first(trap.size()));
    return got == trap.size() && std::equal(trap.begin(), trap.end(), code);
}

/// Who raised it. int3 and steps raise SIGTRAP with a positive code; kill and tgkill have one that is not.
bool raised_by_kernel(Tid tid) {
    auto info = os::signal_info(tid);
    return info && info->si_code > 0;
}

/// A single step's end, a hardware breakpoint's, or an event's of perf_event_open(2), which the program has set itself:
/// the pc is where the program goes on, and what lies before it has nothing to do with it.
bool comes_behind(int code) {
    constexpr int trap_perf = 6; // TRAP_PERF: not in every libc's headers
    return code == TRAP_TRACE || code == TRAP_HWBKPT || code == trap_perf;
}

/// May a SIGTRAP that somebody sends arrive in this process and leave it alive?
bool may_be_sent_sigtrap(const Engine &engine, Process &process) {
    look_at_signals(engine, process);
    return process.uses_sigtrap;
}

/// Of those that stop and continue a process, where they do no more than that.
bool controls_job(const Stop &stop) {
    constexpr std::uint64_t all = stop_signals | signal_bit(SIGCONT);
    if ((signal_bit(stop.signal) & all) == 0) return false;
    auto status = os::read_status(stop.tid.value);
    return status && (status->caught & signal_bit(stop.signal)) == 0;
}

/// Collects the facts of a stop, with as few requests as the usual case (a trap at a site) needs.
Seen gather(const Engine &engine, Process &process, Task &task, const Stop &stop, Stopped &stopped) {
    Seen seen;
    Facts &f = seen.facts;
    f.kind = stop.kind;
    f.signal = stop.signal;
    f.over = task.over;
    f.until_exec = task.until_exec;
    f.follows = task.follows != 0;
    if (stop.kind != Stop::Kind::signal) return seen;
    AddressSpaceState &space = *process.space;
    if (stop.signal == SIGTRAP) {
        // What a killed one has left in DR6 says nothing of this stop.
        if (!task.watching.empty() && !engine.mending) seen.fired = arch::HostNative::take_watch_hits(stop.tid);
        f.watched = seen.fired != 0;
        const bool steps = task.over == Over::stepping;
        if (task.wants_registers || steps) stopped.registers();
        seen.trap_at = Host::trap_address(stopped.pc());
        Site *site = space.site_at(seen.trap_at);
        f.site = site && site->armed && !steps;
        seen.site = site;
        // Behind a longer instruction's first byte the pc is nowhere but at a trap, and who stands elsewhere than where
        // its step began has made it. Behind a whole instruction somebody may have sent SIGTRAP, which only a process
        // that is prepared for it survives.
        bool is_at_trap = (f.site && site->plan.length > 1) || (steps && stopped.pc() != task.stepped_from);
        const bool may_be_sent = (f.site || steps) && may_be_sent_sigtrap(engine, process);
        const bool unmistakable = !may_be_sent && (is_at_trap || f.site);
        const auto info = unmistakable ? std::nullopt : os::signal_info(stop.tid);
        const int code = info ? info->si_code : 0;
        const bool was_sent = info && code <= 0;
        is_at_trap = is_at_trap || (was_sent && f.site && is_forced(process, task));
        // A task has one SIGTRAP pending at most: the trap's is dropped where one that was sent waits.
        if (was_sent && (is_at_trap || f.watched)) seen.sent = info;
        f.from_kernel = f.watched || unmistakable || is_at_trap || code > 0;
        f.behind = comes_behind(code);
        f.own_step = code == TRAP_TRACE && !steps;
        if (f.site && f.from_kernel && !f.behind) return seen;
        f.leftover = engine.mending && (code == TRAP_TRACE || code == TRAP_HWBKPT);
        f.was_ours = space.memory->ever_planted(seen.trap_at) && !own_trap_at(process, seen.trap_at);
    } else {
        f.from_kernel = is_synchronous(stop.signal) && raised_by_kernel(stop.tid);
        f.controls_job = controls_job(stop);
    }
    VirtAddr pc = stopped.pc();
    if (!space.slots.contains(pc)) return seen;
    if (Site *in = space.site_of_pc_in_slot(pc)) {
        f.slot = Host::slot_position(in->placed, in->slot, pc);
        f.repeats = in->plan.repeats;
    }
    return seen;
}

/// One that goes up with the task's stop.
Event event_of(Event::Kind kind, const Task &task, Stopped stopped) {
    Event event;
    event.kind = kind;
    event.pid = task.pid;
    event.tid = task.tid;
    event.stopped = std::make_unique<Stopped>(std::move(stopped));
    return event;
}

/// The event that an internal breakpoint of the site raises.
Event::Kind raised_by(const Site &site) {
    for (const InternalBreakpoint *breakpoint : site.internal)
        if (breakpoint->on && breakpoint->purpose->raises != EventKind::none) return breakpoint->purpose->raises;
    return Event::Kind::none;
}

/// Does a hit there read all registers?
bool reads_registers(const Site &site) {
    if (site.returns > 0 || site.exit || site.doubtful > 0 || site.method() == arch::Method::step) return true;
    for (const Attachment *attachment : site.attachments) {
        if (!attachment->on) continue;
        if (attachment->kind == Attachment::Kind::ret || attachment->handler) return true;
        auto moment = attachment->kind == Attachment::Kind::probe ? program::Moment::pre : program::Moment::entry;
        if (attachment->program->needs(moment).registers) return true;
    }
    return false;
}

/// A SIGTRAP that was sent has been taken for the stop of a trap, or a step's end, and is delivered when that has been
/// seen to.
void defer_sent_trap(Task &task, const siginfo_t &info) {
    if (task.over == Over::stepping && !task.signals.held)
        task.signals.held = info;
    else
        send_trap_again(task, info);
}

/// A system call is probed whose copy would be judged by where it is: the calls of this thread are sent back to it, but
/// for those of some code (PR_SET_SYSCALL_USER_DISPATCH). Such probes are refused; here that was not known in time.
bool is_dispatched_call(const Site &site, Tid tid) {
    if (site.method() != arch::Method::syscall) return false;
    const auto dispatch = os::dispatch_of(tid);
    return dispatch && dispatch->mode != 0;
}

Event on_hit(Engine &engine, Process &process, Task &task, Site &site, Stopped stopped) {
    stopped.rest_at(site.at);
    restore_signals(engine, process, task, stopped);
    if (is_dispatched_call(site, task.tid)) return event_of(Event::Kind::dispatched, task, std::move(stopped));
    task.wants_registers = reads_registers(site);
    task.outside_at = engine.stops;
    Event event;
    if (is_repeated_hit(*process.space, task, site, stopped) || process.silent) {
        step_over(engine, process, task, site, std::move(stopped), {});
        return event;
    }
    if (site.returns > 0) run_returns(engine, process, task, site, stopped);
    if (site.exit) run_exits(engine, process, task, site, stopped);
    if (site.doubtful > 0) end_left_calls(engine, process, site, stopped);
    Follows follows = run_pre(engine, process, task, site, stopped);
    if (follows.pc_is_set) {
        continue_task(engine, task, std::move(stopped));
        return event;
    }
    const Event::Kind raised = raised_by(site);
    if (raised != Event::Kind::none) return event_of(raised, task, std::move(stopped));
    step_over(engine, process, task, site, std::move(stopped), std::move(follows.post));
    return event;
}

/// The parent goes on when its child is what the program may find it to be.
Event on_new_process(Task &task, const Stop &stop, Stopped stopped) {
    Event event;
    event.kind = Event::Kind::new_process;
    event.pid = task.pid;
    event.tid = task.tid;
    event.vfork = stop.kind == Stop::Kind::vfork;
    if (auto child = os::event_message(stop.tid)) event.other = Tid{static_cast<pid_t>(*child)};
    event.stopped = std::make_unique<Stopped>(std::move(stopped));
    return event;
}

Event on_new_task(Engine &engine, Process &process, Task &task, Stopped stopped) {
    Event event;
    auto message = os::event_message(task.tid);
    Tid child{message ? static_cast<pid_t>(*message) : 0};
    auto status = child.value ? os::read_status(child.value) : std::nullopt;
    if (status && status->tgid == task.pid.value) {
        process.had_threads = true;
        Task &made = engine.tasks[child.value];
        made.tid = child;
        made.pid = process.target.pid;
        inherit_mask(made, task);
        engine.waiter.watch(child);
    } else if (status) { // clone without CLONE_THREAD: a process, often in the same memory
        event.kind = Event::Kind::new_process;
        event.pid = task.pid;
        event.tid = task.tid;
        event.other = child;
        event.stopped = std::make_unique<Stopped>(std::move(stopped));
        return event;
    }
    continue_task(engine, task, std::move(stopped));
    return event;
}

Event on_syscall(Engine &engine, Task &task, Stopped stopped) {
    Event event;
    auto entry = os::syscall_entry(task.tid);
    if (!entry || (entry->number != SYS_execve && entry->number != SYS_execveat)) {
        continue_task(engine, task, std::move(stopped));
        return event;
    }
    return event_of(Event::Kind::may_exec, task, std::move(stopped));
}

Event on_end(Engine &engine, const Stop &stop) {
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
            if (engine.watches) forget_values(*process->space, found->second);
        }
        engine.tasks.erase(found);
    }
    engine.waiter.forget(stop.tid);
    return event;
}

} // namespace

void end_calls(Engine &engine, Process &process, Task &task) {
    while (task.calls) end_unreturned(engine, process, *task.calls);
}

void continue_task(Engine &engine, Task &task, Stopped stopped, int signal) {
    if (engine.watches) set_watches(engine, task, stopped);
    const bool blocks = task.signals.blocks_next && stopped.stop().kind == Stop::Kind::started;
    Process *process = blocks || signal != 0 ? engine.process_of(task) : nullptr;
    if (process && blocks) block_at_interrupt(engine, *process, task, stopped);
    const bool at_signal = stopped.stop().kind == Stop::Kind::signal;
    const bool trap_pending = task.over == Over::stepping && !at_signal && os::has_fault_pending(task.tid, SIGTRAP);
    if (process && signal == SIGTRAP)
        restore_action(engine, *process, task, stopped);
    else if (process && signal != 0 && !task.signals.saved_mask)
        restore_mask(*process, task);
    if (signal != 0) follow_handler(task, stopped, signal);
    lead_to_copy(engine, task, stopped);
    const bool at_calls =
        task.until_exec || task.follows != 0 || task.sigtrap.watches_action != 0 || task.restart.failed.has_value();
    const os::Resume how = way_on(task.over, at_calls, trap_pending);
    if (how == os::Resume::step) task.stepped_from = stopped.pc();
    if (task.calls && engine.waiter.looks_often()) {
        stopped.write_back(); // before the clock is read: how much is written differs from site to site
        note_resume(engine, task, stopped);
    }
    if (engine.overhead) {
        std::uint64_t now = monotonic_ns(), seen = stopped.stop().seen_ns;
        engine.overhead->end_stop(task.tid, (now > seen && seen != 0 ? now - seen : 0) +
                                                engine.corrections.present(Clock::stops).per_stop_ns);
    }
    engine.verdicts.note_resume(task.verdict, how, signal);
    task.clock.now.stops++;
    if (how == os::Resume::step) task.clock.now.steps++;
    std::move(stopped).resume(how, signal);
}

void finish_hit(Engine &engine, Process &process, Task &task, Site &site, Stopped stopped) {
    step_over(engine, process, task, site, std::move(stopped), {});
}

namespace {

Event serve(Engine &engine, const Stop &stop) {
    if (stop.kind == Stop::Kind::exited || stop.kind == Stop::Kind::killed) return on_end(engine, stop);
    Stopped stopped(engine.waiter, stop);
    auto found = engine.tasks.find(stop.tid.value);
    Process *process = found == engine.tasks.end() ? nullptr : engine.process_of(found->second);
    if (!process) {
        engine.verdicts.note(stop, {}, Verdict::unknown);
        Event event;
        event.kind = Event::Kind::unknown;
        event.tid = stop.tid;
        event.stop = stop;
        event.stopped = std::make_unique<Stopped>(std::move(stopped));
        return event;
    }
    Task &task = found->second;
    task.last_stop = engine.stops;
    if (engine.overhead) engine.overhead->begin_stop();
    see_restart(task, stopped);
    if (stop.kind == Stop::Kind::signal && stop.signal == SIGTRAP) see_sent_again(task);
    Seen seen = gather(engine, *process, task, stop, stopped);
    if (task.calls) note_stop(task, stopped);
    if (task.sigtrap.watches_action != 0 && stop.kind == Stop::Kind::syscall) see_action(*process, task, stopped);
    if (seen.fired != 0) run_watches(engine, *process, task, seen.fired, stopped);
    if (seen.sent) defer_sent_trap(task, *seen.sent);
    const Verdict verdict = classify(seen.facts);
    if (KT_LOG_SHOWS(log::Level::debug)) stopped.pc();
    task.verdict = engine.verdicts.note(stop, stopped.known_pc(), verdict);
    if (stop.kind == Stop::Kind::started) see_interruption(*process, task, stopped); // of an interrupt of ours, perhaps
    if (stop.kind == Stop::Kind::syscall && task.over == Over::none) renew_interrupt(stopped);
    switch (verdict) {
    case Verdict::watched:
        restore_signals(engine, *process, task, stopped);
        continue_task(engine, task, std::move(stopped));
        break;
    case Verdict::hit: return on_hit(engine, *process, task, *seen.site, std::move(stopped));
    case Verdict::late_trap:
        stopped.rest_at(seen.trap_at);
        restore_signals(engine, *process, task, stopped);
        task.outside_at = engine.stops;
        stopped.set_pc(seen.trap_at);
        mark_moved(*process, task, stopped);
        continue_task(engine, task, std::move(stopped));
        break;
    case Verdict::deliver:
        see_interruption(*process, task, stopped);
        continue_task(engine, task, std::move(stopped), stop.signal);
        break;
    case Verdict::deliver_behind: deliver_outside(engine, *process, task, std::move(stopped), false); break;
    case Verdict::deliver_fault: fault_outside(engine, *process, task, std::move(stopped)); break;
    case Verdict::deliver_retry: deliver_outside(engine, *process, task, std::move(stopped), true); break;
    case Verdict::hold: hold_signal(engine, *process, task, std::move(stopped)); break;
    case Verdict::step_done:
        restore_signals(engine, *process, task, stopped); // a step ends with the same trap
        finish_step(engine, *process, task, std::move(stopped));
        break;
    case Verdict::step_fault: fault_in_step(engine, *process, task, std::move(stopped)); break;
    case Verdict::syscall_entered: enter_syscall(engine, *process, task, std::move(stopped)); break;
    case Verdict::syscall_left: leave_syscall(engine, *process, task, std::move(stopped)); break;
    case Verdict::handler_told:
        see_return(*process, task, stopped);
        continue_task(engine, task, std::move(stopped));
        break;
    case Verdict::syscall_told: return on_syscall(engine, task, std::move(stopped));
    case Verdict::group_stop:
        task.stopped_by_group = true;
        accept_interruption(stopped);
        if (engine.watches) set_watches(engine, task, stopped);
        engine.verdicts.note_resume(task.verdict, os::Resume::listen, 0);
        std::move(stopped).resume(os::Resume::listen);
        break;
    case Verdict::go_on:
        task.stopped_by_group = false;
        task.announced = true;
        continue_task(engine, task, std::move(stopped));
        break;
    case Verdict::new_task: return on_new_task(engine, *process, task, std::move(stopped));
    case Verdict::new_process: return on_new_process(task, stop, std::move(stopped));
    case Verdict::exec: {
        Event event;
        event.kind = Event::Kind::exec;
        event.pid = task.pid;
        event.tid = task.tid;
        if (auto former = os::event_message(stop.tid)) event.other = Tid{static_cast<pid_t>(*former)};
        event.stopped = std::make_unique<Stopped>(std::move(stopped));
        return event;
    }
    case Verdict::ended:
    case Verdict::unknown: break;
    }
    return {};
}

std::string last_line(const VerdictRing &verdicts) {
    char room[VerdictRing::longest_line];
    return verdicts.line(verdicts.noted(), room);
}

} // namespace

Event dispatch(Engine &engine, const Stop &stop) {
    engine.stops++;
    Event event = serve(engine, stop);
    KT_LOG_DEBUG(last_line(engine.verdicts));
    return event;
}

} // namespace ktrace::engine
