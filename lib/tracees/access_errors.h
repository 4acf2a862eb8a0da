// access_errors: the reason why a process is not traced, in words for the user.
#pragma once

#include "base/ids.h"
#include "base/result.h"

namespace ktrace::tracees {

/// The option that gives root in a container the right to trace.
inline constexpr const char *cap_add = "start the container with --cap-add SYS_PTRACE";

/// Why there are no watchpoints (os::debug_registers_trap).
inline constexpr const char *no_watchpoints =
    "the debug registers of this machine stop nothing, as in some virtual machines";

/// Why the kernel does not let this process be traced, with advice.
Error denied(pid_t pid);

/// Why there is nothing of a process in /proc: there is none; or it is not shown. Call it right after the look.
Error unseen(pid_t pid);

/// An error where a control group has frozen the process: it could make no injected call.
Status refuse_frozen(Pid pid);

/// True where the process runs a 32-bit program, which ktrace does not trace.
bool is_32_bit(Pid pid);

} // namespace ktrace::tracees
