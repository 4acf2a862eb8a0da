// The setting kernel.yama.ptrace_scope (Documentation/admin-guide/LSM/Yama.rst): which processes may trace which,
// beyond what the kernel itself asks for.
#pragma once

#include <optional>
#include <string>

#include "base/ids.h"

namespace ktrace::os {

enum class PtraceScope : std::uint8_t {
    all = 0,         // also where there is no Yama
    descendants = 1, // and processes that allow it
    root = 2,        // CAP_SYS_PTRACE
    nobody = 3,      // until the next boot
};

PtraceScope ptrace_scope();

/// The things that it forbids this user, and their remedy.
struct ScopeRefusal {
    std::string why, hint;
};

/// Nothing: it forbids this user nothing. `own`: of a program that ktrace starts itself.
std::optional<ScopeRefusal> refusal_by_scope(bool own);

/// `other` may trace the calling process from now on, also after an exec, where only ancestors might. Only makes a
/// system call.
void let_trace(Pid other);

} // namespace ktrace::os
