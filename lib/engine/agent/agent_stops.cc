#include "engine/agent/agent_stops.h"

#include <csignal>
#include <optional>

#include "agent/blob.h"
#include "engine/agent/agent_records.h"
#include "engine/space/jumps.h"

namespace ktrace::engine {

namespace {

using arch::Host;
using os::Stop;

bool is_full(const AgentThreads::Place &place) { return place.thread->tail - place.head >= agent::bell_at; }

/// The agent looks its thread up by what lies there.
bool points_to_itself(AddressSpaceState &space, std::uint64_t thread_pointer) {
    return space.memory->read_value<std::uint64_t>(VirtAddr{thread_pointer}) == thread_pointer;
}

/// True: when the task comes to its jump again, it does not ring for the same reason.
bool answer(Process &process, const Task &task, os::Stopped &stopped, bool was_full) {
    AgentThreads &threads = *process.space->threads;
    if (const auto *place = threads.of(task.tid)) return was_full && !is_full(*place);
    const auto pointer = Host::thread_pointer(stopped.registers());
    return pointer && points_to_itself(*process.space, pointer->value) &&
           threads.give(process.target.pid, task.tid, pointer->value);
}

void hear_bell(Engine &engine, Process &process, Task &task, os::Stopped &stopped, bool was_full) {
    AddressSpaceState &space = *process.space;
    const VirtAddr trap = Host::trap_address(stopped.pc());
    const JumpArea *area = space.jumps->with_agent_at(trap);
    const std::size_t bell = agent::blob().bell;
    if (!area || trap != area->agent + static_cast<std::int64_t>(bell)) return;
    const bool goes_again = answer(process, task, stopped, was_full);
    const auto out = arch::HostDetour::leave_agent(bell, stopped.change_registers(), *space.memory);
    const Jump *jump = out ? space.jumps->with(out->in_stub) : nullptr;
    if (!jump) return;
    engine.rings++;
    task.has_rung = goes_again;
    stopped.set_pc(goes_again ? jump->at : jump->at + static_cast<std::int64_t>(Host::trap_bytes().size()));
}

} // namespace

void see_agent_stop(Engine &engine, Process &process, Task &task, os::Stopped &stopped) {
    if (!process.space->threads) return;
    const Stop &stop = stopped.stop();
    if (stop.kind == Stop::Kind::exec) return take_all_records(engine);
    if (stop.kind == Stop::Kind::started)
        if (const auto pointer = Host::thread_pointer(stopped.registers()))
            process.space->threads->claim(task.tid, pointer->value);
    const auto *place = process.space->threads->of(task.tid);
    const bool was_full = place && is_full(*place);
    take_records(engine, process, task.tid);
    if (stop.kind == Stop::Kind::signal && stop.signal == SIGTRAP) hear_bell(engine, process, task, stopped, was_full);
}

void part_with_agent(Engine &engine, Process &process, Tid tid) {
    if (!process.space->threads) return;
    take_records(engine, process, tid);
    process.space->threads->take_back(tid);
}

} // namespace ktrace::engine
