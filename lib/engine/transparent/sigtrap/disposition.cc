#include "engine/transparent/sigtrap/disposition.h"

#include <csignal>
#include <utility>

#include <sys/syscall.h>

#include "base/log.h"
#include "base/signals.h"
#include "engine/transparent/signals/deferred_signals.h"

namespace ktrace::engine {

using os::Stopped;

namespace {

constexpr std::uint64_t sigtrap = signal_bit(SIGTRAP);

constexpr std::uint64_t look_at_signals_every = 4096; // stops

constexpr std::uint8_t longest_watched = 16; // stops: the signal may be none, or a handler come in between

constexpr std::uint8_t look_every = 16; // traps of a task that had SIGTRAP open when last looked at

bool catches_sigtrap(const Task &task) {
    const auto stat = os::read_task_stat(task.pid, task.tid);
    return stat && (stat->caught & sigtrap) != 0;
}

/// Where everything that can be blocked is, or all but what faults raise, SIGTRAP was, too. A mask that leaves open
/// what faults raise leaves SIGTRAP open.
bool blocks_everything(std::uint64_t mask) {
    constexpr std::uint64_t usual =
        signal_bit(SIGHUP) | signal_bit(SIGINT) | signal_bit(SIGQUIT) | signal_bit(SIGUSR1) | signal_bit(SIGUSR2) |
        signal_bit(SIGALRM) | signal_bit(SIGTERM) | signal_bit(SIGCHLD) | signal_bit(SIGTSTP) | signal_bit(SIGWINCH);
    constexpr std::uint64_t faults = synchronous_signals & ~sigtrap;
    return (mask & usual) == usual && (mask & faults) != 0;
}

/// Has a trap taken SIGTRAP out of the task's mask, which is this one now? A handler blocks more than what was blocked
/// before. Where less is, the task has set its mask since, or has left the handler that it was seized in. It may also
/// have been seized in its own handler for SIGTRAP, and be out of it: then no trap has reset the action.
bool was_blocked(const Process &process, Task &task, std::uint64_t mask) {
    if (blocks_everything(mask)) return true;
    auto &blocked = task.sigtrap.blocked;
    if (!blocked) return false;
    const bool is_less = (*blocked & ~(mask | sigtrap)) != 0;
    if (is_less || (!process.space->recovery.installed() && catches_sigtrap(task))) blocked.reset();
    return blocked.has_value();
}

/// True: SIGTRAP was blocked to the task, and is so again.
bool block_again(const Process &process, Task &task) {
    task.sigtrap.is_unseen = false;
    const auto mask = os::signal_mask(task.tid);
    if (!mask || (*mask & sigtrap) != 0 || !was_blocked(process, task, *mask)) return false;
    return os::set_signal_mask(task.tid, *mask | sigtrap);
}

recovery::Hands hands_of(Engine &engine, Process &process, Stopped &stopped) {
    return {*process.space->memory, *process.target.syscall_instruction, engine.waiter, stopped};
}

void renew_action(Engine &engine, Process &process, Stopped &stopped) {
    recovery::Page &page = process.space->recovery;
    process.action_lost = false;
    if (!page.has_action() || !process.target.syscall_instruction) return;
    auto renewed = page.renew_action(hands_of(engine, process, stopped));
    if (!renewed) KT_LOG_DEBUG("action for SIGTRAP is lost: " + renewed.error().message);
}

/// The process catches SIGTRAP no more. Is that the kernel's doing? If it is not, the program has set another action
/// out of sight.
bool was_reset(Engine &engine, Process &process, Stopped &stopped) {
    if (!process.target.syscall_instruction) return false;
    auto reset = process.space->recovery.was_reset(hands_of(engine, process, stopped));
    return reset && *reset;
}

/// Another process has the memory, and perhaps the actions, too.
bool is_shared(const Process &process) { return process.borrowed || process.space.use_count() > 1; }

/// True: the process's action was lost.
bool look(Engine &engine, Process &process, Task &task, Stopped &stopped) {
    const recovery::Page &page = process.space->recovery;
    TaskSigtrap &own = task.sigtrap;
    const bool shows = page.shows_resets() && !is_shared(process);
    const bool is_there = shows && catches_sigtrap(task);
    // There still, and not put back since the task's last trap: SIGTRAP was open to it.
    if (is_there && page.installed() && own.changes_seen == page.changes()) own.blocked.reset();
    if (block_again(process, task)) return true;
    if (!own.blocked) own.hits_until_look = look_every - 1;
    return shows && !is_there && was_reset(engine, process, stopped);
}

} // namespace

void look_at_signals(const Engine &engine, Process &process) {
    if (process.looked_at_signals != 0 && engine.stops - process.looked_at_signals < look_at_signals_every) return;
    process.looked_at_signals = engine.stops;
    auto status = os::read_status(process.target.pid.value);
    if (!status) return;
    const recovery::Page &page = process.space->recovery;
    const bool handles = page.installed() ? page.ignored_before() : (status->caught & sigtrap) != 0;
    process.uses_sigtrap = handles || ((status->ignored | status->blocked) & sigtrap) != 0;
}

namespace {

/// It may ask for the action as well: that is there again, should a trap have reset it.
void watch_action(Engine &engine, Process &process, Task &task, Site & /*site*/, Stopped &stopped) {
    restore_action(engine, process, task, stopped);
    task.sigtrap.watches_action = longest_watched;
}

} // namespace

const InternalPurpose sets_action{.at_hit = watch_action};

void see_action(Process &process, Task &task, Stopped &stopped) {
    TaskSigtrap &own = task.sigtrap;
    own.watches_action--;
    if (auto entry = os::syscall_entry(task.tid)) {
        const auto *arguments = entry->arguments;
        if (entry->number != SYS_rt_sigaction) return;
        if (arguments[0] == SIGTRAP && arguments[1] != 0)
            own.new_action = process.space->memory->read_value<ktrace_recovery_action>(VirtAddr{arguments[1]});
        else
            own.watches_action = 0;
        return;
    }
    auto set = std::exchange(own.new_action, std::nullopt);
    if (!set || arch::Host::syscall_result(stopped.registers()) != 0 || process.borrowed)
        return; // the child's own action
    own.watches_action = 0;
    process.space->recovery.note_action(*process.space->memory, *set);
    process.looked_at_signals = 0;
    process.action_lost = true; // ours is to be put in its place, or a trap in another task may have reset it already
}

void note_mask(Task &task) {
    auto status = os::read_status(task.tid.value);
    if (status && (status->blocked & sigtrap) != 0) task.sigtrap.blocked = status->blocked;
}

void inherit_mask(Task &child, const Task &maker) {
    if (child.sigtrap.blocked || child.sigtrap.changes_seen != 0) return; // it was faster than the news of it
    child.sigtrap.blocked = maker.sigtrap.blocked; // its mask itself is of no use: glibc blocks all signals meanwhile
    child.sigtrap.hits_until_look = 0;
    child.sigtrap.changes_seen = maker.sigtrap.changes_seen;
}

void guess_mask(const Engine &engine, Task &child, Pid maker) {
    for (const auto &[tid, task] : engine.tasks)
        if (task.pid == maker && task.sigtrap.blocked) return inherit_mask(child, task);
}

bool is_forced(const Process &process, const Task &task) {
    return (task.sigtrap.blocked || process.space->recovery.has_action()) && !catches_sigtrap(task);
}

void restore_at_birth(Engine &engine, Process &child, Stopped &stopped) {
    const auto stat = os::read_task_stat(child.target.pid, stopped.tid());
    const bool is_lost = stat && (stat->caught & sigtrap) == 0;
    if (is_lost && child.space->recovery.shows_resets()) renew_action(engine, child, stopped);
}

void restore_signals(Engine &engine, Process &process, Task &task, Stopped &stopped) {
    TaskSigtrap &own = task.sigtrap;
    bool is_lost = std::exchange(process.action_lost, false);
    if (task.signals.saved_mask) { // which it gets back behind the step, whatever the step's end has changed
        is_lost = is_lost || (*task.signals.saved_mask & sigtrap) != 0;
    } else if (own.hits_until_look != 0) {
        own.hits_until_look--;
        own.is_unseen = true;
    } else {
        is_lost = look(engine, process, task, stopped) || is_lost;
    }
    if (is_lost) {
        give_back_state(task); // the call's way back would keep the step's mask, should ktrace be killed in it
        renew_action(engine, process, stopped);
    }
    own.changes_seen = process.space->recovery.changes();
}

void restore_mask(Process &process, Task &task) {
    if (task.sigtrap.is_unseen && block_again(process, task)) process.action_lost = true; // the next trap sees to it
}

void restore_action(Engine &engine, Process &process, Task &task, Stopped &stopped) {
    if (!process.space->recovery.has_action() || is_shared(process)) return;
    // The program has set its action, and ktrace's is not in its place yet. To ask for it would reset it, should the
    // program ignore SIGTRAP: the call that asks ends by one.
    const bool is_lost = process.action_lost;
    if (!is_lost && catches_sigtrap(task)) return;
    const auto info = os::signal_info(task.tid);
    if (!info || !(is_lost || was_reset(engine, process, stopped))) return;
    renew_action(engine, process, stopped);
    os::set_signal_info(task.tid, *info); // the call has ended by a SIGTRAP of its own, in whose place it is delivered
}

} // namespace ktrace::engine
