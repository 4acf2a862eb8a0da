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
arch::OutOfStub take_out(AddressSpaceState &space, const Jump &jump, os::Stopped &stopped) {
    const VirtAddr end = jump.stub_at + static_cast<std::int64_t>(jump.stub.bytes.size());
    if (stopped.pc() < jump.stub_at || end <= stopped.pc()) { // in the landing
        stopped.set_pc(jump.at);
        return {jump.at, false};
    }
    std::array<std::byte, arch::saved_by_stub> saved{};
    space.memory->read(stopped.sp(), saved);
    return arch::HostDetour::leave(jump.stub, jump.at, jump.stub_at, stopped.change_registers(), saved);
}

/// The kernel has raised the stop's signal for an instruction.
bool is_fault(const os::Stop &stop, const std::optional<siginfo_t> &info) {
    return stop.kind == os::Stop::Kind::signal && is_synchronous(stop.signal) && info && info->si_code > 0;
}

} // namespace

void leave_jump(Process &process, Task &task, os::Stopped &stopped) {
    AddressSpaceState &space = *process.space;
    Jump *jump = space.jumps ? space.jumps->with(stopped.pc()) : nullptr;
    if (!jump) return;
    const VirtAddr was = stopped.pc();
    const arch::OutOfStub out = take_out(space, *jump, stopped);
    auto info = stopped.stop().kind == os::Stop::Kind::signal ? os::signal_info(task.tid) : std::nullopt;
    const bool has_faulted = is_fault(stopped.stop(), info);
    if (has_faulted && info->si_addr == reinterpret_cast<void *>(was.value) && stopped.stop().signal != SIGSEGV) {
        info->si_addr = reinterpret_cast<void *>(out.pc.value);
        os::set_signal_info(task.tid, *info);
    }
    if (out.is_undone && has_faulted && stopped.stop().signal != SIGTRAP)
        remember_hit(task, jump->at, stopped); // it is not counted again
    else if (out.is_undone)
        jump->undone++;
    if (!has_faulted || out.pc != jump->at) return;
    space.jumps->refused[jump->at] = {arch::NoJump::unmovable, "its instruction has faulted, or was stepped"};
    lift(space, std::span(&jump, 1));
}

} // namespace ktrace::engine
