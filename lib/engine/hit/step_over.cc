#include "engine/hit/step_over.h"

#include <csignal>
#include <utility>

#include "base/signals.h"
#include "engine/hit/dispatch.h"
#include "engine/hit/hit.h"
#include "engine/hit/hit_callbacks.h"
#include "engine/transparent/repeated_hit.h"
#include "engine/transparent/signals/deferred_signals.h"

namespace ktrace::engine {

using arch::Host;
using arch::Method;

namespace {

void begin_step(Engine &engine, Process &process, Task &task, Site &site, os::Stopped stopped) {
    Host::Registers &registers = stopped.change_registers();
    task.steps_itself = Host::steps_itself(registers);
    task.old_scratch = Host::begin_step(site.placed, site.slot, registers);
    task.over = Over::stepping;
    task.site = &site;
    block_signals(engine, process, task, stopped);
    continue_task(engine, task, std::move(stopped));
}

/// The program has stepped itself: it is told where the step has led.
bool is_end_of_step(const siginfo_t &info) { return info.si_signo == SIGTRAP && info.si_code == TRAP_TRACE; }

/// What the program is told of its own step.
siginfo_t end_of_step(VirtAddr pc) {
    siginfo_t info{};
    info.si_signo = SIGTRAP;
    info.si_code = TRAP_TRACE;
    info.si_addr = reinterpret_cast<void *>(pc.value);
    return info;
}

/// The stepped copy is done, of a program that steps itself: that is delivered first, as the kernel does with what an
/// instruction raises. A signal that is held is sent again, but for SIGCONT: sent again, it would take back a stop that
/// was asked for after it.
void keep_end_of_step(Task &task, VirtAddr pc) {
    if (!std::exchange(task.steps_itself, false)) return;
    auto &held = task.signals.held;
    if (held && is_end_of_step(*held)) return; // of the copy's first half
    const siginfo_t info = end_of_step(pc);
    if (held && held->si_signo == SIGCONT) {
        send_trap_again(task, info);
        return;
    }
    if (held) os::send_again(task.pid, task.tid, *held);
    held = info;
}

/// For as long as a task at the stop of a trap is told of another signal in that one's place, and until it runs on with
/// it: should ktrace be killed meanwhile, the task drops the SIGTRAP, and the guardian sends what is owed.
class Retelling {
  public:
    Retelling(Process &process, os::Stopped &stopped) {
        const os::Stop &stop = stopped.stop();
        if (stop.kind != os::Stop::Kind::signal || stop.signal != SIGTRAP) return;
        space_ = process.space.get();
        stopped.write_back(); // the handler knows the task by its stack pointer
        space_->recovery.retell(*space_->memory, stopped.sp());
    }
    ~Retelling() {
        if (space_) space_->recovery.retell(*space_->memory, {});
    }
    Retelling(const Retelling &) = delete;

  private:
    AddressSpaceState *space_ = nullptr;
};

/// The step is over, one way or the other: the task runs on, with this signal or the one that waited for it.
void end_step(Engine &engine, Process &process, Task &task, os::Stopped stopped, int signal = 0) {
    task.over = Over::none;
    task.site = nullptr;
    task.post = {};
    task.steps_itself = false;
    give_back_state(task);
    std::optional<Retelling> retelling;
    if (auto held = std::exchange(task.signals.held, std::nullopt)) {
        retelling.emplace(process, stopped);
        if (is_end_of_step(*held)) held->si_addr = reinterpret_cast<void *>(stopped.pc().value);
        os::set_signal_info(task.tid, *held);
        signal = held->si_signo;
    }
    continue_task(engine, task, std::move(stopped), signal);
    update_ledger(engine, task);
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
void retry(Task &task, const Site &site, os::Stopped &stopped) {
    remember_retry(task, site.at, stopped);
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
    if (stopped.pc() != site.at) forget_retry(task); // it goes on elsewhere
    return 0;
}

/// The emulated instruction could not be done: the task gets the signal that it would have got.
void fault_at_site(Engine &engine, Process &process, Task &task, Site &site, os::Stopped stopped,
                   const arch::Emulated &done) {
    siginfo_t info = fault_signal(done);
    stopped.set_pc(site.at);
    retry(task, site, stopped);
    int signal = signal_of_fault(engine, process, task, site, stopped, info);
    std::optional<Retelling> retelling;
    if (signal != 0) {
        retelling.emplace(process, stopped);
        os::set_signal_info(task.tid, info);
    }
    continue_task(engine, task, std::move(stopped), signal);
}

} // namespace

void step_out(Task &task, Site &site, os::Stopped &stopped) {
    task.over = Over::stepping;
    task.site = &site;
    task.post = {};
    task.old_scratch = 0;
    task.steps_itself = Host::steps_itself(stopped.registers());
}

void abort_step(Task &task, const Site &site, os::Stopped &stopped) {
    hide_step_flag(task, stopped);
    Host::Registers &registers = stopped.change_registers();
    Host::abort_step(site.placed, site.at, site.slot, task.old_scratch, registers);
    if (std::exchange(task.steps_itself, false)) Host::step_itself(registers, true);
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
            stopped.write_back(); // told there, should ktrace be killed now
            os::set_signal_info(task.tid, end_of_step(stopped.pc()));
        } else {
            mark_moved(process, task, stopped);
        }
        continue_task(engine, task, std::move(stopped), steps_itself ? SIGTRAP : 0);
        return;
    }
    case Method::boost:
        if (!post.empty()) {
            task.post = std::move(post);
            begin_step(engine, process, task, site, std::move(stopped));
        } else {
            stopped.set_pc(site.slot + site.placed.copy_at);
            continue_task(engine, task, std::move(stopped));
        }
        return;
    case Method::step:
        task.post = std::move(post);
        begin_step(engine, process, task, site, std::move(stopped));
        return;
    case Method::syscall:
        // A signal on that short way is told at the site, which then is no new hit; a post handler would be lost by
        // that, so with one signals wait until the call is entered. (A mask of ours would outlive us if both processes
        // were killed.)
        stopped.set_pc(site.slot + site.placed.copy_at);
        if (!post.empty()) block_signals(engine, process, task, stopped);
        task.over = Over::to_syscall;
        task.site = &site;
        task.post = std::move(post);
        continue_task(engine, task, std::move(stopped));
        return;
    case Method::refuse: break; // never armed
    }
    stopped.set_pc(site.at);
    continue_task(engine, task, std::move(stopped));
}

