#include "engine/transparent/sigtrap/reset.h"

#include <algorithm>
#include <csignal>

#include "base/clock.h"
#include "base/signals.h"
#include "engine/transparent/sigtrap/disposition.h"

namespace ktrace::engine {

namespace {

constexpr std::uint64_t look_every_ns = 50'000; // of a process
constexpr std::uint64_t look_at_each_task_every_ns = 10'000'000;

/// A trap of ours at what programs do now and then, alone there.
bool is_seldom(AddressSpaceState &space, VirtAddr at) {
    const Site *site = space.site_at(at);
    return site && site->attachments.empty() && !site->internal.empty() &&
           std::all_of(site->internal.begin(), site->internal.end(),
                       [](const InternalBreakpoint *breakpoint) { return breakpoint->purpose->is_seldom; });
}

bool is_due(const Resets &resets, Task &task, std::uint64_t now) {
    if (task.first_looks != 0) {
        task.first_looks--;
        return true;
    }
    return resets.looks_always || task.blocks || now - resets.looked_ns >= look_every_ns ||
           now - task.looked_ns >= look_at_each_task_every_ns;
}

/// Does the task, which has stopped, stand at a trap? The codes of ptrace's own stops are greater.
bool stands_at_trap(Tid tid) {
    constexpr int most = SI_KERNEL;
    auto info = os::signal_info(tid);
    return info && info->si_signo == SIGTRAP && info->si_code > 0 && info->si_code <= most;
}

enum class Part : std::uint8_t {
    none,
    may_have_lost, // it is at a trap
    has_lost,      // and blocks SIGTRAP
};

/// What another task may have to do with a loss that has been seen. From its trap on SIGTRAP is pending for it, and
/// when it is not any more, the task has stopped (get_signal in kernel/signal.c): of one that runs the second look
/// tells that.
Part part_of(const Task &other) {
    for (int look = 0; look < 2; look++) {
        const auto stat = os::read_task_stat(other.pid, other.tid);
        if (!stat) return Part::none;
        const bool at_trap =
            (stat->pending & signal_bit(SIGTRAP)) != 0 || (stat->state == 't' && stands_at_trap(other.tid));
        if (at_trap && (other.blocks || blocks_everything(stat->blocked))) return Part::has_lost;
        if (at_trap) return Part::may_have_lost;
        if (stat->state != 'R') return Part::none;
    }
    return Part::none;
}

Part part_of_others(const Engine &engine, Resets &resets, const Task &task) {
    auto known = engine.tasks.find(resets.explained_by.value); // mostly it is the same one
    if (known != engine.tasks.end() && known->second.pid == task.pid && known->second.tid != task.tid &&
        part_of(known->second) == Part::has_lost)
        return Part::has_lost;
    Part most = Part::none;
    for (const auto &[tid, other] : engine.tasks) {
        if (other.pid != task.pid || other.tid == task.tid) continue;
        const Part part = part_of(other);
        if (part > most) most = part;
        if (part != Part::has_lost) continue;
        resets.explained_by = other.tid;
        break;
    }
    return most;
}

/// Some other process has the memory, and perhaps the actions too.
bool is_shared(const Process &process) { return process.borrowed || process.space.use_count() > 1; }

} // namespace

Action look_at_action(Engine &engine, Process &process, Task &task, VirtAddr at) {
    AddressSpaceState &space = *process.space;
    Resets &resets = space.resets;
    if (!space.recovery.shows_resets() || resets.tells_nothing) return Action::unknown;
    const std::uint64_t now = monotonic_ns();
    const bool looks = !is_shared(process) && (is_seldom(space, at) || is_due(resets, task, now));
    const auto caught = looks ? resets.caught.read(task.pid, task.tid) : std::nullopt;
    if (!caught) {
        resets.has_unseen = engine.has_unseen = true;
        return Action::unknown;
    }
    resets.looked_ns = task.looked_ns = now;
    if ((*caught & signal_bit(SIGTRAP)) == 0) return Action::lost;
    resets.has_unseen = false;
    return task.changes_seen == space.recovery.changes() ? Action::kept : Action::unknown;
}

void prepare_looks(Process &process) {
    const Pid pid = process.target.pid;
    process.space->resets.caught.read(pid, Tid{pid.value});
}

void look_at_actions_when_quiet(Engine &engine) {
    engine.has_unseen = false;
    for (const auto &[pid, process] : engine.processes) {
        Resets &resets = process->space->resets;
        if (!resets.has_unseen || is_shared(*process)) continue;
        const auto caught = resets.caught.read(Pid{pid}, Tid{pid});
        if (caught && (*caught & signal_bit(SIGTRAP)) != 0) resets.has_unseen = false;
    }
}

bool has_lost_action(Engine &engine, Process &process, const Task &task, os::Stopped &stopped) {
    Resets &resets = process.space->resets;
    const Part others = part_of_others(engine, resets, task);
    if (others == Part::has_lost) return false;
    resets.looks_always = true;
    if (resets.has_unseen || others != Part::none || !process.target.syscall_instruction) return false;
    auto reset = process.space->recovery.was_reset(
        {*process.space->memory, *process.target.syscall_instruction, engine.waiter, stopped});
    return reset && *reset;
}

void note_action_renewed(Process &process) { process.space->resets.has_unseen = false; }

} // namespace ktrace::engine
