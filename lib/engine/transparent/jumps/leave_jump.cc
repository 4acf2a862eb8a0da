#include "engine/transparent/jumps/leave_jump.h"

#include <array>
#include <csignal>
#include <cstring>
#include <optional>
#include <utility>

#include "agent/layout.h"
#include "engine/calls/repeated_hit.h"
#include "engine/space/classify.h"
#include "engine/space/jumps.h"
#include "engine/space/readable.h"

namespace ktrace::engine {

namespace {

/// Takes the task out. The jump's pc is in its landing or its stub.
arch::OutOfStub out_of_stub(AddressSpaceState &space, const Jump &jump, os::Stopped &stopped) {
    const VirtAddr end = jump.stub_at + static_cast<std::int64_t>(jump.stub.bytes.size());
    if (stopped.pc() < jump.stub_at || end <= stopped.pc()) { // in the landing
        stopped.set_pc(jump.at);
        return {jump.at, false};
    }
    std::array<std::byte, arch::saved_by_stub> saved{};
    space.memory->read(stopped.sp(), saved);
    return arch::HostDetour::leave(jump.stub, jump.at, jump.stub_at, stopped.change_registers(), saved);
}

/// Takes a task that is in the agent or its entry out, too. nullptr: it is in no jump.
Jump *take_out(AddressSpaceState &space, os::Stopped &stopped, arch::OutOfStub &out) {
    if (Jump *jump = space.jumps->with(stopped.pc())) {
        out = out_of_stub(space, *jump, stopped);
        return jump;
    }
    const JumpArea *area = space.jumps->with_agent_at(stopped.pc());
    if (!area) return nullptr;
    const auto offset = static_cast<std::uint64_t>(stopped.pc() - area->agent);
    const auto left = arch::HostDetour::leave_agent(offset, stopped.change_registers(), *space.memory);
    Jump *jump = left ? space.jumps->with(left->in_stub) : nullptr;
    if (!jump) return nullptr;
    out = {jump->at, left->has_effect};
    stopped.set_pc(jump->at);
    return jump;
}

/// The task comes to the site again: what its hit has left is taken back. False: it is reported already.
bool undo(AddressSpaceState &space, const Task &task, Jump &jump) {
    AgentThreads::Place *place = jump.has_runs() && space.threads ? space.threads->of(task.tid) : nullptr;
    const agent::Last last = place ? place->thread->last : agent::Last::filtered;
    if (last == agent::Last::dropped) {
        jump.undone_dropped++;
    } else if (last == agent::Last::filtered) {
        jump.undone++;
    } else if (last == agent::Last::stored || last == agent::Last::added) {
        const std::uint64_t tail = agent::tail_of(place->thread->state), before = tail - place->thread->last_size;
        if (place->thread->last_size > agent::ring_size || before < place->head) return false;
        const std::uint64_t calls = agent::calls_of(place->thread->state), begun = place->thread->last_calls;
        // An addition that is not the last one any more goes into no row; where it was seen, less is seen next time.
        const std::uint64_t addition = agent::addition_of(place->thread->state) ^ (last == agent::Last::added ? 1 : 0);
        place->thread->state = agent::state_of(before, begun <= calls ? calls - begun : calls, addition);
    }
    return true;
}

/// The kernel has raised the stop's signal for an instruction.
bool is_fault(const os::Stop &stop, const std::optional<siginfo_t> &info) {
    return stop.kind == os::Stop::Kind::signal && is_synchronous(stop.signal) && info && info->si_code > 0;
}

/// The agent has been taken out between its use of them and their end.
void put_floats_back(const agent::Thread &thread, os::Stopped &stopped) {
    if (arch::Host::FpRegisters *const floating = stopped.change_floating())
        std::memcpy(floating, thread.floats, sizeof *floating);
}

/// The agent has read memory that was there when ktrace looked. The task comes to the site again, and rings; where the
/// memory is still mapped (a file is shorter than its mapping), the site gets its trap back.
void see_unmapped(Process &process, Task &task, Jump &jump, std::uint64_t at) {
    task.has_rung = true; // the fault is not the program's
    list_readable(process, true);
    if (!is_listed(process, at)) return;
    process.space->jumps->refused[jump.at] = {arch::NoJump::unmovable, "memory that it reads is not there"};
    give_way(*process.space, jump.at);
}

} // namespace

void leave_jump(Process &process, Task &task, os::Stopped &stopped) {
    AddressSpaceState &space = *process.space;
    const VirtAddr was = stopped.pc();
    arch::OutOfStub out;
    Jump *jump = space.jumps ? take_out(space, stopped, out) : nullptr;
    if (!jump) return;
    if (stopped.pc() == jump->at) arch::HostDetour::come_again(stopped.change_registers());
    AgentThreads::Place *const place = jump->has_runs() && space.threads ? space.threads->of(task.tid) : nullptr;
    const std::uint64_t reads = place ? std::exchange(place->thread->reads, 0) : 0;
    if (place) place->thread->is_busy = 0;
    if (place && std::exchange(place->thread->has_floats, 0) != 0) put_floats_back(*place->thread, stopped);
    auto info = stopped.stop().kind == os::Stop::Kind::signal ? os::signal_info(task.tid) : std::nullopt;
    const bool has_faulted = is_fault(stopped.stop(), info);
    // A return that was carried out is so once more, without effect.
    if (jump->is_for(program::Moment::ret)) out.is_undone = false;
    if (has_faulted && info->si_addr == reinterpret_cast<void *>(was.value) && stopped.stop().signal != SIGSEGV) {
        info->si_addr = reinterpret_cast<void *>(out.pc.value);
        os::set_signal_info(task.tid, *info);
    }
    if (out.is_undone && has_faulted && stopped.stop().signal != SIGTRAP)
        remember_hit(task, jump->at, stopped); // it is not counted again
    else if (out.is_undone && !undo(space, task, *jump)) {
        remember_hit(task, jump->at, stopped); // by a trap it is known again
        give_way(space, jump->at);             // another jump may be there by now
    }
    if (has_faulted && reads != 0) return see_unmapped(process, task, *jump, reads);
    if (has_faulted && space.jumps->with_agent_at(was)) {
        task.has_rung = true; // the fault is not the program's
        do_without_jumps(space, "a thread of it has no thread pointer, or may not read the time stamp counter");
        return;
    }
    if (!has_faulted || out.pc != jump->at) return;
    space.jumps->refused[jump->at] = {arch::NoJump::unmovable, "its instruction has faulted, or was stepped"};
    give_way(space, jump->at);
}

} // namespace ktrace::engine
