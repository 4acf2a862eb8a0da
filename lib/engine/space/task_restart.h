// The state of a task whose system call is restarted by hand (syscall_restart.h).
#pragma once

#include <optional>

#include "arch/host.h"

namespace ktrace::engine {

struct SyscallRestart {
    /// The registers with which the call has failed with -EINTR. Set from the stop at which the pc was set back to the
    /// call until the next stop.
    std::optional<arch::Host::Registers> failed;
};

} // namespace ktrace::engine
