// SyscallRestart: what a task needs while its interrupted system call is made again by hand (syscall_restart.h).
#pragma once

#include <optional>

#include "arch/host.h"

namespace ktrace::engine {

struct SyscallRestart {
    /// Its registers as the call has failed with -EINTR. Set from the stop at which the pc was set back to the call
    /// until the next stop.
    std::optional<arch::Host::Registers> failed;
};

} // namespace ktrace::engine
