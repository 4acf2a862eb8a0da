#include "os/tracee/inject_syscall.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <linux/seccomp.h>
#include <sys/ptrace.h>

#include "arch/way_back.h"
#include "base/signals.h"
#include "os/proc/procfs.h"
#include "os/tracee/rseq.h"
#include "os/tracee/syscall_user_dispatch.h"
#include "os/tracee/way_back.h"

namespace ktrace::os {

using arch::Host;
using arch::HostNative;

namespace {

/// Signals and stops that come to a task in the middle of a call of ours.
struct Meanwhile {
    std::vector<siginfo_t> held;   // signals, delivered later
    bool stopped_by_group = false; // by job control: it makes the call nevertheless
    std::optional<VirtAddr> call;  // where it is made
};

/// The instruction of the call faults: it is not there any more, or never was. No more comes of running it again.
bool faults_at(std::optional<VirtAddr> call, const siginfo_t &info) {
    const bool is_fault = info.si_signo == SIGSEGV || info.si_signo == SIGBUS || info.si_signo == SIGILL;
    return call && is_fault && info.si_code > 0 && info.si_addr == reinterpret_cast<void *>(call->value);
}

Result<void> cannot_make_calls() {
    return fail(Error::Kind::refused, "the process cannot run ktrace's code for system calls",
                "it has changed ktrace's mapping");
}

/// A task that runs up to the stop of a system call, and runs on and on: another thread has replaced the instruction
/// that makes the call by a jump to itself. It is interrupted then.
class Runaway {
  public:
    explicit Runaway(Tid tid) : tid_(tid) {}

    /// While its stop is waited for.
    void look() {
        if (is_stopped_ || ++looks_ % looks_between != 0) return;
        if (!pid_) {
            auto status = read_status(tid_.value);
            if (!status) return;
            pid_ = Pid{status->tgid};
            had_run_ms_ = processor_time_ms(*pid_, tid_);
        }
        if (processor_time_ms(*pid_, tid_) > had_run_ms_ + patience_ms) is_stopped_ = interrupt(tid_);
    }
    bool is_stopped() const { return is_stopped_; }

  private:
    static constexpr unsigned looks_between = 64;
    static constexpr std::uint64_t patience_ms = 500; // of the processor's time: a call may have much to do

