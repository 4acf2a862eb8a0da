#include "engine/agent/agent_stops.h"

#include <algorithm>
#include <csignal>
#include <optional>
#include <utility>

#include "agent/blob.h"
#include "agent/layout.h"
#include "arch/in_process.h"
#include "base/clock.h"
#include "engine/agent/agent_records.h"
#include "engine/agent/agent_rows.h"
#include "engine/calls/inside.h"
#include "engine/calls/timing.h"
#include "engine/space/jumps.h"
#include "engine/space/readable.h"
#include "engine/space/returns.h"
#include "os/proc/procfs.h"

namespace ktrace::engine {

namespace {

using arch::Host;
using os::Stop;

/// A pointer to less is null, or into a structure behind a null one: vm.mmap_min_addr.
constexpr std::uint64_t lowest_mapping = 65536;

bool is_full(const AgentThreads::Place &place) {
    return agent::tail_of(place.thread->state) - place.head >= agent::bell_at;
}

struct Extent {
    VirtAddr low, high;
};

/// The task's own stack, as glibc and musl make it: with the thread pointer in the same mapping. That of a process's
/// first thread is the kernel's, and grows. Nothing is known: empty.
Extent stack_of(Process &process, const Task &task, VirtAddr thread_pointer) {
    constexpr std::uint64_t most = std::uint64_t{1} << 30;
    const bool is_first = task.tid.value == process.target.pid.value;
    const auto maps = os::read_maps(process.target.pid);
    if (!maps) return {};
    VirtAddr below;
    for (const os::Mapping &each : *maps) {
        if (!is_first && each.contains(thread_pointer)) return {each.start, thread_pointer};
        if (is_first && each.path == "[stack]")
            return {std::max(below, VirtAddr{each.end.value - std::min(each.end.value, most)}), each.end};
        below = each.end;
    }
    return {};
}

/// True: when the task comes to its jump again, it does not ring for the same reason.
bool look_at(Engine &engine, Process &process, const Task &task, os::Stopped &stopped, bool was_full) {
    AgentThreads &threads = *process.space->threads;
    if (const auto *place = threads.of(task.tid)) return was_full && !is_full(*place);
    const auto pointer = Host::thread_pointer(stopped.registers());
    if (!pointer || !arch::HostDetour::is_thread_pointer(*pointer, *process.space->memory)) return false;
    const Extent stack = stack_of(process, task, *pointer);
    if (!threads.give(process.target.pid, task.tid, pointer->value, stack.low, stack.high)) return false;
    threads.of(task.tid)->name = engine.names.read(process.target.pid, task.tid); // it may have ended at the next look
    return true;
}

void hear_bell(Engine &engine, Process &process, Task &task, os::Stopped &stopped, bool was_full) {
    AddressSpaceState &space = *process.space;
    const VirtAddr trap = Host::trap_address(stopped.pc());
    const std::int64_t behind_trap = stopped.pc() - trap; // where one leaves the pc
    const JumpArea *area = space.jumps->with_agent_at(trap);
    const std::size_t bell = agent::blob().bell;
    if (!area || trap != area->agent + static_cast<std::int64_t>(bell)) return;
    const auto rung = static_cast<agent::Bell>(Host::return_value(stopped.registers()));
    const bool goes_again = rung == agent::Bell::look && look_at(engine, process, task, stopped, was_full);
    const auto out = arch::HostDetour::leave_agent(bell, stopped.change_registers(), *space.memory);
    const Jump *jump = out ? space.jumps->with(out->in_stub) : nullptr;
    if (!jump) return;
    task.has_rung = goes_again;
    if (AgentThreads::Place *place = goes_again ? nullptr : process.space->threads->of(task.tid)) {
        if (place->thread->missed >= lowest_mapping) list_readable(process, false);
        place->rang_at = std::exchange(place->thread->rang_at, 0);
    }
    if (goes_again) arch::HostDetour::come_again(stopped.change_registers());
    stopped.set_pc(goes_again ? jump->at : jump->at + behind_trap);
}

/// The task is on its way through a jump: what its hit has left may be taken back (leave_jump).
bool is_in_jump(const AddressSpaceState &space, VirtAddr pc) {
    if (!space.jumps) return false;
    if (const JumpArea *area = space.jumps->with_agent_at(pc))
        return Host::trap_address(pc) != area->agent + static_cast<std::int64_t>(agent::blob().bell);
    return space.jumps->with(pc) != nullptr;
}

/// The time that the task has spent in the agent is no part of the calls that ktrace times; its stops are not in it.
void leave_hits_out(const Engine &engine, AgentThreads::Place &place, Task &task) {
    const std::uint64_t waited = place.thread->waited - place.waited_seen;
    const std::uint64_t spent = place.thread->cost - place.cost_seen - waited;
    place.waited_seen += waited;
    place.cost_seen += spent + waited;
    if (spent != 0 && task.calls.youngest)
        leave_out(task.clock, agent::in_ns(spent, engine.processor_clock.ns_per_tick()));
}

} // namespace

void see_agent_stop(Engine &engine, Process &process, Task &task, os::Stopped &stopped) {
    if (!process.space->threads) return;
    const Stop &stop = stopped.stop();
    if (stop.kind == Stop::Kind::exec) return take_all_records(engine, &process);
    if (stop.kind == Stop::Kind::started)
        if (const auto pointer = Host::thread_pointer(stopped.registers()))
            process.space->threads->claim(task.tid, pointer->value);
    auto *place = process.space->threads->of(task.tid);
    const bool was_full = place && is_full(*place);
    if (place) leave_hits_out(engine, *place, task);
    see_agent_records(engine, process, task, stopped);
    if (stop.kind == Stop::Kind::signal && stop.signal == SIGTRAP) hear_bell(engine, process, task, stopped, was_full);
}

void see_agent_records(Engine &engine, Process &process, const Task &task, os::Stopped &stopped) {
    if (process.space->threads && !is_in_jump(*process.space, stopped.pc())) take_records(engine, process, task.tid);
}

void leave_stop_out(const Engine &engine, Process &process, const Task &task, os::Stopped &stopped) {
    auto *place = process.space->threads ? process.space->threads->of(task.tid) : nullptr;
    if (!place) return;
    agent::Thread &thread = *place->thread;
    thread.enclosed = enclosed_by(*process.space, task);
    thread.times = task.calls.youngest != nullptr;
    const std::uint64_t rang_at = std::exchange(place->rang_at, 0);
    thread.outer = 0;
    if (const Instance *youngest = task.calls.youngest)
        for (std::uint64_t i = 0; i < std::min(agent::calls_of(thread.state), agent::most_calls); i++)
            if (thread.call[i].place > youngest->frame.sp.value) thread.outer++;
    const std::uint64_t rate = engine.processor_clock.ns_per_tick();
    if (agent::calls_of(thread.state) == 0 || rate == 0) return;
    thread.stops++;
    if (is_asleep(stopped)) return;
    if (thread.rang_at != 0) return; // it comes again, and leaves the time until then out by itself
    const std::uint64_t now = monotonic_ns(), seen = stopped.stop().seen_ns;
    std::uint64_t ticks = agent::in_ticks(engine.corrections.present(Clock::stops).per_stop_ns, rate);
    if (rang_at != 0)
        ticks += arch::processor_time() - rang_at;
    else if (seen != 0 && now > seen)
        ticks += agent::in_ticks(now - seen, rate);
    thread.cost += ticks;
    place->cost_seen += ticks;
}

void part_with_agent(Engine &engine, Process &process, Tid tid) {
    if (!process.space->threads) return;
    take_records(engine, process, tid);
    if (auto *const place = process.space->threads->of(tid)) take_rows(engine, process, *place);
    process.space->threads->take_back(tid);
}

} // namespace ktrace::engine
