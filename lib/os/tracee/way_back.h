// Way back: how a task that makes a system call for us finds back by itself, should the tracing process be killed
// meanwhile: as from a signal's handler (arch/way_back.h).
#pragma once

#include "base/memory.h"
#include "os/tracee/inject_syscall.h"

namespace ktrace::os {

struct WayBack {
    VirtAddr call;                      // a system call instruction, from which the task comes to rt_sigreturn
    VirtAddr frame;                     // where that looks for the signal's frame, a multiple of 64
    std::size_t room;                   // bytes that may be written there
    Memory *memory;                     // with which that is done
    std::optional<VirtAddr> returns_to; // there rt_sigreturn is, and a return behind `call`: the frame is the program's
                                        // memory, below its stack, and gets back what it held
};

/// remote_syscall by the way's instruction, even if a process dies meanwhile; where this task can have no frame, by
/// `instruction` as without a way back. The call ends by its own stops; by a step only at the stop of a signal: the
/// task must still be resumed with it.
Result<std::int64_t> remote_syscall(Waiter &waiter, Stopped &stopped, VirtAddr instruction, const WayBack &way,
                                    std::uint64_t number, std::initializer_list<std::uint64_t> arguments);

} // namespace ktrace::os
