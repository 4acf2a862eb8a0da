#include "engine/transparent/signals/deferred_signals.h"

#include <csignal>
#include <utility>

#include <unistd.h>

#include "base/signals.h"
#include "engine/transparent/points.h"

namespace ktrace::engine {

using arch::Host;

void update_ledger(Engine &engine, Task &task) {
    TaskSignals &own = task.signals;
    const TaskSignals::InLedger now{own.saved_mask, own.held ? own.held->si_signo : 0};
    if (!engine.ledger || now == own.in_ledger) return;
    own.in_ledger = now;
    if (now == TaskSignals::InLedger{}) {
        engine.ledger->forget(task.tid);
        return;
    }
    recovery::SavedState saved{};
    saved.pid = task.pid;
    saved.tid = task.tid;
    saved.has_mask = own.saved_mask.has_value();
    saved.mask = own.saved_mask.value_or(0);
    saved.has_signal = own.held.has_value();
    saved.held = own.held.value_or(siginfo_t{});
    engine.ledger->save(saved);
}

void block_signals(Engine &engine, Process &process, Task &task, os::Stopped &stopped) {
    TaskSignals &own = task.signals;
    const auto mask = own.saved_mask ? std::nullopt : os::signal_mask(task.tid);
    if (!mask || ktrace_recovery_blocked(*mask) == *mask) return;
    own.saved_mask = mask;
    update_ledger(engine, task);
    if (!own.own_tid) own.own_tid = os::innermost_id(task.tid);
    process.space->recovery.keep_mask(*process.space->memory, *own.own_tid, *mask);
    stopped.write_back(); // the handler takes a task that stands at a trap for one that has its own mask
    os::set_signal_mask(task.tid, ktrace_recovery_blocked(*mask));
}

void block_at_interrupt(Engine &engine, Process &process, Task &task, os::Stopped &stopped) {
    TaskSignals &own = task.signals;
    own.blocks_next = false;
    if (task.step.over != Over::stepping || !own.held || own.saved_mask) return;
    // A handler of the program's own would be called for it, and a mask with SIGTRAP would make it the end.
    const bool is_dropped =
        process.space->recovery.installed() && (os::signal_mask(task.tid).value_or(~0ULL) & signal_bit(SIGTRAP)) == 0;
    if (is_dropped && !task.step.steps_itself) show_step_flag(task, stopped);
    block_signals(engine, process, task, stopped);
}

void show_step_flag(Task &task, os::Stopped &stopped) {
    Host::step_itself(stopped.change_registers(), true);
    task.signals.traps_by_flag = Host::steps_itself(stopped.registers());
}

void hide_step_flag(os::Stopped &stopped) { Host::step_itself(stopped.change_registers(), false); }

void give_back_state(Task &task) {
    if (auto mask = std::exchange(task.signals.saved_mask, std::nullopt)) os::set_signal_mask(task.tid, *mask);
}

void send_trap_again(Task &task, const siginfo_t &info) {
    if (os::send_again(task.pid, task.tid, info) == os::SentAgain::under_our_name) task.signals.sent_again = info;
}

void defer_sent_trap(Task &task, const siginfo_t &info) {
    if (task.step.over == Over::stepping && !task.signals.held)
        task.signals.held = info;
    else
        send_trap_again(task, info);
}

bool is_end_of_step(const siginfo_t &info) { return info.si_signo == SIGTRAP && info.si_code == TRAP_TRACE; }

void keep_end_of_step(Task &task, VirtAddr pc) {
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

void see_sent_again(Task &task) {
    if (!task.signals.sent_again) return;
    const auto info = os::signal_info(task.tid);
    if (!info || info->si_code != SI_TKILL || (info->si_pid != ::getpid() && info->si_pid != 0)) return;
    os::set_signal_info(task.tid, *std::exchange(task.signals.sent_again, std::nullopt));
}

void give_back_at_end(Task &task) {
    TaskSignals &own = task.signals;
    if (auto dispatch = std::exchange(own.saved_dispatch, std::nullopt)) os::set_dispatch(task.tid, *dispatch);
    if (own.saved_mask && os::signal_mask(task.tid) == ktrace_recovery_blocked(*own.saved_mask)) give_back_state(task);
}

} // namespace ktrace::engine