    Tid tid_;
    unsigned looks_ = 0;
    std::optional<Pid> pid_;
    std::uint64_t had_run_ms_ = 0;
    bool is_stopped_ = false;
};

/// Steps the task once, or to the next stop of a system call; a signal that is delivered first is kept for later.
/// SIGSTOP, which cannot be blocked, is not: a SIGCONT could not take it back then.
Result<void> advance(Waiter &waiter, Tid tid, Resume how, Meanwhile &meanwhile) {
    Runaway runaway(tid);
    auto is_before_call = [&] { return meanwhile.call && HostNative::read_pc(tid) == meanwhile.call; };
    for (int signal = 0;;) {
        if (!resume(tid, how, std::exchange(signal, 0))) return fail(Error::Kind::gone, "the task has ended");
        waiter.resumed(tid);
        auto stop = waiter.next_of(tid, Waiter::Block::yes, [&] { runaway.look(); });
        if (!stop || stop->kind == Stop::Kind::exited || stop->kind == Stop::Kind::killed) {
            if (stop) waiter.put_back(*stop);
            return fail(Error::Kind::gone, "the task has ended");
        }
        if (stop->kind == Stop::Kind::exec) { // another thread's, which has taken over the leader's id
            waiter.put_back(*stop);
            return fail(Error::Kind::gone, "the task has ended");
        }
        if (stop->kind == Stop::Kind::syscall && how == Resume::syscall) return {};
        meanwhile.stopped_by_group = meanwhile.stopped_by_group || stop->kind == Stop::Kind::group;
        if (stop->kind != Stop::Kind::signal) { // a group stop or a trap of SEIZE: go on
            if (runaway.is_stopped() && is_before_call()) return cannot_make_calls();
            continue;
        }
        if (stop->signal == SIGSTOP) {
            signal = SIGSTOP;
            continue;
        }
        auto info = signal_info(tid);
        if (!info) return fail(Error::Kind::gone, "the task has ended");
        if (stop->signal == SIGTRAP && info->si_code > 0) return {};
        if (faults_at(meanwhile.call, *info)) return cannot_make_calls();
        // Of a system call some architectures report a step's end so, as if the task had sent it
        // (user_single_step_report in include/linux/ptrace.h). Where one that was sent to the task waits, the step's
        // own is dropped.
        const bool is_done = stop->signal == SIGTRAP && how == Resume::step && meanwhile.call && !is_before_call();
        if (!is_done || info->si_code != SI_USER) meanwhile.held.push_back(*info);
        if (is_done) return {};
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

/// A thread that has the calls of its code outside of a range sent back to it makes ours as if it had not.
class Undispatched {
  public:
    Undispatched(Tid tid, DispatchKeeper *keeper)
        : tid_(tid), keeper_(keeper), own_(dispatch_of(tid).value_or(SyscallUserDispatch{})) {
        if (own_.mode == 0) return;
        if (keeper_) keeper_->keep(tid_, own_);
        set_dispatch(tid_, SyscallUserDispatch{});
    }
    ~Undispatched() {
        if (own_.mode == 0) return;
        set_dispatch(tid_, own_);
        if (keeper_) keeper_->forget_dispatch(tid_);
    }
    Undispatched(const Undispatched &) = delete;

  private:
    Tid tid_;
    DispatchKeeper *keeper_;
    SyscallUserDispatch own_;
};

/// SIGSYS for a call of ours: it was not made. It is taken from those that are delivered later.
bool was_trapped(std::vector<siginfo_t> &held) {
    return std::erase_if(held, [](const siginfo_t &info) { return info.si_signo == SIGSYS && info.si_code > 0; }) > 0;
}

/// As they came: to this thread, with what was sent along.
void tell_later(Tid tid, const std::vector<siginfo_t> &held) {
    auto status = held.empty() ? std::nullopt : read_status(tid.value);
    if (!status) return;
    for (const siginfo_t &info : held) send_again(Pid{status->tgid}, tid, info);
}

/// To the stop of a signal that a filter has raised for the call.
Result<void> take_filters_signal(Waiter &waiter, Tid tid, std::vector<siginfo_t> &held) {
    if (!resume(tid, Resume::run, 0)) return fail(Error::Kind::gone, "the task has ended");
    waiter.resumed(tid);
    auto stop = waiter.next_of(tid);
    auto info = stop && stop->kind == Stop::Kind::signal ? signal_info(tid) : std::nullopt;
    if (!info) {
        if (stop) waiter.put_back(*stop);
        return fail(Error::Kind::gone, "the task has ended");
    }
    held.push_back(*info);
    return {};
}

/// At an event, and not led out of it yet: in the middle of a system call of its own.
bool stands_at_event(Tid tid) {
    auto info = signal_info(tid);
    const int event = info && info->si_signo == SIGTRAP ? info->si_code >> 8 : 0;
    return event == PTRACE_EVENT_FORK || event == PTRACE_EVENT_VFORK || event == PTRACE_EVENT_CLONE ||
           event == PTRACE_EVENT_EXEC;
}

/// A task at an event is led to the end of its own call, which writes its result: not over what a call of ours needs.
Result<void> leave_own_call(Waiter &waiter, Stopped &stopped, Meanwhile &meanwhile) {
    if (!stands_at_event(stopped.tid())) return {};
    if (auto left = advance(waiter, stopped.tid(), Resume::syscall, meanwhile); !left) return left;
    Host::Registers now{};
    if (!HostNative::read_registers(stopped.tid(), now)) return fail(Error::Kind::gone, "the task has ended");
    Host::set_return_value(stopped.change_registers(), Host::return_value(now));
    return {};
}

/// The signal's frame with all that a task is, for as long as the call lasts.
class Frame {
  public:
    /// A call that the kernel would restart when the task is resumed is restarted from the beginning.
    Frame(const WayBack *way, Tid tid, Host::Registers before, std::uint64_t mask) : way_(way) {
        if (!way_) return;
        if (arch::awaits_restart(before)) Host::restart_syscall(before, 0);
        auto frame = arch::signal_frame(tid, before, mask, way_->frame);
        if (frame.empty() || frame.size() > way_->room) return;
        if (way_->returns_to) {
            std::vector<std::byte> word(sizeof way_->returns_to->value);
            std::memcpy(word.data(), &way_->returns_to->value, word.size());
            frame.insert(frame.begin(), word.begin(), word.end());
            original_.resize(frame.size());
            if (way_->memory->read(start(), original_) != original_.size()) {
                original_.clear();
                return;
            }
        }
        laid_ = way_->memory->write(start(), frame);
    }
    ~Frame() {
        if (!original_.empty()) way_->memory->write(start(), original_);
    }
    Frame(const Frame &) = delete;

    explicit operator bool() const { return laid_; }
    void lead(Host::Registers &call) const {
        Host::set_pc(call, way_->call);
        if (way_->returns_to) arch::lead_to_frame(call, start(), *way_->returns_to);
    }

  private:
    /// Of what is written: the return address lies before the frame.
    VirtAddr start() const {
        return way_->returns_to ? way_->frame - static_cast<std::int64_t>(arch::before_signal_frame) : way_->frame;
    }

    const WayBack *way_; // nullptr: there is none
    std::vector<std::byte> original_;
    bool laid_ = false;
};

/// Runs the call for which the registers `call` were made, up to its end.
Result<void> run_call(Waiter &waiter, Tid tid, Through through, const Host::Registers &call, Meanwhile &meanwhile,
                      Host::Registers &after) {
    const Resume how = through == Through::steps ? Resume::step : Resume::syscall;
    constexpr int most_tries = 8;
    auto gone = [] { return fail(Error::Kind::gone, "the task has ended"); };
    int tries = 0;
    do { // at the entry of a call of its own it is first led out of that
        if (tries++ == most_tries) return cannot_make_calls();
        if (auto advanced = advance(waiter, tid, how, meanwhile); !advanced) return advanced;
        if (!HostNative::read_registers(tid, after)) return gone();
        if (Host::pc(after) == Host::pc(call) && !HostNative::write_registers(tid, call)) return gone();
    } while (Host::pc(after) == Host::pc(call));
    if (through == Through::steps) return {};
    if (auto advanced = advance(waiter, tid, how, meanwhile); !advanced) return advanced; // that was the entry
    if (!HostNative::read_registers(tid, after)) return gone();
    return has_fault_pending(tid, SIGSYS) ? take_filters_signal(waiter, tid, meanwhile.held) : Result<void>();
}

/// At the end of a call the kernel restarts none: it does so only where it is about to deliver signals, as for an
/// interrupt.
bool stop_for_restart(Waiter &waiter, Tid tid, const Host::Registers &before) {
    if (!interrupt(tid) || !HostNative::write_registers(tid, before) || !resume(tid, Resume::run, 0)) return false;
    waiter.resumed(tid);
    auto stop = waiter.next_of(tid);
    const bool stands = stop && (stop->kind == Stop::Kind::started || stop->kind == Stop::Kind::group);
    if (stop && !stands) waiter.put_back(*stop);
    return stands;
}

Result<std::int64_t> make_call(Waiter &waiter, Stopped &stopped, VirtAddr instruction, const WayBack *way,
                               std::uint64_t number, std::initializer_list<std::uint64_t> arguments, Through through) {
    Tid tid = stopped.tid();
    Meanwhile meanwhile;
    if (auto left = leave_own_call(waiter, stopped, meanwhile); !left) return tl::make_unexpected(left.error());
    if (!stopped.rest())
        if (auto broken_off = abort_of_sequence(tid, stopped.pc())) stopped.set_pc(*broken_off);
    Host::Registers before = stopped.registers();
    if (auto rest = stopped.rest()) Host::set_pc(before, *rest); // the token keeps its own
    auto mask = signal_mask(tid);
    if (stopped.gone() || !mask) return fail(Error::Kind::gone, "the task has ended");

    Unfiltered unfiltered(tid);
    if (unfiltered.is_hopeless())
        return fail(Error::Kind::refused, "the process is in seccomp's strict mode and may make no system call",
                    "run ktrace as root");
    const Undispatched undispatched(tid, waiter.dispatch_keeper());
    const Frame frame(way, tid, before, *mask);
    // Only a step leads from a signal's stop to one at which a signal can be delivered.
    const bool at_signal = stopped.stop().kind == Stop::Kind::signal;
    if (frame)
        through = at_signal ? Through::steps : Through::stops;
    else if (HostNative::steps_outlive_tracer && !at_signal)
        through = Through::stops;
    Host::Registers call = before;
    Host::set_syscall(call, number, std::span(arguments.begin(), arguments.size()));
    Host::set_pc(call, instruction);
    if (frame) frame.lead(call);
    meanwhile.call = Host::pc(call);
    // The mask is ours only while the registers are: from there the task finds back to its own.
    const std::uint64_t blocked = ~synchronous_signals | (*mask & memory_and_arithmetic);
    bool alive = HostNative::write_registers(tid, call) && set_signal_mask(tid, blocked);
    Host::Registers after{};
    Result<void> run =
        alive ? run_call(waiter, tid, through, call, meanwhile, after) : fail(Error::Kind::gone, "the task has ended");
    const bool is_there = run || run.error().kind == Error::Kind::refused;
    if (is_there) {
        alive = set_signal_mask(tid, *mask);
        if (alive && run && through == Through::stops && arch::awaits_restart(before))
            alive = stop_for_restart(waiter, tid, before);
        else
            alive = alive && HostNative::write_registers(tid, before);
    }
    bool trapped = was_trapped(meanwhile.held);
    tell_later(tid, meanwhile.held);
    if (meanwhile.stopped_by_group) interrupt(tid); // it stops again before it runs on
    if (!run) return tl::make_unexpected(run.error());
    if (!alive) return fail(Error::Kind::gone, "the task has ended");
    return trapped ? -EPERM : Host::syscall_result(after);
}

} // namespace

Result<std::int64_t> remote_syscall(Waiter &waiter, Stopped &stopped, VirtAddr instruction, std::uint64_t number,
                                    std::initializer_list<std::uint64_t> arguments, Through through) {
    return make_call(waiter, stopped, instruction, nullptr, number, arguments, through);
}

Result<std::int64_t> remote_syscall(Waiter &waiter, Stopped &stopped, VirtAddr instruction, const WayBack &way,
                                    std::uint64_t number, std::initializer_list<std::uint64_t> arguments) {
    return make_call(waiter, stopped, instruction, &way, number, arguments, Through::steps);
}

} // namespace ktrace::os
