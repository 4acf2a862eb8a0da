#include "inspect/doctor.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>

#include <fmt/format.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "arch/host.h"
#include "os/facts/hw_breakpoint.h"
#include "os/facts/page_size.h"
#include "os/facts/sched_records.h"
#include "os/proc/procfs.h"
#include "os/proc/yama.h"
#include "os/tracee/memory.h"
#include "os/tracee/ptrace.h"
#include "os/tracee/wait.h"
#include "tracees/access_errors.h"

namespace ktrace::inspect {

namespace {

using State = Finding::State;

/// A child that sleeps, and ends with this object.
class Patient {
  public:
    Patient() : pid_(::fork()) {
        if (pid_ != 0) return;
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        while (true) ::pause();
    }
    ~Patient() {
        if (pid_ > 0) ::kill(pid_, SIGKILL);
    }
    Patient(const Patient &) = delete;

    Tid tid() const { return Tid{pid_}; }
    Pid pid() const { return Pid{pid_}; }

    /// 0 or errno. It stands at a stop of ptrace's then.
    int seize() {
        if (pid_ <= 0) return EAGAIN;
        if (int error = os::seize(tid())) return error;
        if (!os::interrupt(tid()) || !waiter_.next_of(tid())) return ESRCH;
        return 0;
    }

  private:
    pid_t pid_;
    os::Waiter waiter_;
};

Finding system_call(int error) {
    Finding found{State::good, "ptrace", "allowed", {}};
    if (error == 0) return found;
    found.state = State::bad;
    found.told = std::string("a child of ktrace's own may not be traced: ") + std::strerror(error);
    auto status = os::read_status(::getpid());
    if (status && status->tracer != 0) {
        found.told += "; ktrace itself is traced, by process " + std::to_string(status->tracer);
        found.fix = "run ktrace outside of that tracer";
    } else if (status && status->seccomp != 0) {
        found.told += "; a seccomp filter is on ktrace";
        found.fix = "start the container with --security-opt seccomp=unconfined --cap-add SYS_PTRACE";
    } else if (auto refused = os::refusal_by_scope(true)) {
        found.told += "; " + refused->why;
        found.fix = refused->hint.empty() ? "reboot" : "sudo ktrace";
    } else {
        found.fix = tracees::cap_add;
    }
    return found;
}

Finding attaching(bool privileged) {
    Finding found{State::good, "attaching to your processes", "allowed", {}};
    const os::PtraceScope scope = os::ptrace_scope();
    std::string text = "kernel.yama.ptrace_scope is " + std::to_string(static_cast<int>(scope));
    if (scope == os::PtraceScope::nobody)
        return {State::bad, found.what, text + ": no process may trace until the next boot", "reboot"};
    if (scope == os::PtraceScope::all || privileged) return found;
    if (scope == os::PtraceScope::descendants)
        return {State::limited, found.what, text + ": only programs that ktrace has started, by ktrace run",
                "sudo sysctl kernel.yama.ptrace_scope=0"};
    return {State::bad, found.what, text + ": only root may trace", "sudo ktrace"};
}

Finding others(bool privileged) {
    if (privileged && os::ptrace_scope() != os::PtraceScope::nobody)
        return {State::good, "processes of other users", "allowed", {}};
    if (privileged) return {State::bad, "processes of other users", "not before the next boot", "reboot"};
    return {State::limited, "processes of other users, setuid programs", "not for you (no CAP_SYS_PTRACE)",
            ::geteuid() == 0 ? tracees::cap_add : "sudo ktrace"};
}

/// Traps go into code that is mapped read-only: by /proc/PID/mem, or by POKETEXT where that is forbidden
/// (proc_mem.force_override=).
Finding writing(Patient &patient) {
    VirtAddr at{reinterpret_cast<std::uint64_t>(&examine)};
    std::byte there;
    auto memory = os::ProcessMemory::open(patient.pid());
    if (memory && memory->read(at, std::span(&there, 1)) == 1 && memory->write(at, std::span(&there, 1)))
        return {State::good, "writing into code", "allowed", {}};
    return {State::bad, "writing into code", memory ? "refused by the kernel" : memory.error().message,
            "boot with proc_mem.force_override=ptrace"};
}

Finding watching() {
    constexpr std::size_t count = arch::HostNative::watch_registers;
    if constexpr (count == 0) return {State::limited, "watchpoints", "not on this machine", {}};
    if (os::debug_registers_trap()) return {State::good, "watchpoints", fmt::format("{} debug registers", count), {}};
    return {State::limited, "watchpoints", tracees::no_watchpoints, {}};
}

/// Events, filters and returns need a time stamp in the process; counts of entries do not.
Finding jumping() {
    const char *what = "jumps in place of traps";
    if (!arch::HostNative::can_jump()) return {State::limited, what, "not for this processor: each hit is a stop", {}};
    if (arch::HostNative::has_steady_counter())
        return {State::good, what, "for counts, events, filters and returns", {}};
    return {State::limited,
            what,
            "for counts of entries alone, since the processor's time stamp counter is not steady",
            {}};
}

/// Durations are taken from when threads run; without, each stop on a busy machine adds to them.
Finding timing(Patient &patient) {
    const char *what = "durations on a busy machine";
    if (os::SchedRecords::open(patient.tid()))
        return {State::good, what, "by the kernel's records of context switches", {}};
    const int paranoid = os::read_setting("/proc/sys/kernel/perf_event_paranoid").value_or(-1);
    std::string told = "the kernel keeps records of context switches from you: durations are too long";
    if (paranoid <= 2) return {State::limited, what, told, {}};
    return {State::limited, what, told + " (kernel.perf_event_paranoid is " + std::to_string(paranoid) + ")",
            "sudo sysctl kernel.perf_event_paranoid=2"};
}

Finding machine() {
    utsname names{};
    ::uname(&names);
    std::string told = std::string(names.sysname) + " " + names.release + " on " + names.machine;
    if (auto fits = os::fits_pages(os::page_size()); !fits)
        return {State::bad, "machine", told + ": " + fits.error().message, fits.error().hint};
    return {State::good, "machine", told, {}};
}

} // namespace

std::vector<Finding> examine() {
    std::vector<Finding> found{machine()};
    bool privileged = os::has_capability(CAP_SYS_PTRACE);
    Patient patient;
    int error = patient.seize();
    found.push_back(system_call(error));
    found.push_back(attaching(privileged));
    found.push_back(others(privileged));
    if (error != 0) return found;
    found.push_back(writing(patient));
    found.push_back(watching());
    found.push_back(jumping());
    found.push_back(timing(patient));
    return found;
}

} // namespace ktrace::inspect
