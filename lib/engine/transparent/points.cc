#include "engine/transparent/points.h"

#include <utility>

#include "engine/transparent/jumps/leave_jump.h"
#include "engine/transparent/restart/syscall_restart.h"
#include "engine/transparent/signals/deferred_signals.h"
#include "engine/transparent/sigtrap/disposition.h"

namespace ktrace::engine {

using Kind = os::Stop::Kind;

namespace {

/// True where a signal of the program's own would come in before the task's step or call is done.
bool keeps_signals_out(const TaskStep &step) {
    return step.over == Over::stepping || (step.over == Over::to_syscall && !step.post.empty());
}

bool is_trap(const os::Stop &stop) { return stop.kind == Kind::signal && stop.signal == SIGTRAP; }

} // namespace

void at_birth(Task &child, const Task &maker) { inherit_mask(child, maker); }

void at_stop(const Engine &engine, Process &process, Task &task, os::Stopped &stopped) {
    const Kind kind = stopped.stop().kind;
    if (kind == Kind::signal || kind == Kind::started || kind == Kind::group) leave_jump(process, task, stopped);
    see_restart(task, stopped);
    if (task.signals.traps_by_flag) hide_step_flag(stopped);
    switch (stopped.stop().kind) {
    case Kind::signal:
        if (stopped.stop().signal != SIGTRAP) break;
        see_sent_again(task);
        look_at_signals(engine, process);
        break;
    case Kind::syscall:
        if (task.sigtrap.watches_action != 0) see_action(process, task, stopped);
        if (task.step.over == Over::none) renew_interrupt(stopped);
        break;
    case Kind::started: see_interruption(process, task, stopped); break;
    case Kind::group: accept_interruption(stopped); break;
    default: break;
    }
}

void before_probes(Engine &engine, Process &process, Task &task, os::Stopped &stopped,
                   const std::optional<siginfo_t> &sent) {
    if (sent) defer_sent_trap(task, *sent);
    restore_signals(engine, process, task, stopped);
}

int after_step(Process &process, Task &task, os::Stopped &stopped, int signal) {
    if (std::exchange(task.step.steps_itself, false)) keep_end_of_step(task, stopped.pc());
    give_back_state(task);
    auto held = std::exchange(task.signals.held, std::nullopt);
    if (!held) return signal;
    if (is_end_of_step(*held)) held->si_addr = reinterpret_cast<void *>(stopped.pc().value);
    replace_signal(process, task, stopped, *held);
    return held->si_signo;
}

siginfo_t end_of_step(VirtAddr pc) {
    siginfo_t info{};
    info.si_signo = SIGTRAP;
    info.si_code = TRAP_TRACE;
    info.si_addr = reinterpret_cast<void *>(pc.value);
    return info;
}

void replace_signal(Process &process, Task &task, os::Stopped &stopped, const siginfo_t &info) {
    if (is_trap(stopped.stop())) {
        stopped.write_back(); // the handler in the page knows the task by its stack pointer
        process.space->recovery.retell(*process.space->memory, stopped.sp());
        task.signals.is_retold = true;
    }
    os::set_signal_info(task.tid, info);
}

void before_signal(Engine &engine, Process &process, Task &task, os::Stopped &stopped, int signal) {
    if (stopped.stop().kind == Kind::signal) see_interruption(process, task, stopped);
    if (!keeps_signals_out(task.step)) give_back_state(task);
    if (signal == SIGTRAP)
        restore_action(engine, process, task, stopped);
    else if (!task.signals.saved_mask)
        restore_mask(process, task);
}

BeforeResume::BeforeResume(Engine &engine, Task &task, os::Stopped &stopped) : engine_{engine}, task_{task} {
    TaskSignals &own = task.signals;
    const os::Stop &stop = stopped.stop();
    if (keeps_signals_out(task.step)) {
        Process *process = engine.process_of(task);
        if (process && own.blocks_next && stop.kind == Kind::started)
            block_at_interrupt(engine, *process, task, stopped);
        else if (process && !own.blocks_next && is_trap(stop))
            block_signals(engine, *process, task, stopped);
        if (own.traps_by_flag) show_step_flag(task, stopped);
    } else {
        own.blocks_next = own.traps_by_flag = false;
        if (!engine.mending) give_back_state(task);
    }
    if (task.restart.failed) lead_to_copy(engine, task, stopped);
}

BeforeResume::~BeforeResume() {
    if (std::exchange(task_.signals.is_retold, false))
        if (Process *process = engine_.process_of(task_)) process->space->recovery.retell(*process->space->memory, {});
    update_ledger(engine_, task_);
}

} // namespace ktrace::engine
