#include "tracees/tripwires.h"

#include <csignal>

#include "base/signals.h"
#include "os/facts/blocked_syscall.h"
#include "os/facts/hw_breakpoint.h"

namespace ktrace::tracees {

namespace {

bool operator==(const os::TaskPlace &a, const os::TaskPlace &b) {
    return !a.running && !b.running && a.syscall == b.syscall && a.pc == b.pc && a.sp == b.sp;
}

/// Nothing: it does not sleep in a system call, or SIGTRAP may be blocked when that ends.
std::optional<os::TaskPlace> place_for_tripwire(const engine::Task &task) {
    auto place = os::read_task_place(task.pid, task.tid);
    auto status = os::read_status(task.tid.value);
    if (!place || !status || place->running || place->syscall < 0) return std::nullopt;
    if (os::has_a_mask_of_its_own(*place) || (status->blocked & signal_bit(SIGTRAP)) != 0) return std::nullopt;
    return place;
}

/// What the task is stopped for behind its call, when the traps are released.
bool has_watches_to_come(const engine::AddressSpaceState &space, const engine::Task &task) {
    return task.watched_as != space.watch_generation;
}

} // namespace

bool set_tripwire(engine::AddressSpaceState &space, engine::Task &task) {
    auto place = place_for_tripwire(task);
    if (!place || !os::debug_registers_trap()) return false;
    if (task.tripwire && task.tripwire->at() == place->pc) return true;
    space.has_had_tripwires = true; // one that is taken back may have stopped its task already
    auto wire = os::Tripwire::set(task.tid, place->pc);
    auto again = os::read_task_place(task.pid, task.tid); // it may have woken up before that
    if (!wire || !again || !(*again == *place)) return false;
    task.tripwire = std::move(wire);
    return true;
}

void withhold_traps(trace::Trace &trace, const SpacePointer &space) {
    for (Tid tid : tasks_in(trace, space)) {
        if (os::has_ended(tid) || set_tripwire(*space, trace.engine.tasks.at(tid.value))) continue;
        drop_tripwires(trace, space);
        return;
    }
    space->memory->withhold();
}

Status release_traps(trace::Trace &trace, const SpacePointer &space) {
    auto released = space->memory->release();
    for (Tid tid : tasks_in(trace, space)) {
        engine::Task &task = trace.engine.tasks.at(tid.value);
        if (!has_watches_to_come(*space, task)) task.tripwire.reset();
    }
    return released;
}

void drop_tripwires(trace::Trace &trace, const SpacePointer &space) {
    for (Tid tid : tasks_in(trace, space)) trace.engine.tasks.at(tid.value).tripwire.reset();
}

bool leave_tripwire(trace::Trace &trace, std::optional<os::Stopped> &stopped) {
    const Tid tid = stopped->tid();
    if (stopped->stop().kind != os::Stop::Kind::signal || !os::is_tripwire(tid)) return true;
    os::interrupt(tid); // it stops again before it runs
    std::move(*stopped).resume(os::Resume::run);
    stopped.reset();
    auto stop = trace.engine.waiter.next_of(tid);
    if (stop && stop->kind == os::Stop::Kind::started) {
        stopped.emplace(trace.engine.waiter, *stop);
        return true;
    }
    if (stop) trace.engine.waiter.put_back(*stop);
    return false;
}

} // namespace ktrace::tracees
