#include "os/tracee/syscall_user_dispatch.h"

#include <sys/ptrace.h>

namespace ktrace::os {

namespace {

constexpr int set_config = 0x4210, get_config = 0x4211; // PTRACE_SET_/GET_SYSCALL_USER_DISPATCH_CONFIG
constexpr int sent_back = 2;                            // si_code of SIGSYS: SYS_USER_DISPATCH

} // namespace

std::optional<SyscallUserDispatch> dispatch_of(Tid task) {
    SyscallUserDispatch dispatch;
    if (::ptrace(static_cast<__ptrace_request>(get_config), task.value, sizeof dispatch, &dispatch) != 0)
        return std::nullopt;
    return dispatch;
}

bool set_dispatch(Tid task, const SyscallUserDispatch &dispatch) {
    SyscallUserDispatch copy = dispatch;
    return ::ptrace(static_cast<__ptrace_request>(set_config), task.value, sizeof copy, &copy) == 0;
}

bool is_dispatched_call(const siginfo_t &info) { return info.si_signo == SIGSYS && info.si_code == sent_back; }

} // namespace ktrace::os
