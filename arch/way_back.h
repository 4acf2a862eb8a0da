// Way back: returns from the handlers of signals, of the instruction set that this build traces. By one a task finds
// back by itself from a system call that it makes for ktrace, should ktrace be killed meanwhile.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "arch/host.h"
#include "base/addr.h"
#include "base/ids.h"
#include "base/memory.h"

namespace ktrace::arch {

/// Bytes right behind the page of recovery.h, before the first table: for the frame of a task that makes its call
/// there.
inline constexpr std::size_t recovery_frame_size = 16384;

/// The frame of a signal that has come to a stopped task: rt_sigreturn with the stack pointer at `at` (a multiple of
/// 64) leads the task to `before` and `mask`, its floating-point registers are as they are now. Empty: there is none
/// for this task.
std::vector<std::byte> signal_frame(Tid tid, const Host::Registers &before, std::uint64_t mask, VirtAddr at);

/// Where in the code for the page (HostNative::recovery_code) the system call instruction is behind which a task comes
/// to rt_sigreturn with that frame; nothing: there is none.
std::optional<std::size_t> call_in_recovery_code();

/// A system call instruction and a return right behind it, as the C library has them; empty: no such is used.
std::span<const std::byte> call_and_return();

/// May the C library's control block of a thread be where the thread pointer points?
bool is_thread_block(VirtAddr thread_pointer, Memory &memory);

/// Where a task goes that returns from a signal's handler.
struct SignalReturn {
    VirtAddr pc, sp;
};

/// A signal's frame on a stack, and where in it those are that its handler returns to.
struct SignalFrame {
    VirtAddr pc_at, sp_at;
    SignalReturn to;
};

/// The frames that lie between `sp` and `end` of a stack, by what is the same in each of them.
std::vector<SignalFrame> signal_frames(VirtAddr sp, VirtAddr end, Memory &memory);

/// At the entry of rt_sigreturn; nothing: the frame cannot be read.
std::optional<SignalReturn> signal_return(const Host::Registers &registers, Memory &memory);

/// Before a signal's frame: what takes the return address of a call where that lies on the stack.
inline constexpr std::size_t before_signal_frame = sizeof(std::uint64_t);

/// The task is to make the call at `call_and_return`, and to come to `returns_to`, which is rt_sigreturn, with the
/// stack pointer at the frame. `start`: of `before_signal_frame` bytes that hold `returns_to`, right before the frame.
void lead_to_frame(Host::Registers &registers, VirtAddr start, VirtAddr returns_to);

/// True in a system call that the kernel restarts when the task is resumed.
bool awaits_restart(const Host::Registers &registers);

} // namespace ktrace::arch
