#include "lifecycle/fork.h"

#include <algorithm>

#include <linux/capability.h>
#include <linux/kcmp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "arming/inherit.h"
#include "arming/install.h"
#include "base/log.h"
#include "engine/space/jumps.h"
#include "engine/transparent/points.h"
#include "engine/transparent/sigtrap/disposition.h"
#include "os/facts/exec_rights.h"
#include "trace/run_until.h"
#include "tracees/seize.h"

namespace ktrace::lifecycle {

using engine::AddressSpaceState;
using engine::Process;
using engine::Task;

namespace {

/// A task of the process that still has its memory: the leader may have ended before the others.
std::optional<Tid> one_with_memory(Pid process) {
    const Tid leader{process.value};
    if (os::has_memory(leader)) return leader;
    for (Tid tid : os::read_tasks(process))
        if (os::has_memory(tid)) return tid;
    return std::nullopt;
}

bool has_same_memory(Tid task, Pid other) { return ::syscall(SYS_kcmp, task.value, other.value, KCMP_VM, 0, 0) == 0; }

bool shares_memory(Pid process, Pid other) {
    while (auto task = one_with_memory(process)) {
        const bool same = has_same_memory(*task, other);
        if (os::has_memory(*task)) return same; // so it had when they were compared
    }
    return false;
}

Process &make_process(trace::Trace &trace, Pid pid) {
    auto &slot = trace.engine.processes[pid.value];
    slot = std::make_unique<Process>();
    slot->target.pid = pid;
    slot->target.comm = os::read_comm(pid, Tid{pid.value});
    return *slot;
}

Task &make_task(trace::Trace &trace, Pid pid, Tid tid) {
    Task &task = trace.engine.tasks[tid.value];
    task.tid = tid;
    task.pid = pid;
    trace.engine.waiter.watch(tid);
    return task;
}

/// A process in the memory of another one.
Process &make_borrower(trace::Trace &trace, const Process &owner, Pid pid) {
    Process &process = make_process(trace, pid);
    process.space = owner.space;
    process.target.space = owner.target.space;
    process.target.modules = owner.target.modules;
    process.target.maps = owner.target.maps;
    process.target.syscall_instruction = owner.target.syscall_instruction;
    process.borrowed = true;
    process.silent = !trace.config.follow || owner.silent;
    if (process.silent)
        engine::do_without_jumps(*owner.space, "a child that is not followed has run in its memory");
    else if (owner.space->threads) // to the agent both are one thread
        engine::do_without_jumps(*owner.space, "a child has run in its memory");
    // The owner may end, or call exec, before it.
    if (trace.engine.ledger && owner.space->recovery_tried)
        trace.engine.ledger->cover(pid, owner.space->recovery.address());
    return process;
}

/// True where its exec has to be seen before it is made.
bool stays_for_rights(const Process &borrower) { return borrower.silent && !os::has_capability(CAP_SYS_PTRACE); }

void forget(trace::Trace &trace, Pid pid) {
    std::erase_if(trace.engine.tasks, [&](const auto &entry) {
        if (entry.second.pid == pid) trace.engine.waiter.forget(Tid{entry.first});
        return entry.second.pid == pid;
    });
    leave_ledger(trace, pid);
    trace.engine.processes.erase(pid.value);
}

/// Its tasks stop once, and at their system calls from then on.
void stop_at_calls(trace::Trace &trace, const Process &sharer) {
    for (auto &[tid, task] : trace.engine.tasks) {
        if (task.pid != sharer.target.pid) continue;
        task.until_exec = true;
        os::interrupt(task.tid);
    }
}

/// It has a memory of its own since it was looked at. An exec whose event is still to come is served.
void part_with_sharer(trace::Trace &trace, Pid pid) {
    os::interrupt(Tid{pid.value});
    auto stop = trace::next_stop_of(trace, Tid{pid.value});
    if (!stop || stop->kind == os::Stop::Kind::exec || stop->kind == os::Stop::Kind::exited ||
        stop->kind == os::Stop::Kind::killed) {
        if (stop) trace.engine.waiter.put_back(*stop);
        return;
    }
    const int signal = stop->kind == os::Stop::Kind::signal ? stop->signal : 0;
    os::Stopped stopped(trace.engine.waiter, *stop);
    Task &task = trace.engine.tasks.at(pid.value);
    engine::at_stop(trace.engine, *trace.engine.process_of(task), task, stopped);
    std::move(stopped).resume(os::Resume::detach, signal);
    forget(trace, pid);
}

/// The child gets its parent's own action for SIGTRAP, and its copy of the recovery page goes.
Status unmap_recovery(AddressSpaceState &child, const target::Process &process, trace::Trace &trace,
                      os::Stopped &stopped) {
    if (!child.recovery.mapped()) return {};
    recovery::Hands hands{*child.memory, *process.syscall_instruction, trace.engine.waiter, stopped};
    auto restored = child.recovery.restore_action(hands);
    if (!restored) return tl::make_unexpected(restored.error());
    return *restored ? child.recovery.unmap(hands) : Status();
}

/// Takes the copies of ktrace's traps and pages out of a fork's child.
void clean(trace::Trace &trace, Process &parent, Pid child, os::Stopped &stopped) {
    // The kernel gives it none of the breakpoints, but a copy of the register that says which are on.
    if (parent.space->watch_generation != 0) arch::HostNative::set_watches(stopped.tid(), {});
    auto copy = parent.space->memory->copy_for(child);
    if (!copy) return;
    for (VirtAddr at : (*copy)->plants()) (*copy)->unplant(at);
    AddressSpaceState space;
    space.memory = std::move(*copy);
    for (const engine::Arena &arena : parent.space->slots.arenas()) space.slots.add(arena);
    space.recovery = parent.space->recovery;
    engine::rewrite_wiped(space, child);
    static_cast<void>(engine::forget_lost(space, child)); // nothing but ktrace's is unmapped
    target::Process image = parent.target;
    image.pid = child;
    auto unmapped = engine::unmap_arenas(space, image, trace.engine.waiter, stopped);
    if (unmapped) unmapped = unmap_recovery(space, image, trace, stopped);
    if (!unmapped) KT_LOG_DEBUG("child keeps our pages: " + unmapped.error().message);
}

/// A state for the child with the same page and slots, without sites.
std::shared_ptr<AddressSpaceState> copy_space(const Process &parent, std::shared_ptr<target::AddressSpace> memory) {
    auto space = std::make_shared<AddressSpaceState>();
    space->memory = std::move(memory);
    space->slots = parent.space->slots;
    space->recovery = parent.space->recovery;
    space->recovery_tried = parent.space->recovery_tried;
    space->has_new_probes = true;
    return space;
}

/// False: it is not followed, and clean, since the page or the slots cannot be had in it.
bool can_be_followed(trace::Trace &trace, Process &parent, Pid child, target::AddressSpace &space,
                     os::Stopped &stopped) {
    if (!parent.target.syscall_instruction) return true; // it has no page and no slots
    auto complete =
        engine::complete_copy(*parent.space, {space, *parent.target.syscall_instruction, trace.engine.waiter, stopped});
    if (complete) return true;
    clean(trace, parent, child, stopped);
    if (complete.error().kind != Error::Kind::gone)
        trace::tell_once(trace,
                         "children of process " + std::to_string(parent.target.pid.value) +
                             " lack memory of ktrace's, which it keeps from them (madvise(2)) or has replaced; those "
                             "that cannot be given it are not followed: " +
                             complete.error().message);
    return false;
}

/// The process whose event has reported the child already.
Process *who_tells_of(trace::Trace &trace, Pid child) {
    const auto message = static_cast<unsigned long>(child.value);
    for (const auto &[tid, task] : trace.engine.tasks)
        if (trace.engine.waiter.has_news_of(task.tid) && os::event_message(task.tid) == message)
            return trace.engine.process_of(task);
    return nullptr;
}

/// True where the process's page may be in the child, too.
bool may_be_copied(const Process &process, Pid child) {
    auto space = target::AddressSpace::open(child);
    return space && process.space->recovery.is_there(**space);
}

} // namespace

Process *maker_of(trace::Trace &trace, Pid child, Pid parent) {
    auto known = trace.engine.processes.find(parent.value);
    Process *by_status = known == trace.engine.processes.end() ? nullptr : known->second.get();
    if (by_status && shares_memory(parent, child)) return by_status;
    for (auto &[pid, process] : trace.engine.processes)
        if (shares_memory(Pid{pid}, child)) return process.get();
    if (Process *teller = who_tells_of(trace, child)) return teller;
    if (by_status && may_be_copied(*by_status, child)) return by_status;
    for (auto &[pid, process] : trace.engine.processes)
        if (may_be_copied(*process, child)) return process.get();
    return by_status;
}

void let_go(trace::Trace &trace, Pid pid, os::Stopped stopped) {
    Tid tid = stopped.tid();
    std::move(stopped).resume(os::Resume::detach);
    trace.engine.waiter.forget(tid);
    trace.engine.tasks.erase(tid.value);
    leave_ledger(trace, pid);
    trace.engine.processes.erase(pid.value);
}

void leave_ledger(trace::Trace &trace, Pid pid) {
    recovery::Ledger *ledger = trace.engine.ledger;
    auto leaving = trace.engine.processes.find(pid.value);
    if (!ledger || leaving == trace.engine.processes.end()) return;
    for (const auto &[other, process] : trace.engine.processes) {
        if (other == pid.value || process->space != leaving->second->space) continue;
        ledger->hand_over_traps(pid, Pid{other});
        break;
    }
    ledger->drop(pid);
}

Status adopt_sharers(trace::Trace &trace, const Process &owner) {
    for (bool found_new = true; found_new;) {
        found_new = false;
        const auto task = one_with_memory(owner.target.pid);
        if (!task) return {};
        for (Pid other : os::read_processes()) {
            if (trace.engine.processes.contains(other.value) || !has_same_memory(*task, other)) continue;
            if (!os::has_memory(*task)) break; // those that have none are all the same
            found_new = true;
            Process &sharer = make_borrower(trace, owner, other);
            Status seized = tracees::seize_all(trace, sharer);
            if (!seized) forget(trace, other);
            if (!seized && seized.error().kind != Error::Kind::gone) return seized;
            if (seized && !shares_memory(owner.target.pid, other)) {
                part_with_sharer(trace, other);
            } else if (seized && stays_for_rights(sharer)) {
                stop_at_calls(trace, sharer);
            }
        }
        found_new = found_new || !os::has_memory(*task); // then some were taken for none
    }
    return {};
}

void before_exec(trace::Trace &trace, engine::Event event) {
    Task &task = trace.engine.tasks.at(event.tid.value);
    Process *process = trace.engine.process_of(task);
    auto entry = os::syscall_entry(event.tid);
    if (process && entry && os::gains_rights(event.pid, *entry, *process->space->memory))
        let_go(trace, event.pid, std::move(*event.stopped));
    else
        engine::continue_task(trace.engine, task, std::move(*event.stopped));
}

void adopt_child(trace::Trace &trace, Process *parent, os::Stopped stopped) {
    Tid tid = stopped.tid();
    Pid child{tid.value};
    if (!parent) {
        // Its parent has ended meanwhile: the states of the other processes show which traps it may have.
        for (auto &[pid, process] : trace.engine.processes) clean(trace, *process, child, stopped);
        let_go(trace, child, std::move(stopped));
        return;
    }
    if (shares_memory(parent->target.pid, child)) {
        const Process &process = make_borrower(trace, *parent, child);
        Task &task = make_task(trace, child, tid);
        task.until_exec = stays_for_rights(process);
        engine::continue_task(trace.engine, task, std::move(stopped));
        return;
    }
    if (!trace.config.follow || parent->silent || trace.engine.closing) {
        clean(trace, *parent, child, stopped);
        let_go(trace, child, std::move(stopped));
        return;
    }
    auto copy = parent->space->memory->copy_for(child);
    if (copy) engine::lift_copies(*parent->space, **copy);
    if (!copy || !can_be_followed(trace, *parent, child, **copy, stopped)) {
        let_go(trace, child, std::move(stopped));
        return;
    }
    Process &process = make_process(trace, child);
    process.target.modules = parent->target.modules;
    process.target.maps = parent->target.maps;
    process.target.syscall_instruction = parent->target.syscall_instruction;
    process.target.space = std::move(*copy);
    process.space = copy_space(*parent, process.target.space);
    engine::restore_at_birth(trace.engine, process,
                             stopped); // killed from here on, ktrace leaves traps that are served
    arming::inherit(trace, *parent, process.space);
    if (trace.engine.ledger && process.space->recovery_tried)
        trace.engine.ledger->cover(child, process.space->recovery.address());
    for (VirtAddr at : process.space->memory->plants())
        engine::note_pageless_trap(trace.engine.ledger, child, *process.space, at);
    Task &task = make_task(trace, child, tid);
    engine::continue_task(trace.engine, task, std::move(stopped));
}

} // namespace ktrace::lifecycle
