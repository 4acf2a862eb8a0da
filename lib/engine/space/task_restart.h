// The state of a task whose system call is restarted by hand (syscall_restart.h).
#pragma once

#include <optional>

#include "arch/host.h"

namespace ktrace::engine {

struct SyscallRestart {
    /// The registers with which the call has failed with -EINTR. Set from the stop at which the pc was set back to the
    /// call until the next stop.
    std::optional<arch::Host::Registers> failed;
    bool is_failed_now = false; // at this stop: it came before the call had begun anew
    /// A handler has run, or may have, that returns to behind a call that has failed with -EINTR: such a place does not
    /// show any more (HostNative::moves_to_restart) that a call has just failed there.
    bool is_returned_to = false;
};

} // namespace ktrace::engine
