#include "arming/syscall_sites.h"

#include <fmt/format.h>

#include "os/tracee/syscall_user_dispatch.h"

namespace ktrace::arming {

std::string why_not_dispatched(VirtAddr at, Tid tid) {
    return fmt::format("the system call at {:#x} cannot be probed: thread {} has syscall user dispatch "
                       "(PR_SET_SYSCALL_USER_DISPATCH), which goes by the call's address",
                       at.value, tid.value);
}

Status allow_syscall(const engine::Site &site, const std::string &name, const os::Stopped *stopped) {
    if (site.plan.method != arch::Method::syscall || !stopped) return {};
    const auto dispatch = os::dispatch_of(stopped->tid());
    if (!dispatch || dispatch->mode == 0) return {};
    return fail(Error::Kind::refused, name + ": " + why_not_dispatched(site.at, stopped->tid()),
                "probe the function that makes it");
}

} // namespace ktrace::arming
