#include "os/proc/yama.h"

#include <algorithm>

#include <sys/prctl.h>
#include <unistd.h>

#include "os/proc/procfs.h"

namespace ktrace::os {

PtraceScope ptrace_scope() {
    return static_cast<PtraceScope>(std::clamp(read_setting("/proc/sys/kernel/yama/ptrace_scope").value_or(0), 0, 3));
}

std::optional<ScopeRefusal> refusal_by_scope(bool own) {
    const PtraceScope scope = ptrace_scope();
    const std::string why = "kernel.yama.ptrace_scope is " + std::to_string(static_cast<int>(scope));
    if (scope == PtraceScope::nobody) return ScopeRefusal{why + ", which forbids tracing until the next boot", {}};
    if (scope == PtraceScope::all || ::geteuid() == 0) return std::nullopt;
    if (scope == PtraceScope::root) return ScopeRefusal{why, "run ktrace as root"};
    if (own) return std::nullopt;
    return ScopeRefusal{why, "sudo sysctl kernel.yama.ptrace_scope=0, or start the program with ktrace run"};
}

void let_trace(Pid other) { ::prctl(PR_SET_PTRACER, other.value, 0, 0, 0); }

} // namespace ktrace::os
