#include "tracees/handover.h"

#include <algorithm>
#include <csignal>
#include <ctime>

#include "arming/install.h"
#include "base/clock.h"
#include "os/proc/procfs.h"
#include "os/self/own_signals.h"
#include "recovery/guardian.h"
#include "recovery/remains.h"
#include "tracees/tripwires.h"

namespace ktrace::tracees {

using engine::AddressSpaceState;
using engine::Process;
using engine::Task;

namespace {

bool has_traps(const AddressSpaceState &space) {
    return std::any_of(space.sites.begin(), space.sites.end(), [](const auto &entry) { return entry.second->armed; });
}

bool is_at_rest(const Task &task) {
    return task.watching.empty() && task.over == engine::Over::none && !task.signals.held && !task.signals.saved_mask &&
           !task.signals.saved_dispatch;
}

/// Nothing that the kernel would tell it is still to be told: the end of its tracer would let it go on with that.
bool sleeps_on(trace::Trace &trace, const Task &task) {
    if (os::has_ended(task.tid)) return true;
    if (trace.engine.waiter.has_news_of(task.tid)) return false;
    const auto place = os::read_task_place(task.pid, task.tid);
    return place && !place->running && place->syscall >= 0;
}

} // namespace

bool put_to_rest(trace::Trace &trace, const Leaving &leaving) {
    bool all = true;
    for (const auto &[space, pid] : leaving.grounds()) {
        const std::vector<Tid> tids = tasks_in(trace, space);
        const bool rests = !leaving.is_frozen(space) && !has_traps(*space) &&
                           std::all_of(tids.begin(), tids.end(),
                                       [&](Tid tid) { return is_at_rest(trace.engine.tasks.at(tid.value)); });
        all = rests && space->recovery.rest(*space->memory) && all;
    }
    return all;
}

bool hand_over(trace::Trace &trace, const Leaving &leaving) {
    for (const auto &[space, pid] : leaving.grounds()) drop_tripwires(trace, space);
    for (const auto &[space, pid] : leaving.grounds())
        for (Tid tid : tasks_in(trace, space))
            if (!sleeps_on(trace, trace.engine.tasks.at(tid.value))) return false;
    return true;
}

pid_t lingering_for(Pid pid) {
    for (Tid tid : os::read_tasks(pid)) {
        auto status = os::read_status(tid.value);
        if (!status || os::has_ended(tid) || status->tracer == ::gettid()) continue; // as a leader before its threads
        if (status->tracer == 0) return 0;
        auto tracer = os::read_status(status->tracer);
        return tracer && tracer->name == recovery::lingering_process_name ? status->tracer : 0;
    }
    return 0;
}

bool end_waiting(pid_t lingering, Pid pid, int signal) {
    sigval value{};
    value.sival_int = pid.value;
    constexpr std::uint64_t patience_ns = 5'000'000'000; // a stop is all that it may wait for
    constexpr std::uint64_t repeat_ns = 100'000'000;     // of two that ask at once it may hear one
    constexpr timespec moment{0, 1'000'000};
    const std::uint64_t end = monotonic_ns() + patience_ns;
    std::uint64_t ask_at = 0;
    auto waits = [&] {
        const std::vector<Tid> tids = os::read_tasks(pid);
        return std::any_of(tids.begin(), tids.end(), [&](Tid tid) {
            auto status = os::read_status(tid.value);
            return status && status->tracer == lingering;
        });
    };
    while (waits()) {
        const std::uint64_t now = monotonic_ns();
        if (now > end) return false;
        if (now >= ask_at) {
            if (::sigqueue(lingering, signal, value) != 0 && errno == EPERM) return false;
            ask_at = now + repeat_ns;
        }
        ::nanosleep(&moment, nullptr);
    }
    return true;
}

bool can_be_taken_over(Pid pid) {
    auto status = os::read_status(pid.value);
    if (!status || (status->tracer != 0 && lingering_for(pid) == 0)) return false;
    auto left = recovery::find_left(Pid{status->tgid});
    if (left && left->empty()) return status->tracer != 0; // it was let go, and others are waited for
    if (!left || left->size() != 1) return false;
    auto space = target::AddressSpace::open(Pid{status->tgid});
    return space && recovery::Page::is_ready(**space, left->front().page, left->front().header);
}

bool ask_for(recovery::Ledger *ledger, Pid pid) {
    if (lingering_for(pid) == 0) return true;
    auto left = recovery::find_left(pid);
    if (ledger && left && left->size() == 1) ledger->cover(pid, left->front().page);
    while (const pid_t lingering = lingering_for(pid)) // it may have let go of this one for another one's sake
        if (!end_waiting(lingering, pid, os::OwnSignals::hand_over)) return false;
    return true;
}

void find_room(Process &process) {
    AddressSpaceState &space = *process.space;
    auto left = recovery::find_left(process.target.pid);
    if (!left || left->size() != 1 || space.recovery.mapped()) return;
    const ktrace_recovery_header &header = left->front().header;
    auto page = recovery::Page::adopt_ready(*space.memory, left->front().page, header);
    if (!page) return;
    for (std::uint32_t i = 0; i < header.arenas; i++)
        space.slots.add({VirtAddr{header.arena[i].address}, header.arena[i].size, 0});
    space.recovery = std::move(*page);
    space.recovery_tried = true;
}

void take_over(trace::Trace &trace, Process &process) {
    find_room(process);
    if (!process.space->recovery.mapped()) return;
    process.space->recovery.claim(*process.space->memory);
    arming::tell_of_page(trace, process);
}

} // namespace ktrace::tracees
