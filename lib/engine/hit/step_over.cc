#include "engine/hit/step_over.h"

#include <csignal>
#include <utility>

#include "base/signals.h"
#include "engine/calls/repeated_hit.h"
#include "engine/hit/hit.h"
#include "engine/hit/hit_callbacks.h"
#include "engine/hit/resume.h"
#include "engine/transparent/points.h"

namespace ktrace::engine {

using arch::Host;
using arch::Method;

namespace {

void begin_step(Engine &engine, Task &task, Site &site, os::Stopped stopped) {
    Host::Registers &registers = stopped.change_registers();
    task.step.steps_itself = Host::steps_itself(registers);
    task.step.old_scratch = Host::begin_step(site.placed, site.slot, registers);
    task.step.over = Over::stepping;
    task.step.site = &site;
    continue_task(engine, task, std::move(stopped));
}

/// The step has ended, done or aborted: the task is resumed, with this signal or the held one.
void end_step(Engine &engine, Process &process, Task &task, os::Stopped stopped, int signal = 0) {
    task.step.over = Over::none;
    task.step.site = nullptr;
    task.step.post = {};
    signal = after_step(process, task, stopped, signal);
    continue_task(engine, task, std::move(stopped), signal);
}

/// A fault is reported with the address of the instruction (SIGILL, SIGFPE, and a trap), SIGSYS and a step with the one
/// behind it: never that of the copy.
void tell_at(Task &task, VirtAddr at, VirtAddr slot_pc) {
    auto info = os::signal_info(task.tid);
    if (!info || info->si_code <= 0) return;
    const int signal = info->si_signo;
    if (signal != SIGILL && signal != SIGFPE && signal != SIGTRAP && signal != SIGSYS) return;
    // si_call_addr is at the same place.
    if (reinterpret_cast<std::uint64_t>(info->si_addr) != slot_pc.value) return;
    info->si_addr = reinterpret_cast<void *>(at.value);
    os::set_signal_info(task.tid, *info);
}

/// Here, where the trap is hit once more in a mask that has just been put right.
void retry(Process &process, Task &task, const Site &site, os::Stopped &stopped) {
    give_way(*process.space, site.at); // a jump would count it again
    remember_hit(task, site.at, stopped);
    task.sigtrap.hits_until_look = 0;
}

/// The signal that the instruction itself would have raised.
siginfo_t fault_signal(const arch::Emulated &done) {
    siginfo_t info{};
    switch (done.fault) {
    case arch::Emulated::Fault::page:
        info.si_signo = SIGSEGV;
        info.si_code = SEGV_MAPERR;
        info.si_addr = reinterpret_cast<void *>(done.fault_address.value);
        break;
    case arch::Emulated::Fault::protection:
        info.si_signo = SIGSEGV;
        info.si_code = SI_KERNEL;
        break;
    case arch::Emulated::Fault::stack:
        info.si_signo = SIGBUS;
        info.si_code = SI_KERNEL;
        break;
    }
    return info;
}

/// The signal that the thread gets for a fault of the site's instruction: 0 where a handler has dealt with it.
int signal_of_fault(Engine &engine, Process &process, Task &task, Site &site, os::Stopped &stopped,
                    const siginfo_t &info) {
    if (!handle_fault(engine, process, task, site, stopped, info)) return info.si_signo;
    if (stopped.pc() != site.at) forget_hit(task); // it goes on elsewhere
    return 0;
}

/// The emulated instruction could not be done: the task gets the signal that it would have got.
void fault_at_site(Engine &engine, Process &process, Task &task, Site &site, os::Stopped stopped,
                   const arch::Emulated &done) {
    siginfo_t info = fault_signal(done);
    stopped.set_pc(site.at);
    retry(process, task, site, stopped);
    const int signal = signal_of_fault(engine, process, task, site, stopped, info);
    if (signal != 0) replace_signal(process, task, stopped, info);
    continue_task(engine, task, std::move(stopped), signal);
}

} // namespace

void step_out(Task &task, Site &site, os::Stopped &stopped) {
    task.step.over = Over::stepping;
    task.step.site = &site;
    task.step.post = {};
    task.step.old_scratch = 0;
    task.step.steps_itself = Host::steps_itself(stopped.registers());
}

void abort_step(Task &task, const Site &site, os::Stopped &stopped) {
    Host::Registers &registers = stopped.change_registers();
    Host::abort_step(site.placed, site.at, site.slot, task.step.old_scratch, registers);
    if (std::exchange(task.step.steps_itself, false)) Host::step_itself(registers, true);
}

void mark_moved(Process &process, Task &task, os::Stopped &stopped) {
    VirtAddr to = stopped.pc();
    if (!process.space->site_at(Host::trap_address(to))) return;
    auto info = os::signal_info(task.tid);
    if (!info) return;
    info->si_errno = ktrace_recovery_moved;
    info->si_addr = reinterpret_cast<void *>(to.value);
    os::set_signal_info(task.tid, *info);
}

void step_over(Engine &engine, Process &process, Task &task, Site &site, os::Stopped stopped, Places post) {
    switch (site.method()) {
    case Method::emulate: {
        Host::Registers &registers = stopped.change_registers();
        const bool steps_itself = Host::steps_itself(registers);
        auto done = Host::emulate(site.plan, site.at, registers, *process.space->memory);
        if (done.outcome == arch::Emulated::Outcome::fault) {
            fault_at_site(engine, process, task, site, std::move(stopped), done);
            return;
        }
        if (!post.empty()) run_post(engine, process, task, site, stopped, post);
        if (steps_itself) {
            stopped.write_back(); // delivered there, should ktrace be killed now
            os::set_signal_info(task.tid, end_of_step(stopped.pc()));
        } else {
            mark_moved(process, task, stopped);
        }
        continue_task(engine, task, std::move(stopped), steps_itself ? SIGTRAP : 0);
        return;
    }
    case Method::boost:
        if (!post.empty()) {
            task.step.post = std::move(post);
            begin_step(engine, task, site, std::move(stopped));
        } else {
            stopped.set_pc(site.slot + site.placed.copy_at);
            continue_task(engine, task, std::move(stopped));
        }
        return;
    case Method::step:
        task.step.post = std::move(post);
        begin_step(engine, task, site, std::move(stopped));
        return;
    case Method::syscall:
        // A signal on that short way is delivered at the site, which then is no new hit; a post handler would be lost
        // by that, so with one signals wait until the call is entered. (The mask would outlive ktrace if both processes
        // were killed.)
        stopped.set_pc(site.slot + site.placed.copy_at);
        task.step.over = Over::to_syscall;
        task.step.site = &site;
        task.step.post = std::move(post);
        continue_task(engine, task, std::move(stopped));
        return;
    case Method::refuse: break; // never armed
    }
    stopped.set_pc(site.at);
    continue_task(engine, task, std::move(stopped));
}

void finish_step(Engine &engine, Process &process, Task &task, os::Stopped stopped) {
    Site &site = *task.step.site;
    auto stepped = Host::finish_step(site.plan, site.placed, site.at, site.slot, task.step.old_scratch,
                                     stopped.change_registers(), *process.space->memory);
    if (stepped == arch::Stepped::again) {
        continue_task(engine, task, std::move(stopped));
        return;
    }
    if (!task.step.post.empty()) run_post(engine, process, task, site, stopped, task.step.post);
    end_step(engine, process, task, std::move(stopped));
}

void fault_in_step(Engine &engine, Process &process, Task &task, os::Stopped stopped) {
    Site &site = *task.step.site;
    VirtAddr slot_pc = stopped.pc();
    abort_step(task, site, stopped);
    tell_at(task, site.at, slot_pc);
    if (stopped.pc() == site.at) retry(process, task, site, stopped);
    // The held signal came before the instruction was run: it is delivered first, at the site. The fault is dropped; it
    // comes again when the task has returned to the instruction. Behind a jump that has led to the fault it is sent
    // again, but for SIGCONT (keep_end_of_step).
    auto &held = task.signals.held;
    int signal = 0;
    if (!held || stopped.pc() != site.at) {
        signal = stopped.stop().signal;
        if (auto info = os::signal_info(task.tid))
            signal = signal_of_fault(engine, process, task, site, stopped, *info);
        if (held && signal != 0 && held->si_signo != SIGCONT)
            os::send_again(task.pid, task.tid, *std::exchange(held, std::nullopt));
    }
    end_step(engine, process, task, std::move(stopped), signal);
}

namespace {

/// One signal is held, and another one has come before the step: a synchronous one that a process has sent, or it would
/// be blocked. The one that is held is delivered at the site, where nothing has been done yet, or the other one is
/// blocked, too, in the midst of the copy; that one is sent again.
void hold_no_more(Engine &engine, Process &process, Task &task, os::Stopped stopped) {
    const Site &site = *task.step.site;
    if (auto info = os::signal_info(task.tid)) os::send_again(task.pid, task.tid, *info);
    if (Host::slot_position(site.placed, site.slot, stopped.pc()) != arch::SlotPosition::at_start) {
        if (auto mask = os::signal_mask(task.tid))
            os::set_signal_mask(task.tid, *mask | signal_bit(stopped.stop().signal));
        continue_task(engine, task, std::move(stopped));
        return;
    }
    abort_step(task, site, stopped);
    retry(process, task, site, stopped);
    end_step(engine, process, task, std::move(stopped));
}

} // namespace

void hold_signal(Engine &engine, Process &process, Task &task, os::Stopped stopped) {
    auto &held = task.signals.held;
    if (held) return hold_no_more(engine, process, task, std::move(stopped));
    held = os::signal_info(task.tid);
    if (task.step.over != Over::stepping) step_out(task, *process.space->site_of_pc_in_slot(stopped.pc()), stopped);
    // Others would come before the step. They are blocked at the stop of an interrupt, not here: if ktrace were killed
    // at this stop, the kernel would deliver the signal with the step's mask in its frame, for ever.
    if (!task.signals.saved_mask) task.signals.blocks_next = os::interrupt(task.tid);
    continue_task(engine, task, std::move(stopped));
}

void deliver_outside(Engine &engine, Process &process, Task &task, os::Stopped stopped, bool again) {
    Site &site = *process.space->site_of_pc_in_slot(stopped.pc());
    VirtAddr slot_pc = stopped.pc();
    bool after = Host::slot_position(site.placed, site.slot, slot_pc) == arch::SlotPosition::after;
    if (after && site.method() == Method::syscall)
        Host::leave_slot_in_syscall(site.plan, site.at, stopped.change_registers());
    else
        stopped.set_pc(after ? site.at + site.plan.length : site.at);
    tell_at(task, stopped.pc(), slot_pc);
    if (again) retry(process, task, site, stopped);
    if (task.step.over == Over::to_syscall) {
        task.step.over = Over::none;
        task.step.site = nullptr;
        task.step.post = {};
    }
    const int signal = stopped.stop().signal;
    continue_task(engine, task, std::move(stopped), signal);
}

void fault_outside(Engine &engine, Process &process, Task &task, os::Stopped stopped) {
    Site &site = *process.space->site_of_pc_in_slot(stopped.pc());
    VirtAddr slot_pc = stopped.pc();
    Host::abort_step(site.placed, site.at, site.slot, 0, stopped.change_registers());
    tell_at(task, site.at, slot_pc);
    retry(process, task, site, stopped);
    int signal = stopped.stop().signal;
    if (auto info = os::signal_info(task.tid)) signal = signal_of_fault(engine, process, task, site, stopped, *info);
    continue_task(engine, task, std::move(stopped), signal);
}

void enter_syscall(Engine &engine, Task &task, os::Stopped stopped) {
    Site &site = *task.step.site;
    Host::leave_slot_in_syscall(site.plan, site.at, stopped.change_registers());
    task.step.over = task.step.post.empty() ? Over::none : Over::in_syscall;
    if (task.step.post.empty()) task.step.site = nullptr;
    continue_task(engine, task, std::move(stopped));
}

void leave_syscall(Engine &engine, Process &process, Task &task, os::Stopped stopped) {
    Site &site = *task.step.site;
    task.step.over = Over::none;
    task.step.site = nullptr;
    run_post(engine, process, task, site, stopped, std::exchange(task.step.post, {}));
    continue_task(engine, task, std::move(stopped));
}

} // namespace ktrace::engine
