#include "trap/restore.h"

#include <csignal>

#include "base/log.h"

namespace ktrace::trap {

using os::signal_bit;
using os::Stopped;

namespace {

constexpr std::uint64_t look_at_signals_every = 4096; // stops

constexpr std::uint8_t look_at_mask_every = 16; // hits of a task that had SIGTRAP unblocked when last looked at

/// Does it run the program's handler for SIGTRAP, with SIGTRAP open?
bool is_in_handler(Task &task, Stopped &stopped) {
    if (!task.handler_sp) return false;
    if (stopped.sp() <= task.handler_sp) return true;
    task.handler_sp = {};
    return false;
}

/// A trap in a task that has SIGTRAP blocked makes the kernel unblock it there and reset the process's action for it.
/// glibc blocks all signals for a moment around clone and thread exit, daemons in their workers for ever: where
/// everything else that can be blocked is, SIGTRAP was. A task that was seen so is looked at at every hit, others now
/// and then: a look costs as much as all else that a hit does in here.
bool restores_mask(Task &task, Stopped &stopped) {
    task.mask_unseen = false;
    if (is_in_handler(task, stopped)) return false;
    constexpr std::uint64_t usual =
        signal_bit(SIGHUP) | signal_bit(SIGINT) | signal_bit(SIGQUIT) | signal_bit(SIGUSR1) | signal_bit(SIGUSR2) |
        signal_bit(SIGALRM) | signal_bit(SIGTERM) | signal_bit(SIGCHLD) | signal_bit(SIGTSTP) | signal_bit(SIGWINCH);
    // Who leaves open what faults raise leaves SIGTRAP open, too; so does ktrace while a copy is stepped (over.cc).
    constexpr std::uint64_t faults = os::synchronous_signals & ~signal_bit(SIGTRAP);
    auto mask = os::signal_mask(task.tid);
    bool blocks_all = mask && (*mask & usual) == usual && (*mask & faults) != 0;
    if (!blocks_all) task.hits_until_mask = look_at_mask_every - 1;
    if (!blocks_all || (*mask & signal_bit(SIGTRAP)) != 0) return false;
    os::set_signal_mask(task.tid, *mask | signal_bit(SIGTRAP));
    return true;
}

bool blocked_sigtrap(Task &task, Stopped &stopped) {
    if (task.hits_until_mask == 0) return restores_mask(task, stopped);
    task.hits_until_mask--;
    task.mask_unseen = true;
    return false;
}

} // namespace

void look_at_signals(const World &world, Traced &traced) {
    if (traced.looked_at_signals != 0 && world.stops - traced.looked_at_signals < look_at_signals_every) return;
    traced.looked_at_signals = world.stops;
    auto status = os::read_status(traced.process.pid.value);
    if (!status) return;
    const rescue::Page &page = traced.ground->rescue;
    const bool caught = (status->caught & signal_bit(SIGTRAP)) != 0;
    const bool handles = page.installed() ? page.ignored_before() : caught;
    traced.uses_sigtrap = handles || ((status->ignored | status->blocked) & signal_bit(SIGTRAP)) != 0;
    traced.action_lost = page.installed() && !caught;
}

void restore_mask(Task &task, Stopped &stopped) {
    if (!is_in_handler(task, stopped)) {
        restores_mask(task, stopped);
        return;
    }
    if (auto mask = os::signal_mask(task.tid)) os::set_signal_mask(task.tid, *mask | signal_bit(SIGTRAP));
    task.handler_sp = {};
}

void restore_saved_mask(Task &task, Stopped &stopped) {
    if (task.mask_unseen) restores_mask(task, stopped);
}

void follow_into_handler(Task &task) {
    auto status = os::read_status(task.tid.value);
    if (status && (status->caught & signal_bit(SIGTRAP)) != 0) task.enters_handler = os::interrupt(task.tid);
}

void open_traps(Task &task, Stopped &stopped) {
    task.enters_handler = false;
    auto mask = os::signal_mask(task.tid);
    if (!mask || (*mask & signal_bit(SIGTRAP)) == 0) return; // SA_NODEFER
    os::set_signal_mask(task.tid, *mask & ~signal_bit(SIGTRAP));
    task.handler_sp = stopped.sp();
}

void restore_signals(World &world, Traced &traced, Task &task, Stopped &stopped) {
    look_at_signals(world, traced);
    if (!blocked_sigtrap(task, stopped) && !traced.action_lost) return;
    traced.action_lost = false;
    if (!traced.ground->rescue.has_action() || !traced.process.syscall_instruction) return;
    auto renewed = traced.ground->rescue.renew_action(
        {*traced.ground->space, *traced.process.syscall_instruction, world.waiter, stopped});
    if (!renewed) log::write("trap", log::Level::debug, "action for SIGTRAP is lost: " + renewed.error().message);
}

} // namespace ktrace::trap
