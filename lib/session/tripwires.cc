#include "session/tripwires.h"

#include <csignal>

#include "os/asleep.h"

namespace ktrace::session {

namespace {

bool operator==(const os::TaskPlace &a, const os::TaskPlace &b) {
    return !a.running && !b.running && a.syscall == b.syscall && a.pc == b.pc && a.sp == b.sp;
}

/// Nothing: it does not sleep in a system call, or SIGTRAP may be blocked when that ends.
std::optional<os::TaskPlace> place_for_tripwire(const trap::Task &task) {
    auto place = os::read_task_place(task.pid, task.tid);
    auto status = os::read_status(task.tid.value);
    if (!place || !status || place->running || place->syscall < 0) return std::nullopt;
    if (os::has_a_mask_of_its_own(*place) || (status->blocked & os::signal_bit(SIGTRAP)) != 0) return std::nullopt;
    return place;
}

std::optional<os::Tripwire> set_tripwire(const trap::Task &task) {
    auto place = place_for_tripwire(task);
    if (!place) return std::nullopt;
    auto wire = os::Tripwire::set(task.tid, place->pc);
    auto again = os::read_task_place(task.pid, task.tid); // it may have woken up before that
    return wire && again && *again == *place ? std::move(wire) : std::nullopt;
}

} // namespace

void set_tripwires(State &state, const GroundPointer &ground) {
    ground->has_had_tripwires = true; // one that is taken back may have stopped its task already
    std::vector<os::Tripwire> wires;
    for (Tid tid : tasks_in(state, ground)) {
        if (os::has_ended(tid)) continue;
        auto wire = set_tripwire(state.world.tasks.at(tid.value));
        if (!wire) return;
        wires.push_back(std::move(*wire));
    }
    ground->space->withhold();
    ground->tripwires = std::move(wires);
}

Status spring_tripwires(trap::Ground &ground) {
    auto released = ground.space->release();
    ground.tripwires.clear();
    return released;
}

bool leave_tripwire(State &state, std::optional<os::Stopped> &stopped) {
    const Tid tid = stopped->tid();
    if (stopped->stop().kind != os::Stop::Kind::signal || !os::is_tripwire(tid)) return true;
    os::interrupt(tid); // it stops again before it runs
    std::move(*stopped).resume(os::Resume::run);
    stopped.reset();
    auto stop = state.world.waiter.next_of(tid);
    if (stop && stop->kind == os::Stop::Kind::started) {
        stopped.emplace(state.world.waiter, *stop);
        return true;
    }
    if (stop) state.world.waiter.put_back(*stop);
    return false;
}

} // namespace ktrace::session
