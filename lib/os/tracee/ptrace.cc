#include "os/tracee/ptrace.h"

#include <algorithm>
#include <cerrno>
#include <iterator>

#include <linux/capability.h>
#include <linux/seccomp.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "arch/host.h"
#include "base/signals.h"
#include "os/proc/procfs.h"
#include "os/tracee/sleepers.h"

namespace ktrace::os {

namespace {

constexpr long options =
    PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC | PTRACE_O_TRACESYSGOOD;

} // namespace

int seize(Tid task) { return ::ptrace(PTRACE_SEIZE, task.value, nullptr, options) == 0 ? 0 : errno; }

int seize_for_looks(Tid task) {
    constexpr long few = PTRACE_O_TRACEEXEC | PTRACE_O_TRACESYSGOOD;
    return ::ptrace(PTRACE_SEIZE, task.value, nullptr, few) == 0 ? 0 : errno;
}

bool suspend_seccomp(Tid task) {
    return ::ptrace(PTRACE_SETOPTIONS, task.value, nullptr, options | PTRACE_O_SUSPEND_SECCOMP) == 0;
}

bool may_suspend_seccomp() {
    constexpr ino_t first_namespace = 0xEFFFFFFD; // PROC_USER_INIT_INO
    auto status = read_status(::gettid());
    struct stat own {};
    return has_capability(CAP_SYS_ADMIN) && status && status->seccomp == SECCOMP_MODE_DISABLED &&
           ::stat("/proc/self/ns/user", &own) == 0 && own.st_ino == first_namespace;
}

void resume_seccomp(Tid task) { ::ptrace(PTRACE_SETOPTIONS, task.value, nullptr, options); }

bool interrupt(Tid task) {
    if (arch::HostNative::moves_to_restart) note_sleeper(task);
    return ::ptrace(PTRACE_INTERRUPT, task.value, nullptr, nullptr) == 0;
}

bool resume(Tid task, Resume how, int signal) {
    auto data = static_cast<long>(signal);
    switch (how) {
    case Resume::run: return ::ptrace(PTRACE_CONT, task.value, nullptr, data) == 0;
    case Resume::step: return ::ptrace(PTRACE_SINGLESTEP, task.value, nullptr, data) == 0;
    case Resume::syscall: return ::ptrace(PTRACE_SYSCALL, task.value, nullptr, data) == 0;
    case Resume::listen: return ::ptrace(PTRACE_LISTEN, task.value, nullptr, nullptr) == 0;
    case Resume::detach: return ::ptrace(PTRACE_DETACH, task.value, nullptr, data) == 0;
    }
    return false;
}

std::optional<siginfo_t> signal_info(Tid task) {
    siginfo_t info;
    if (::ptrace(PTRACE_GETSIGINFO, task.value, nullptr, &info) != 0) return std::nullopt;
    return info;
}

bool set_signal_info(Tid task, const siginfo_t &info) {
    return ::ptrace(PTRACE_SETSIGINFO, task.value, nullptr, &info) == 0;
}

SentAgain send_again(Pid pid, Tid task, const siginfo_t &info) {
    siginfo_t copy = info;
    if (::syscall(SYS_rt_tgsigqueueinfo, pid.value, task.value, info.si_signo, &copy) == 0) return SentAgain::as_it_was;
    const bool is_sent = ::syscall(SYS_tgkill, pid.value, task.value, info.si_signo) == 0;
    return is_sent ? SentAgain::under_our_name : SentAgain::not_at_all;
}

std::optional<std::uint64_t> signal_mask(Tid task) {
    std::uint64_t mask = 0;
    if (::ptrace(PTRACE_GETSIGMASK, task.value, sizeof mask, &mask) != 0) return std::nullopt;
    return mask;
}

bool set_signal_mask(Tid task, std::uint64_t mask) {
    return ::ptrace(PTRACE_SETSIGMASK, task.value, sizeof mask, &mask) == 0;
}

std::optional<SyscallEntry> syscall_entry(Tid task) {
    __ptrace_syscall_info info{};
    if (::ptrace(PTRACE_GET_SYSCALL_INFO, task.value, sizeof info, &info) <= 0) return std::nullopt;
    if (info.op != PTRACE_SYSCALL_INFO_ENTRY) return std::nullopt;
    // By int $0x80 its number is of another set.
    SyscallEntry entry{info.arch == arch::HostNative::audit_arch ? info.entry.nr : SyscallEntry::foreign, {}};
    std::copy(std::begin(info.entry.args), std::end(info.entry.args), std::begin(entry.arguments));
    return entry;
}

namespace {

bool has_one_pending(Tid task, std::uint64_t faults) {
    constexpr int batch = 8;
    siginfo_t queued[batch];
    for (std::uint64_t from = 0;; from += batch) {
        __ptrace_peeksiginfo_args arguments{from, 0, batch};
        long got = ::ptrace(PTRACE_PEEKSIGINFO, task.value, &arguments, queued);
        for (long i = 0; i < got; i++)
            if ((signal_bit(queued[i].si_signo) & faults) != 0 && queued[i].si_code > 0) return true;
        if (got < batch) return false;
    }
}

} // namespace

bool has_fault_pending(Tid task, int signal) { return has_one_pending(task, signal_bit(signal)); }

bool has_fault_pending(Tid task) {
    const std::uint64_t waiting = signal_mask(task).value_or(0) & memory_and_arithmetic;
    return has_one_pending(task, synchronous_signals & ~waiting);
}

bool has_signal_queued(Tid task) {
    siginfo_t first;
    __ptrace_peeksiginfo_args own{0, 0, 1}, shared{0, PTRACE_PEEKSIGINFO_SHARED, 1};
    return ::ptrace(PTRACE_PEEKSIGINFO, task.value, &own, &first) > 0 ||
           ::ptrace(PTRACE_PEEKSIGINFO, task.value, &shared, &first) > 0;
}

std::optional<unsigned long> event_message(Tid task) {
    unsigned long message = 0;
    if (::ptrace(PTRACE_GETEVENTMSG, task.value, nullptr, &message) != 0) return std::nullopt;
    return message;
}

} // namespace ktrace::os
