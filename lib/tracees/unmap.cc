#include "tracees/unmap.h"

#include "base/clock.h"
#include "engine/space/site.h"
#include "trace/run_until.h"
#include "tracees/choice.h"
#include "tracees/seize.h"
#include "tracees/signal_frames.h"

namespace ktrace::tracees {

using engine::AddressSpaceState;
using engine::Process;

namespace {

/// The held task of the process whose calls the fewest filters judge; nothing: none is held.
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

/// True where a sleeping task has fewer filters, and a call by the held one might end the process.
bool is_sleeper_wanted(const trace::Trace &trace, Pid pid, const os::Stopped &held) {
    auto sleeper = best_task_but(trace, pid, {});
    return sleeper && is_freer(sleeper->tid, held.tid()) && !sleeper->is_last_choice();
}

/// Of the tasks that have ended, and were not asked to stop for that: with the last one's their process is gone.
void serve_ends(trace::Trace &trace, Pid pid) {
    std::vector<Tid> ended;
    for (const auto &[id, task] : trace.engine.tasks)
        if (task.pid == pid && os::has_ended(task.tid)) ended.push_back(task.tid);
    for (Tid tid : ended) trace::serve_next_of(trace, tid, trace::Wait::no);
}

/// A held task of the process or, where all sleep, one that is stopped for it; nothing: they are gone, or none can be
/// stopped.
os::Stopped *task_of(trace::Trace &trace, Pid pid, HeldTasks &held) {
    os::Stopped *freest = freest_of(trace, pid, held);
    if (freest && !is_sleeper_wanted(trace, pid, *freest)) return freest;
    const std::uint64_t since_ns = monotonic_ns();
    std::unordered_set<pid_t> asked;
    // A parent in vfork stops when those that borrow its memory have gone on: they may be held.
    while (auto tid = task_to_ask(trace, pid, asked, since_ns)) {
        auto found = trace.engine.processes.find(pid.value);
        if (found == trace.engine.processes.end()) return nullptr;
        auto one = move_out_of_slot(trace, *found->second, *tid, held);
        if (one.stopped) return &held.emplace(tid->value, std::move(*one.stopped)).first->second;
        if (one.is_stuck) asked.insert(tid->value);
        if (!asked.empty() && !best_task_but(trace, pid, asked)) return nullptr;
    }
    serve_ends(trace, pid);
    return nullptr;
}

using Workers = std::vector<std::pair<Process *, os::Stopped *>>;

/// A stopped task of each process that runs in the memory. Nothing: one of them has none.
std::optional<Workers> tasks_of_all(trace::Trace &trace, const SpacePointer &space, HeldTasks &held) {
    std::vector<Pid> members;
    for (const auto &[pid, process] : trace.engine.processes)
        if (process->space == space) members.push_back(Pid{pid});
    for (Pid pid : members) // one may end while another is waited for
        if (!task_of(trace, pid, held) && trace.engine.processes.contains(pid.value)) return std::nullopt;
    Workers tasks;
    for (Pid pid : members) {
        auto found = trace.engine.processes.find(pid.value);
        if (found == trace.engine.processes.end()) continue;
        os::Stopped *stopped = task_of(trace, pid, held);
        if (stopped) tasks.emplace_back(found->second.get(), stopped);
        if (!stopped && trace.engine.processes.contains(pid.value)) return std::nullopt;
    }
    return tasks;
}

/// Unmaps ktrace's pages and gives each process its action for SIGTRAP back. The recovery page stays, and does no harm,
/// where an action may still lead into it.
Status unmap_pages(trace::Trace &trace, AddressSpaceState &space, const Workers &tasks) {
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
    if (!lost || !*lost || became_another(process)) return; // an exec, whose event is still to come, has unmapped all
    trace.voice.complain({Error::Kind::refused,
                          "process " + std::to_string(pid.value) +
                              " has unmapped memory of ktrace's, or has mapped its own over it: that is left as it is",
                          {},
                          {},
                          -1,
                          1});
}

} // namespace

bool unmap_ours(trace::Trace &trace, const SpacePointer &space, HeldTasks &held) {
    if (space->slots.arenas().empty() && !space->recovery.mapped()) return true;
    const auto workers = tasks_of_all(trace, space, held);
    if (!workers) return false;
    const Workers &tasks = *workers;
    if (tasks.empty()) return true;
    // Of one that stands still: another may have ended meanwhile, or be in exec, and have none of the memory any more.
    leave_lost(trace, *tasks.front().first);
    const std::vector<engine::Arena> arenas = space->slots.arenas();
    const recovery::Page page = space->recovery;
    if (arenas.empty() && !page.mapped()) return true;
    if (trace.engine.mending && !lead_handlers_out(trace, space, held)) {
        trace.voice.complain({Error::Kind::refused,
                              "a thread is in a handler that returns into a mapping of a killed ktrace, which stays",
                              "ktrace repair takes it out when the handler has returned",
                              {},
                              -1,
                              1});
        return true;
    }
    auto unmapped = unmap_pages(trace, *space, tasks);
    if (!unmapped && unmapped.error().kind != Error::Kind::gone) trace.voice.complain(unmapped.error());
    // For the children that were born with them.
    for (const engine::Arena &arena : arenas) space->slots.add(arena);
    space->recovery = page;
    return true;
}

} // namespace ktrace::tracees
