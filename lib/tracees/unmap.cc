#include "tracees/unmap.h"

#include "engine/space/site.h"
#include "os/facts/blocked_syscall.h"
#include "tracees/seize.h"
#include "tracees/signal_frames.h"

namespace ktrace::tracees {

using engine::AddressSpaceState;
using engine::Process;

namespace {

/// Of those of the process that are held the one whose calls the fewest filters judge; nothing: none is held.
os::Stopped *freest_of(const trace::Trace &trace, Pid pid, HeldTasks &held) {
    os::Stopped *freest = nullptr;
    for (auto &[tid, stopped] : held) {
        auto task = trace.engine.tasks.find(tid);
        if (task != trace.engine.tasks.end() && task->second.pid == pid &&
            (!freest || is_freer(stopped.tid(), freest->tid())))
            freest = &stopped;
    }
    return freest;
}

/// A task that sleeps is free to make calls that might be the end of all who are held.
bool is_sleeper_wanted(const trace::Trace &trace, Pid pid, const os::Stopped &held) {
    auto sleeper = least_disturbed(trace, pid);
    return sleeper && is_freer(*sleeper, held.tid()) && os::interrupted(pid, *sleeper) != os::Interrupted::begins_anew;
}

/// One of the process that is held or, where all sleep, one that is woken for it; nothing: they are gone.
os::Stopped *task_of(trace::Trace &trace, Pid pid, HeldTasks &held) {
    os::Stopped *freest = freest_of(trace, pid, held);
    if (freest && !is_sleeper_wanted(trace, pid, *freest)) return freest;
    if (!freest)
        if (auto woken = stop_at_waking(trace, pid)) {
            const pid_t tid = woken->tid().value;
            return &held.emplace(tid, std::move(*woken)).first->second;
        }
    // A parent in vfork stops when those that borrow its memory have gone on: they may be held.
    while (auto tid = least_disturbed(trace, pid)) {
        auto found = trace.engine.processes.find(pid.value);
        if (found == trace.engine.processes.end()) return nullptr;
        if (auto one = bring_out(trace, *found->second, *tid, held))
            return &held.emplace(tid->value, std::move(*one)).first->second;
    }
    return nullptr;
}

/// A stopped task of each process that runs in the memory.
std::vector<std::pair<Process *, os::Stopped *>> tasks_of_all(trace::Trace &trace, const SpacePointer &space,
                                                              HeldTasks &held) {
    std::vector<Pid> members;
    for (const auto &[pid, process] : trace.engine.processes)
        if (process->space == space) members.push_back(Pid{pid});
    for (Pid pid : members) task_of(trace, pid, held); // one may end while another is waited for
    std::vector<std::pair<Process *, os::Stopped *>> tasks;
    for (Pid pid : members) {
        auto found = trace.engine.processes.find(pid.value);
        if (found == trace.engine.processes.end()) continue;
        if (os::Stopped *stopped = task_of(trace, pid, held)) tasks.emplace_back(found->second.get(), stopped);
    }
    return tasks;
}

/// Our pages go, and each process gets its action for SIGTRAP back; the rescue page stays (and does no harm) where an
/// action may still lead into it.
Status unmap_pages(trace::Trace &trace, AddressSpaceState &space,
                   const std::vector<std::pair<Process *, os::Stopped *>> &tasks) {
    auto hands = [&](const auto &task) {
        return recovery::Hands{*space.memory, *task.first->target.syscall_instruction, trace.engine.waiter,
                               *task.second};
    };
    auto unmapped = engine::unmap_arenas(space, tasks.back().first->target, trace.engine.waiter, *tasks.back().second);
    if (!unmapped) return unmapped;
    bool unused = true;
    for (const auto &task : tasks) {
        auto restored = space.recovery.restore_action(hands(task));
        unused = unused && restored && *restored;
    }
    return unused ? space.recovery.unmap(hands(tasks.back())) : Status();
}

/// Memory that has become the program's own is not unmapped.
void leave_lost(trace::Trace &trace, const Process &process) {
    const Pid pid = process.target.pid;
    const auto lost = engine::forget_lost(*process.space, pid);
    if (!lost || !*lost || became_another(process)) return; // the exec that is still to be told has unmapped all
    trace.voice.complain({Error::Kind::refused,
                          "process " + std::to_string(pid.value) +
                              " has unmapped memory of ktrace's, or has mapped its own over it: that is left as it is",
                          {},
                          {},
                          -1,
                          1});
}

} // namespace

void unmap_ours(trace::Trace &trace, const SpacePointer &space, HeldTasks &held) {
    if (space->slots.arenas().empty() && !space->recovery.mapped()) return;
    auto tasks = tasks_of_all(trace, space, held);
    if (tasks.empty()) return;
    // Of one that stands still: another may have ended meanwhile, or be in exec, and have none of the memory any more.
    leave_lost(trace, *tasks.front().first);
    const std::vector<engine::Arena> arenas = space->slots.arenas();
    const recovery::Page page = space->recovery;
    if (arenas.empty() && !page.mapped()) return;
    if (trace.engine.mending && !lead_handlers_out(trace, space, held)) {
        trace.voice.complain({Error::Kind::refused,
                              "a thread is in a handler that returns into what a killed ktrace has mapped: that stays",
                              "ktrace repair takes it out when the handler has returned",
                              {},
                              -1,
                              1});
        return;
    }
    auto unmapped = unmap_pages(trace, *space, tasks);
    if (!unmapped && unmapped.error().kind != Error::Kind::gone) trace.voice.complain(unmapped.error());
    // For the children that were born with them.
    for (const engine::Arena &arena : arenas) space->slots.add(arena);
    space->recovery = page;
}

} // namespace ktrace::tracees
