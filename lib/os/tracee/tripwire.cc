#include "os/tracee/tripwire.h"

#include <csignal>
#include <cstring>

#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "arch/host.h"
#include "os/tracee/ptrace.h"

namespace ktrace::os {

namespace {

constexpr std::uint64_t ours = 0x6b74'7769'7265; // distinguishes them from those of the program's own

/// The contents of siginfo at TRAP_PERF (asm-generic/siginfo.h, _perf, behind si_addr).
struct PerfFields {
    unsigned long data;
    std::uint32_t type, flags;
};

} // namespace

std::optional<Tripwire> Tripwire::set(Tid task, VirtAddr at) {
    perf_event_attr attr{};
    attr.size = sizeof attr;
    attr.type = PERF_TYPE_BREAKPOINT;
    attr.bp_type = HW_BREAKPOINT_X;
    attr.bp_addr = at.value;
    attr.bp_len = arch::HostNative::execute_breakpoint_length;
    attr.sample_period = 1;
    attr.sigtrap = attr.remove_on_exec = 1; // the one demands the other
    attr.sig_data = ours;
    attr.exclude_kernel = attr.exclude_hv = 1; // else it takes rights of its own
    Fd event(static_cast<int>(::syscall(SYS_perf_event_open, &attr, task.value, -1, -1, PERF_FLAG_FD_CLOEXEC)));
    if (!event) return std::nullopt;
    return Tripwire(std::move(event), at);
}

bool is_tripwire(Tid task) {
    auto info = signal_info(task);
    if (!info || info->si_code != trap_perf) return false;
    PerfFields fields;
    const auto *behind = reinterpret_cast<const std::byte *>(&info->si_addr) + sizeof info->si_addr;
    std::memcpy(&fields, behind, sizeof fields);
    return fields.data == ours;
}

} // namespace ktrace::os
