#include "os/remote.h"

#include <cerrno>
#include <csignal>
#include <span>
#include <vector>

#include <linux/seccomp.h>

#include "os/procfs.h"

namespace ktrace::os {

using arch::Host;
using arch::HostNative;

namespace {

/// Steps the task once, or to the next stop of a system call; another signal that is delivered first (SIGSTOP cannot be
/// blocked) is kept for later.
Result<void> advance(Waiter &waiter, Tid tid, Resume how, std::vector<siginfo_t> &held) {
    while (true) {
        if (!resume(tid, how, 0)) return fail(Error::Kind::gone, "the task has ended");
        waiter.resumed(tid);
        auto stop = waiter.next_of(tid);
        if (!stop || stop->kind == Stop::Kind::exited || stop->kind == Stop::Kind::killed) {
            if (stop) waiter.put_back(*stop);
            return fail(Error::Kind::gone, "the task has ended");
        }
        if (stop->kind == Stop::Kind::exec) { // another thread's, which has taken over the leader's id
            waiter.put_back(*stop);
            return fail(Error::Kind::gone, "the task has ended");
        }
        if (stop->kind == Stop::Kind::syscall && how == Resume::syscall) return {};
        if (stop->kind != Stop::Kind::signal) continue; // a group stop or a trap of SEIZE: go on
        auto info = signal_info(tid);
        if (!info) return fail(Error::Kind::gone, "the task has ended");
        if (stop->signal == SIGTRAP && info->si_code > 0) return {};
        held.push_back(*info);
    }
}

/// A call of ours is none of the program's: its seccomp filters are not to judge it, much less to end it for that.
class Unfiltered {
  public:
    explicit Unfiltered(Tid tid) : tid_(tid) {
        auto status = read_status(tid.value);
        mode_ = status ? status->seccomp : SECCOMP_MODE_DISABLED;
        suspended_ = mode_ != SECCOMP_MODE_DISABLED && suspend_seccomp(tid);
    }
    ~Unfiltered() {
        if (suspended_) resume_seccomp(tid_);
    }
    Unfiltered(const Unfiltered &) = delete;

    /// Any call but four would be the end of it.
    bool is_hopeless() const { return mode_ == SECCOMP_MODE_STRICT && !suspended_; }

  private:
    Tid tid_;
    int mode_ = SECCOMP_MODE_DISABLED;
    bool suspended_ = false;
};

/// SIGSYS for a call of ours: it was not made. It is taken from those that are told later.
bool was_trapped(std::vector<siginfo_t> &held) {
    return std::erase_if(held, [](const siginfo_t &info) { return info.si_signo == SIGSYS && info.si_code > 0; }) > 0;
}

} // namespace

Result<std::int64_t> remote_syscall(Waiter &waiter, Stopped &stopped, VirtAddr instruction, std::uint64_t number,
                                    std::initializer_list<std::uint64_t> arguments, Through through) {
    Tid tid = stopped.tid();
    Host::Registers before = stopped.registers();
    if (auto rest = stopped.rest()) Host::set_pc(before, *rest); // the token keeps its own
    auto mask = signal_mask(tid);
    if (stopped.gone() || !mask) return fail(Error::Kind::gone, "the task has ended");

    Unfiltered unfiltered(tid);
    if (unfiltered.is_hopeless())
        return fail(Error::Kind::refused, "the process is in seccomp's strict mode and may make no system call",
                    "run ktrace as root");
    std::uint64_t synchronous = signal_bit(SIGTRAP) | signal_bit(SIGSEGV) | signal_bit(SIGBUS) | signal_bit(SIGILL) |
                                signal_bit(SIGFPE) | signal_bit(SIGSYS);
    set_signal_mask(tid, ~synchronous);
    Host::Registers call = before;
    Host::set_syscall(call, number, std::span(arguments.begin(), arguments.size()));
    Host::set_pc(call, instruction);
    std::vector<siginfo_t> held;
    Host::Registers after{};
    bool alive = true;
    Result<void> stepped;
    // Where the task stands in a system call of its own (an exec or fork event), the first step ends on its way out of
    // that, which also writes that call's result over ours.
    do {
        alive = HostNative::write_registers(tid, call);
        stepped = advance(waiter, tid, through == Through::steps ? Resume::step : Resume::syscall, held);
        alive = alive && stepped && HostNative::read_registers(tid, after);
        if (alive && Host::pc(after) == instruction) Host::set_return_value(before, Host::return_value(after));
    } while (alive && Host::pc(after) == instruction);
    if (alive && through == Through::stops) { // that was the call's entry
        stepped = advance(waiter, tid, Resume::syscall, held);
        alive = stepped && HostNative::read_registers(tid, after);
    }
    if (alive) alive = HostNative::write_registers(tid, before) && set_signal_mask(tid, *mask);
    bool trapped = was_trapped(held);
    // SIGSTOP is the only other signal that can come in between; it is sent again, to the whole process as it was.
    for (const siginfo_t &info : held) ::kill(tid.value, info.si_signo);
    if (!stepped) return tl::make_unexpected(stepped.error());
    if (!alive) return fail(Error::Kind::gone, "the task has ended");
    return trapped ? -EPERM : Host::syscall_result(after);
}

} // namespace ktrace::os
