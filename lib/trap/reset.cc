#include "trap/reset.h"

#include <csignal>

#include "base/clock.h"
#include "trap/restore.h"

namespace ktrace::trap {

using os::signal_bit;

namespace {

constexpr std::uint64_t look_every_ns = 200'000; // of a process
constexpr std::uint64_t look_at_each_task_every_ns = 10'000'000;
constexpr std::uint64_t until_stopped_ns = 50'000; // more than a task needs from its trap to its stop

bool is_due(const Resets &resets, Task &task, std::uint64_t now) {
    if (task.first_looks != 0) {
        task.first_looks--;
        return true;
    }
    return resets.looks_always || task.blocks || now - resets.looked_ns >= look_every_ns ||
           now - task.looked_ns >= look_at_each_task_every_ns;
}

void note_unseen(Resets &resets, Tid tid) {
    resets.unseen_of_more = resets.unseen_of_more || (resets.unseen_of.value != 0 && resets.unseen_of != tid);
    resets.unseen_of = tid;
}

bool blocks_everything_at_stop(Tid tid) {
    auto mask = os::signal_mask(tid);
    return mask && blocks_everything(*mask);
}

/// Does the task, which has stopped, stand at a trap? The codes of ptrace's own stops are greater.
bool stands_at_trap(Tid tid) {
    constexpr int most = SI_KERNEL;
    auto info = os::signal_info(tid);
    return info && info->si_signo == SIGTRAP && info->si_code > 0 && info->si_code <= most;
}

/// What other tasks of the process may have to do with the loss.
struct Others {
    bool may_have_lost_it = false; // one stands at a trap, perhaps
    bool are_known_to = false;     // one that is known to block SIGTRAP
    bool run = false;              // one may be on its way from a trap to its stop
};

Others look_at_others(const World &world, const Task &task) {
    Others seen;
    for (const auto &[tid, other] : world.tasks) {
        if (other.pid != task.pid || other.tid == task.tid) continue;
        auto stat = os::read_task_stat(other.pid, other.tid);
        const char state = stat ? stat->state : 'X';
        seen.run = seen.run || state == 'R';
        if (state == 't' ? !stands_at_trap(other.tid) : state != 'R' || !other.blocks) continue;
        seen.may_have_lost_it = true;
        seen.are_known_to = seen.are_known_to || other.blocks || blocks_everything_at_stop(other.tid);
    }
    return seen;
}

/// The same when those that were on their way have stopped.
Others wait_for_others(const World &world, const Task &task) {
    Others seen = look_at_others(world, task);
    if (!seen.run || seen.may_have_lost_it) return seen;
    const std::uint64_t start = monotonic_ns();
    while (monotonic_ns() - start < until_stopped_ns) {
    }
    return look_at_others(world, task);
}

} // namespace

Action look_at_action(Traced &traced, Task &task) {
    Resets &resets = traced.resets;
    const rescue::Page &page = traced.ground->rescue;
    // A child in its parent's memory has an action of its own.
    if (!page.shows_resets() || resets.is_final || traced.borrowed) return Action::unknown;
    const std::uint64_t now = monotonic_ns();
    const auto caught = is_due(resets, task, now) ? resets.caught.read(task.pid, task.tid) : std::nullopt;
    if (!caught) {
        note_unseen(resets, task.tid);
        return Action::unknown;
    }
    resets.looked_ns = task.looked_ns = now;
    if ((*caught & signal_bit(SIGTRAP)) == 0) return Action::lost;
    return task.changes_seen == page.changes() ? Action::kept : Action::unknown;
}

bool has_lost_action(World &world, Traced &traced, const Task &task, os::Stopped &stopped) {
    Resets &resets = traced.resets;
    if (!traced.process.syscall_instruction) return false;
    const bool unseen_of_others =
        resets.unseen_of_more || (resets.unseen_of.value != 0 && resets.unseen_of != task.tid);
    const Others others = wait_for_others(world, task);
    if (others.are_known_to) return false;
    auto reset = traced.ground->rescue.was_reset(
        {*traced.ground->space, *traced.process.syscall_instruction, world.waiter, stopped});
    if (!reset || !*reset) return false;
    resets.is_news = resets.is_news || !resets.looks_always;
    resets.looks_always = true;
    return !unseen_of_others && !others.may_have_lost_it;
}

void note_action_kept(Traced &traced) {
    traced.resets.unseen_of = {};
    traced.resets.unseen_of_more = false;
}

} // namespace ktrace::trap
