// The system calls of a task's code outside of a range may be sent back to it as SIGSYS: prctl(2),
// PR_SET_SYSCALL_USER_DISPATCH (emulators). Kernels before 6.4 do not let us see that.
#pragma once

#include <csignal>
#include <cstdint>
#include <optional>

#include "base/addr.h"
#include "base/ids.h"

namespace ktrace::os {

/// A task's setting. The kernel's ptrace_sud_config.
struct SyscallUserDispatch {
    std::uint64_t mode = 0; // 0: none of it
    std::uint64_t selector = 0, offset = 0, length = 0;

    /// The calls of code there are made, whatever the selector says. `behind`: what follows the instruction.
    bool leaves_alone(VirtAddr behind) const { return mode == 0 || behind.value - offset < length; }
};

/// Of a stopped task; nothing: it is gone, or the kernel does not say.
std::optional<SyscallUserDispatch> dispatch_of(Tid task);
bool set_dispatch(Tid task, const SyscallUserDispatch &dispatch);

/// Sees to it that a task gets back what it has asked for, should this process be killed while that is something else.
class DispatchKeeper {
  public:
    DispatchKeeper() = default;
    DispatchKeeper(const DispatchKeeper &) = delete;
    virtual ~DispatchKeeper() = default;
    /// Before that is changed.
    virtual void keep(Tid task, const SyscallUserDispatch &own) = 0;
    /// It has its own again.
    virtual void forget_dispatch(Tid task) = 0;
};

/// The signal is one that came instead of such a call.
bool is_dispatched_call(const siginfo_t &info);

} // namespace ktrace::os
