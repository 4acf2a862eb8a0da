// syscall_sites: probes at an instruction that makes a system call, where a thread has syscall user dispatch (prctl(2),
// PR_SET_SYSCALL_USER_DISPATCH). The kernel judges a call by its instruction's address, and a probed one runs in a slot
// of ktrace's.
#pragma once

#include <string>

#include "base/result.h"
#include "engine/space/site.h"
#include "os/tracee/stopped.h"

namespace ktrace::arming {

/// Refuses such a probe where the task that is stopped for the arming is such a thread. nullptr: no task is, and it is
/// found out at the first hit of one. `name`: of the probe. Errors: refused.
Status allow_syscall(const engine::Site &site, const std::string &name, const os::Stopped *stopped);

/// The reason why the probe at an address is refused: this thread makes that call.
std::string why_not_dispatched(VirtAddr at, Tid tid);

} // namespace ktrace::arming
