#include "session/unmap.h"

#include "os/asleep.h"
#include "session/handlers.h"
#include "session/seize.h"
#include "trap/site.h"

namespace ktrace::session {

using trap::Ground;
using trap::Traced;

namespace {

/// Of those of the process that are held the one whose calls the fewest filters judge; nothing: none is held.
os::Stopped *freest_of(const State &state, Pid pid, HeldTasks &held) {
    os::Stopped *freest = nullptr;
    for (auto &[tid, stopped] : held) {
        auto task = state.world.tasks.find(tid);
        if (task != state.world.tasks.end() && task->second.pid == pid &&
            (!freest || is_freer(stopped.tid(), freest->tid())))
            freest = &stopped;
    }
    return freest;
}

/// A task that sleeps is free to make calls that might be the end of all who are held.
bool is_sleeper_wanted(const State &state, Pid pid, const os::Stopped &held) {
    auto sleeper = least_disturbed(state, pid);
    return sleeper && is_freer(*sleeper, held.tid()) && os::interrupted(pid, *sleeper) != os::Interrupted::begins_anew;
}

/// One of the process that is held or, where all sleep, one that is woken for it; nothing: they are gone.
os::Stopped *task_of(State &state, Pid pid, HeldTasks &held) {
    os::Stopped *freest = freest_of(state, pid, held);
    if (freest && !is_sleeper_wanted(state, pid, *freest)) return freest;
    if (!freest)
        if (auto woken = stop_at_waking(state, pid)) {
            const pid_t tid = woken->tid().value;
            return &held.emplace(tid, std::move(*woken)).first->second;
        }
    // A parent in vfork stops when those that borrow its memory have gone on: they may be held.
    while (auto tid = least_disturbed(state, pid)) {
        auto found = state.world.processes.find(pid.value);
        if (found == state.world.processes.end()) return nullptr;
        if (auto one = bring_out(state, *found->second, *tid, held))
            return &held.emplace(tid->value, std::move(*one)).first->second;
    }
    return nullptr;
}

/// A stopped task of each process that runs in the memory.
std::vector<std::pair<Traced *, os::Stopped *>> tasks_of_all(State &state, const GroundPointer &ground,
                                                             HeldTasks &held) {
    std::vector<Pid> members;
    for (const auto &[pid, traced] : state.world.processes)
        if (traced->ground == ground) members.push_back(Pid{pid});
    for (Pid pid : members) task_of(state, pid, held); // one may end while another is waited for
    std::vector<std::pair<Traced *, os::Stopped *>> tasks;
    for (Pid pid : members) {
        auto found = state.world.processes.find(pid.value);
        if (found == state.world.processes.end()) continue;
        if (os::Stopped *stopped = task_of(state, pid, held)) tasks.emplace_back(found->second.get(), stopped);
    }
    return tasks;
}

/// Our pages go, and each process gets its action for SIGTRAP back; the rescue page stays (and does no harm) where an
/// action may still lead into it.
Status unmap_pages(State &state, Ground &ground, const std::vector<std::pair<Traced *, os::Stopped *>> &tasks) {
    auto hands = [&](const auto &task) {
        return rescue::Hands{*ground.space, *task.first->process.syscall_instruction, state.world.waiter, *task.second};
    };
    auto unmapped = trap::unmap_arenas(ground, tasks.back().first->process, state.world.waiter, *tasks.back().second);
    if (!unmapped) return unmapped;
    bool unused = true;
    for (const auto &task : tasks) {
        auto restored = ground.rescue.restore_action(hands(task));
        unused = unused && restored && *restored;
    }
    return unused ? ground.rescue.unmap(hands(tasks.back())) : Status();
}

/// Memory that has become the program's own is not unmapped.
void leave_lost(State &state, const Traced &traced) {
    const Pid pid = traced.process.pid;
    const auto lost = trap::forget_lost(*traced.ground, pid);
    if (!lost || !*lost || became_another(traced)) return; // the exec that is still to be told has unmapped all
    state.voice.complain({Error::Kind::refused,
                          "process " + std::to_string(pid.value) +
                              " has unmapped memory of ktrace's, or has mapped its own over it: that is left as it is",
                          {},
                          {},
                          -1,
                          1});
}

} // namespace

void unmap_ours(State &state, const GroundPointer &ground, HeldTasks &held) {
    if (ground->slots.arenas().empty() && !ground->rescue.mapped()) return;
    auto tasks = tasks_of_all(state, ground, held);
    if (tasks.empty()) return;
    // Of one that stands still: another may have ended meanwhile, or be in exec, and have none of the memory any more.
    leave_lost(state, *tasks.front().first);
    const std::vector<trap::Arena> arenas = ground->slots.arenas();
    const rescue::Page page = ground->rescue;
    if (arenas.empty() && !page.mapped()) return;
    if (state.world.mending && !lead_handlers_out(state, ground, held)) {
        state.voice.complain({Error::Kind::refused,
                              "a thread is in a handler that returns into what a killed ktrace has mapped: that stays",
                              "ktrace repair takes it out when the handler has returned",
                              {},
                              -1,
                              1});
        return;
    }
    auto unmapped = unmap_pages(state, *ground, tasks);
    if (!unmapped && unmapped.error().kind != Error::Kind::gone) state.voice.complain(unmapped.error());
    // For the children that were born with them.
    for (const trap::Arena &arena : arenas) ground->slots.add(arena);
    ground->rescue = page;
}

} // namespace ktrace::session
