#include "engine/transparent/sigtrap/disposition.h"

#include <csignal>
#include <utility>

#include <sys/syscall.h>

#include "base/log.h"
#include "base/signals.h"
#include "engine/transparent/sigtrap/reset.h"

namespace ktrace::engine {

using os::Stopped;

namespace {

constexpr std::uint64_t look_at_signals_every = 4096; // stops

constexpr std::uint8_t longest_watched = 16; // stops: the signal may be none, or a handler come in between

constexpr std::uint8_t look_at_mask_every = 16; // hits of a task that had SIGTRAP unblocked when last looked at

/// Does it run the program's handler for SIGTRAP, with SIGTRAP open?
bool is_in_handler(Task &task, Stopped &stopped) {
    if (!task.handler_sp) return false;
    if (stopped.sp() <= task.handler_sp) return true;
    task.handler_sp = {};
    return false;
}

bool catches_sigtrap(const Task &task) {
    auto status = os::read_status(task.tid.value);
    return status && (status->caught & signal_bit(SIGTRAP)) != 0;
}

/// Has a trap taken SIGTRAP out of the task's mask, which is this one now? A handler blocks more than what was blocked
/// before. Where less is, the task is in a handler that came just before the call that sets its mask so, or has left
/// the one that it was seized in, or has set its mask out of our sight. It may also have been seized in its own handler
/// for SIGTRAP, and be out of it: then no trap has reset the action.
bool was_blocked(const Process &process, Task &task, std::uint64_t mask) {
    if (blocks_everything(mask)) return true;
    if (!task.blocks || task.blocks->how == Blocks::How::proved) return false;
    const bool is_less = (task.blocks->mask & ~(mask | signal_bit(SIGTRAP))) != 0;
    if (is_less && task.blocks->how == Blocks::How::in_sight) return false;
    if (is_less || (!process.space->recovery.installed() && catches_sigtrap(task))) task.blocks.reset();
    return task.blocks.has_value();
}

/// What it blocks when the mask is this one.
std::optional<Blocks> blocks_of(std::uint64_t mask) {
    return (mask & signal_bit(SIGTRAP)) != 0 ? std::optional(Blocks{.mask = mask, .how = Blocks::How::in_sight})
                                             : std::nullopt;
}

void take_mask_call(Task &task) {
    task.blocks = std::exchange(task.mask_call, std::nullopt)->after;
    task.hits_until_mask = 0;
}

/// At a trap: has the call been made that was to set the task's mask? Not where the trap's own instruction has been
/// stepped, nor where it is still to be run (retry.h), nor in a handler that came before.
void settle_mask_call(Task &task, Stopped &stopped) {
    if (!task.mask_call) return;
    if (task.over == Over::stepping && task.site->at == task.mask_call->at) return;
    if (task.retry_at == task.mask_call->at && task.retry_at == stopped.rest() && task.retry_sp == stopped.sp()) return;
    if (task.mask_call->not_below && stopped.sp() < task.mask_call->not_below) return;
    take_mask_call(task);
}

/// The same of one that has come by no trap since, before it enters a signal's handler.
void settle_mask_call_before_handler(Task &task, Stopped &stopped) {
    if (!task.mask_call || task.mask_call->not_below) return;
    const std::uint64_t mask = os::signal_mask(task.tid).value_or(0);
    const bool is_made =
        task.mask_call->after ? mask == task.mask_call->after->mask : (mask & signal_bit(SIGTRAP)) == 0;
    task.mask_call->not_below = is_made ? VirtAddr{} : stopped.sp();
    if (is_made) take_mask_call(task);
}

/// The task's mask when its call of pthread_sigmask(how, set) has returned, if SIGTRAP may be in it, else 0.
std::uint64_t mask_after(const Task &task, int how, std::uint64_t set) {
    set &= ~(signal_bit(SIGKILL) | signal_bit(SIGSTOP)); // as the kernel does
    if (how == SIG_SETMASK) return set;
    if (!task.blocks && (how != SIG_BLOCK || (set & signal_bit(SIGTRAP)) == 0)) return 0;
    const std::uint64_t mask = os::signal_mask(task.tid).value_or(0);
    return how == SIG_BLOCK ? mask | set : mask & ~set;
}

/// A trap in a task that has SIGTRAP blocked makes the kernel unblock it there and reset the process's action for it.
/// A task that was seen so is looked at at every hit, others now and then: a look costs as much as all else that a hit
/// does in here.
bool restores_mask(const Process &process, Task &task, Stopped &stopped) {
    task.mask_unseen = false;
    if (is_in_handler(task, stopped) || task.saved_mask) return false; // SIGTRAP is open
    auto mask = os::signal_mask(task.tid);
    const bool blocks = mask && ((*mask & signal_bit(SIGTRAP)) != 0 || was_blocked(process, task, *mask));
    if (!blocks && !task.blocks) task.hits_until_mask = look_at_mask_every - 1;
    if (!blocks || (*mask & signal_bit(SIGTRAP)) != 0) return false;
    os::set_signal_mask(task.tid, *mask | signal_bit(SIGTRAP));
    return true;
}

void renew_action(Engine &engine, Process &process, Stopped &stopped) {
    process.action_lost = false;
    if (!process.space->recovery.has_action() || !process.target.syscall_instruction) return;
    auto renewed = process.space->recovery.renew_action(
        {*process.space->memory, *process.target.syscall_instruction, engine.waiter, stopped});
    process.space->resets.tells_nothing = !renewed && renewed.error().kind != Error::Kind::gone;
    if (!renewed) log::write("engine", log::Level::debug, "action for SIGTRAP is lost: " + renewed.error().message);
}

/// The trap has opened SIGTRAP to a task that nobody knew to block it.
bool block_again(Process &process, Task &task) {
    const auto mask = os::signal_mask(task.tid);
    if (!mask) return false;
    Resets &resets = process.space->resets;
    resets.is_news = resets.is_news || !resets.was_told;
    resets.was_told = true;
    task.blocks = {.mask = *mask | signal_bit(SIGTRAP), .how = Blocks::How::proved};
    os::set_signal_mask(task.tid, task.blocks->mask);
    return true;
}

bool blocked_sigtrap(const Process &process, Task &task, Stopped &stopped) {
    if (task.hits_until_mask == 0) return restores_mask(process, task, stopped);
    task.hits_until_mask--;
    task.mask_unseen = true;
    return false;
}

} // namespace

/// Where everything that can be blocked is, SIGTRAP was: glibc blocks all signals for a moment around clone and thread
/// exit, daemons in their workers for ever. Who leaves open what faults raise leaves SIGTRAP open, too.
bool blocks_everything(std::uint64_t mask) {
    constexpr std::uint64_t usual =
        signal_bit(SIGHUP) | signal_bit(SIGINT) | signal_bit(SIGQUIT) | signal_bit(SIGUSR1) | signal_bit(SIGUSR2) |
        signal_bit(SIGALRM) | signal_bit(SIGTERM) | signal_bit(SIGCHLD) | signal_bit(SIGTSTP) | signal_bit(SIGWINCH);
    constexpr std::uint64_t faults = synchronous_signals & ~signal_bit(SIGTRAP);
    return (mask & usual) == usual && (mask & faults) != 0;
}

bool blocks_traps_alone(std::uint64_t mask) { return (mask & signal_bit(SIGTRAP)) != 0 && !blocks_everything(mask); }

void look_at_signals(const Engine &engine, Process &process) {
    if (process.looked_at_signals != 0 && engine.stops - process.looked_at_signals < look_at_signals_every) return;
    process.looked_at_signals = engine.stops;
    auto status = os::read_status(process.target.pid.value);
    if (!status) return;
    const recovery::Page &page = process.space->recovery;
    const bool caught = (status->caught & signal_bit(SIGTRAP)) != 0;
    const bool handles = page.installed() ? page.ignored_before() : caught;
    process.uses_sigtrap = handles || ((status->ignored | status->blocked) & signal_bit(SIGTRAP)) != 0;
}

namespace {

void watch_action(Engine & /*engine*/, Process & /*process*/, Task &task, Site & /*site*/, Stopped & /*stopped*/) {
    task.watches_action = longest_watched;
}

} // namespace

const InternalPurpose sets_action{.at_hit = watch_action, .is_seldom = true};

void see_action(Process &process, Task &task, Stopped &stopped) {
    task.watches_action--;
    if (auto entry = os::syscall_entry(task.tid)) {
        const auto *arguments = entry->arguments;
        if (entry->number != SYS_rt_sigaction) return;
        if (arguments[0] == SIGTRAP && arguments[1] != 0)
            task.new_action = process.space->memory->read_value<ktrace_recovery_action>(VirtAddr{arguments[1]});
        else
            task.watches_action = 0;
        return;
    }
    auto set = std::exchange(task.new_action, std::nullopt);
    if (!set || arch::Host::syscall_result(stopped.registers()) != 0 || process.borrowed)
        return; // the child's own action
    task.watches_action = 0;
    process.space->recovery.note_action(*process.space->memory, *set);
    process.looked_at_signals = 0;
    process.action_lost = true; // ours is to be put in its place, or a trap in another task may have reset it already
}

namespace {

void see_mask(Engine & /*engine*/, Process &process, Task &task, Site & /*site*/, Stopped &stopped) {
    target::AddressSpace &space = *process.space->memory;
    const arch::Host::Registers &registers = stopped.registers();
    const auto how = arch::Host::argument(registers, space, 0), at = arch::Host::argument(registers, space, 1);
    if (!how || !at || *at == 0 || is_in_handler(task, stopped)) return; // it only asks, or its mask will be given back
    if (task.mask_unseen && restores_mask(process, task, stopped)) process.action_lost = true;
    const auto set = space.read_value<std::uint64_t>(VirtAddr{*at});
    if (!set) return; // the call fails
    const auto after = blocks_of(mask_after(task, static_cast<std::int32_t>(*how), *set));
    if (after || task.blocks)
        task.mask_call = {.at = arch::Host::trap_address(stopped.pc()), .after = after, .not_below = {}};
}

} // namespace

const InternalPurpose sets_mask{.at_hit = see_mask};

void restore_mask(const Process &process, Task &task, Stopped &stopped) {
    if (!is_in_handler(task, stopped)) {
        if (!task.mask_unseen) task.blocks.reset(); // there was no trap since, or it has been seen to
        restores_mask(process, task, stopped);
        return;
    }
    if (auto mask = os::signal_mask(task.tid)) os::set_signal_mask(task.tid, *mask | signal_bit(SIGTRAP));
    task.handler_sp = {};
}

void restore_saved_mask(const Process &process, Task &task, Stopped &stopped) {
    if (task.mask_unseen) restores_mask(process, task, stopped);
    settle_mask_call_before_handler(task, stopped);
}

void follow_into_handler(Task &task) {
    if (catches_sigtrap(task)) task.enters_handler = os::interrupt(task.tid);
}

void open_traps(Task &task, Stopped &stopped) {
    task.enters_handler = false;
    auto mask = os::signal_mask(task.tid);
    if (!mask || (*mask & signal_bit(SIGTRAP)) == 0) return; // SA_NODEFER
    os::set_signal_mask(task.tid, *mask & ~signal_bit(SIGTRAP));
    task.handler_sp = stopped.sp();
}

bool waits_for_handler(Task &task, Stopped &stopped) {
    if (!is_in_handler(task, stopped)) return false;
    const auto info = os::signal_info(task.tid);
    const auto mask = os::signal_mask(task.tid);
    if (!info || info->si_code > 0 || !mask) return false;
    task.handler_sp = {};
    task.blocks = {.mask = *mask | signal_bit(SIGTRAP), .how = Blocks::How::at_seize}; // until there is less in it
    task.hits_until_mask = 0;
    return os::set_signal_mask(task.tid, task.blocks->mask);
}

void inherit_mask(Task &child, const Task &maker) {
    if (child.blocks || child.changes_seen != 0) return; // it was faster than the news of it
    const bool has_set = maker.mask_call && !maker.mask_call->not_below;
    child.blocks = has_set ? maker.mask_call->after : maker.blocks; // glibc blocks all signals meanwhile
    child.hits_until_mask = 0;
    child.changes_seen = maker.changes_seen;
}

bool is_forced(const Task &task) { return task.blocks && !catches_sigtrap(task); }

void restore_at_birth(Engine &engine, Process &child, Stopped &stopped) {
    const auto stat = os::read_task_stat(child.target.pid, stopped.tid());
    const bool is_lost = stat && (stat->caught & signal_bit(SIGTRAP)) == 0;
    if (is_lost && child.space->recovery.shows_resets()) renew_action(engine, child, stopped);
}

void note_mask(Task &task) {
    auto status = os::read_status(task.tid.value);
    if (status && (status->blocked & signal_bit(SIGTRAP)) != 0)
        task.blocks = {.mask = status->blocked, .how = Blocks::How::at_seize};
}

void restore_signals(Engine &engine, Process &process, Task &task, Stopped &stopped) {
    settle_mask_call(task, stopped);
    bool is_lost = std::exchange(process.action_lost, false);
    const bool is_opened = is_in_handler(task, stopped) || task.saved_mask;
    const Action seen = is_lost || is_opened
                            ? Action::unknown
                            : look_at_action(engine, process, task, arch::Host::trap_address(stopped.pc()));
    look_at_signals(engine, process);
    if (seen == Action::kept) {
        task.blocks.reset();
        task.mask_unseen = false;
    } else {
        if (seen == Action::lost) task.hits_until_mask = 0;
        bool restored = blocked_sigtrap(process, task, stopped);
        if (!restored && seen == Action::lost && has_lost_action(engine, process, task, stopped))
            restored = block_again(process, task);
        is_lost = is_lost || restored || seen == Action::lost;
    }
    if (is_lost) {
        renew_action(engine, process, stopped);
        note_action_renewed(process);
    }
    task.changes_seen = process.space->recovery.changes();
}

} // namespace ktrace::engine