void finish_step(Engine &engine, Process &process, Task &task, os::Stopped stopped) {
    Site &site = *task.site;
    const bool traps_by_flag = task.signals.traps_by_flag;
    hide_step_flag(task, stopped);
    auto stepped = Host::finish_step(site.plan, site.placed, site.at, site.slot, task.old_scratch,
                                     stopped.change_registers(), *process.space->memory);
    if (stepped == arch::Stepped::again) {
        if (traps_by_flag) show_step_flag(task, stopped);
        block_signals(engine, process, task, stopped);
        continue_task(engine, task, std::move(stopped));
        return;
    }
    if (!task.post.empty()) run_post(engine, process, task, site, stopped, task.post);
    keep_end_of_step(task, stopped.pc());
    end_step(engine, process, task, std::move(stopped));
}

void fault_in_step(Engine &engine, Process &process, Task &task, os::Stopped stopped) {
    Site &site = *task.site;
    VirtAddr slot_pc = stopped.pc();
    abort_step(task, site, stopped);
    tell_at(task, site.at, slot_pc);
    if (stopped.pc() == site.at) retry(task, site, stopped);
    // What is held came before the instruction was run: it is delivered first, at the site. The fault is dropped; it
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

/// One signal is held, and another one has come before the step: one of those that an instruction raises, sent by
/// somebody, or it would be blocked. The one that is held is delivered at the site, where nothing has been done yet, or
/// the other one is blocked, too, in the midst of the copy; that one is sent again.
void hold_no_more(Engine &engine, Process &process, Task &task, os::Stopped stopped) {
    const Site &site = *task.site;
    if (auto info = os::signal_info(task.tid)) os::send_again(task.pid, task.tid, *info);
    if (Host::slot_position(site.placed, site.slot, stopped.pc()) != arch::SlotPosition::at_start) {
        if (auto mask = os::signal_mask(task.tid))
            os::set_signal_mask(task.tid, *mask | signal_bit(stopped.stop().signal));
        continue_task(engine, task, std::move(stopped));
        return;
    }
    abort_step(task, site, stopped);
    retry(task, site, stopped);
    end_step(engine, process, task, std::move(stopped));
}

} // namespace

void hold_signal(Engine &engine, Process &process, Task &task, os::Stopped stopped) {
    auto &held = task.signals.held;
    if (held) return hold_no_more(engine, process, task, std::move(stopped));
    held = os::signal_info(task.tid);
    if (task.over != Over::stepping) step_out(task, *process.space->site_of_pc_in_slot(stopped.pc()), stopped);
    // Others would come before the step. They are blocked, but not here: if ktrace were killed at this stop, the kernel
    // would deliver the signal with our mask in its frame, for ever.
    if (!task.signals.saved_mask) task.signals.blocks_next = os::interrupt(task.tid);
    continue_task(engine, task, std::move(stopped));
    update_ledger(engine, task);
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
    if (again) retry(task, site, stopped);
    if (task.over == Over::to_syscall) {
        task.over = Over::none;
        task.site = nullptr;
        task.post = {};
    }
    give_back_state(task);
    int signal = stopped.stop().signal;
    continue_task(engine, task, std::move(stopped), signal);
    update_ledger(engine, task);
}

void fault_outside(Engine &engine, Process &process, Task &task, os::Stopped stopped) {
    Site &site = *process.space->site_of_pc_in_slot(stopped.pc());
    VirtAddr slot_pc = stopped.pc();
    Host::abort_step(site.placed, site.at, site.slot, 0, stopped.change_registers());
    tell_at(task, site.at, slot_pc);
    retry(task, site, stopped);
    give_back_state(task);
    int signal = stopped.stop().signal;
    if (auto info = os::signal_info(task.tid)) signal = signal_of_fault(engine, process, task, site, stopped, *info);
    continue_task(engine, task, std::move(stopped), signal);
    update_ledger(engine, task);
}

void enter_syscall(Engine &engine, Process &, Task &task, os::Stopped stopped) {
    Site &site = *task.site;
    Host::leave_slot_in_syscall(site.plan, site.at, stopped.change_registers());
    give_back_state(task);
    task.over = task.post.empty() ? Over::none : Over::in_syscall;
    if (task.post.empty()) task.site = nullptr;
    continue_task(engine, task, std::move(stopped));
    update_ledger(engine, task);
}

void leave_syscall(Engine &engine, Process &process, Task &task, os::Stopped stopped) {
    Site &site = *task.site;
    task.over = Over::none;
    task.site = nullptr;
    run_post(engine, process, task, site, stopped, std::exchange(task.post, {}));
    continue_task(engine, task, std::move(stopped));
}

} // namespace ktrace::engine
