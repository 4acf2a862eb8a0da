#include "os/facts/hw_breakpoint.h"

#include <cerrno>
#include <csignal>
#include <span>

#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arch/host.h"

namespace ktrace::os {

namespace {

volatile int watched;

[[noreturn]] void be_watched() {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) == 0) ::kill(::getpid(), SIGSTOP);
    watched = 1;
    ::_exit(0);
}

/// False: it has ended. Other signals, as those of a terminal, are nothing to it; one that has stopped it before it was
/// traced is undone.
bool stops_by(pid_t child, int signal) {
    while (true) {
        int status = 0;
        if (::waitpid(child, &status, __WALL | WUNTRACED) < 0) {
            if (errno != EINTR) return false;
            continue;
        }
        if (!WIFSTOPPED(status)) return false;
        const bool is_traced = ::ptrace(PTRACE_SETOPTIONS, child, nullptr, PTRACE_O_EXITKILL) == 0;
        if (!is_traced)
            ::kill(child, SIGCONT);
        else if (WSTOPSIG(status) == signal)
            return true;
        else
            ::ptrace(PTRACE_CONT, child, nullptr, nullptr);
    }
}

bool is_stopped_by_a_watch() {
    if (arch::HostNative::watch_registers == 0) return true;
    const pid_t child = ::fork();
    if (child < 0) return true;
    if (child == 0) be_watched();
    if (!stops_by(child, SIGSTOP)) return true; // it may not be traced
    const arch::WatchRegister watch{VirtAddr{reinterpret_cast<std::uint64_t>(&watched)}, sizeof watched,
                                    arch::WatchRegister::When::write};
    const bool is_set = arch::HostNative::set_watches(Tid{child}, std::span(&watch, 1));
    ::ptrace(PTRACE_CONT, child, nullptr, nullptr);
    if (!stops_by(child, SIGTRAP)) return false; // it has ended
    ::kill(child, SIGKILL);
    stops_by(child, SIGKILL); // until it has ended
    return is_set;
}

} // namespace

bool debug_registers_trap() {
    static const bool trap = is_stopped_by_a_watch();
    return trap;
}

} // namespace ktrace::os
