// syscall_sites: probes of the instruction that makes a system call, where a thread has its calls sent back to it
// (prctl(2), PR_SET_SYSCALL_USER_DISPATCH). The kernel judges a call by the address that it is made at, and that of a
// probed one is in a slot of ours.
#pragma once

#include <string>

#include "base/result.h"
#include "engine/space/site.h"
#include "os/tracee/stopped.h"

namespace ktrace::arming {

/// Such a probe is refused where the task that is stopped for the arming is such a thread; nullptr: none is, and it is
/// found out at the first hit of one. `name`: of the probe. Errors: refused.
Status allow_syscall(const engine::Site &site, const std::string &name, const os::Stopped *stopped);

/// Why the probe at an address cannot be: this thread makes that call.
std::string why_not_dispatched(VirtAddr at, Tid tid);

} // namespace ktrace::arming
