// rights: whether a program has rights of its own (set-user-id, set-group-id, file capabilities), which the kernel does
// not give to a task whose tracer is not privileged.
#pragma once

#include "base/ids.h"
#include "base/memory.h"
#include "os/tracee/ptrace.h"

namespace ktrace::os {

/// True where the program of an execve or execveat, at whose entry a process is, has rights of its own.
bool gains_rights(Pid pid, const os::SyscallEntry &entry, Memory &memory);

} // namespace ktrace::os
