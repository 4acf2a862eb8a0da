#include "engine/transparent/jumps/leave_jump.h"

#include <array>
#include <csignal>
#include <optional>

#include "engine/calls/repeated_hit.h"
#include "engine/space/classify.h"
#include "engine/space/jumps.h"

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
    AgentThreads::Place *place = jump.run && space.threads ? space.threads->of(task.tid) : nullptr;
    const agent::Last last = place ? place->thread->last : agent::Last::filtered;
    if (last == agent::Last::dropped) {
        jump.undone_dropped++;
    } else if (last == agent::Last::filtered) {
        jump.undone++;
    } else {
        const std::uint64_t before = place->thread->tail - place->thread->last_size;
        if (place->thread->last_size > agent::ring_size || before < place->head) return false;
        place->thread->tail = before;
    }
    return true;
}

/// The kernel has raised the stop's signal for an instruction.
bool is_fault(const os::Stop &stop, const std::optional<siginfo_t> &info) {
    return stop.kind == os::Stop::Kind::signal && is_synchronous(stop.signal) && info && info->si_code > 0;
}

} // namespace

void leave_jump(Process &process, Task &task, os::Stopped &stopped) {
    AddressSpaceState &space = *process.space;
    const VirtAddr was = stopped.pc();
    arch::OutOfStub out;
    Jump *jump = space.jumps ? take_out(space, stopped, out) : nullptr;
    if (!jump) return;
    if (auto *place = jump->run && space.threads ? space.threads->of(task.tid) : nullptr) place->thread->is_busy = 0;
    auto info = stopped.stop().kind == os::Stop::Kind::signal ? os::signal_info(task.tid) : std::nullopt;
    const bool has_faulted = is_fault(stopped.stop(), info);
    if (has_faulted && info->si_addr == reinterpret_cast<void *>(was.value) && stopped.stop().signal != SIGSEGV) {
        info->si_addr = reinterpret_cast<void *>(out.pc.value);
        os::set_signal_info(task.tid, *info);
    }
    if (out.is_undone && has_faulted && stopped.stop().signal != SIGTRAP)
        remember_hit(task, jump->at, stopped); // it is not counted again
    else if (out.is_undone && !undo(space, task, *jump)) {
        remember_hit(task, jump->at, stopped); // by a trap it is known again
        lift(space, std::span(&jump, 1));
    }
    if (has_faulted && space.jumps->with_agent_at(was)) {
        task.has_rung = true; // the fault is not the program's
        do_without_jumps(space, "a thread of it has no thread pointer");
        return;
    }
    if (!has_faulted || out.pc != jump->at) return;
    space.jumps->refused[jump->at] = {arch::NoJump::unmovable, "its instruction has faulted, or was stepped"};
    lift(space, std::span(&jump, 1));
}

} // namespace ktrace::engine
