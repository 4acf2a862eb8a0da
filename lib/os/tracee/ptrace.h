// The ptrace requests that are not about registers (arch/*/native.cc has those), as typed functions. Each answers
// whether the task was there: a tracee that dies under us is an ordinary event (`gone`), which the caller gets as a
// value.
#pragma once

#include <cstdint>
#include <optional>

#include <csignal>

#include "base/ids.h"

namespace ktrace::os {

/// How a stopped task is resumed.
enum class Resume : std::uint8_t {
    run,     // PTRACE_CONT
    step,    // PTRACE_SINGLESTEP
    syscall, // PTRACE_SYSCALL: up to the next entry or exit of a system call
    listen,  // PTRACE_LISTEN: stay in the group stop, but hear of its end
    detach,  // PTRACE_DETACH
};

/// PTRACE_SEIZE with the options that ktrace always sets (clone, fork, vfork, exec events; marked system-call stops).
/// 0 or errno.
int seize(Tid task);

/// The same for a look at a task now and then: of the events there is exec alone, and nothing that the task starts is
/// traced.
int seize_for_looks(Tid task);

/// The seccomp filters of a stopped task judge no calls until `resume_seccomp`. False: we may not (a kernel with
/// CONFIG_CHECKPOINT_RESTORE is needed, too), or it is gone.
bool suspend_seccomp(Tid task);
/// CAP_SYS_ADMIN is needed, in the first user namespace, and no filter that judges our own calls: root in a container
/// may have neither.
bool may_suspend_seccomp();
void resume_seccomp(Tid task);

/// PTRACE_INTERRUPT. False: the task is gone.
bool interrupt(Tid task);

/// Resumes a stopped task with `signal` (0: none). False: gone.
bool resume(Tid task, Resume how, int signal);

/// The siginfo of a signal-delivery stop; nothing in a group stop (EINVAL) or when gone.
std::optional<siginfo_t> signal_info(Tid task);
bool set_signal_info(Tid task, const siginfo_t &info);

constexpr int first_real_time = 32; // signal: the kernel's count, of which the C library keeps some for itself

enum class SentAgain : std::uint8_t {
    as_it_was,
    under_our_name, // of its sender the kernel lets us say only what sigqueue says: this is a stand-in
    not_at_all,     // a real-time signal, of which the user has as many queued as is allowed (RLIMIT_SIGPENDING)
};

/// Sends a signal that was taken from a task to it once more.
SentAgain send_again(Pid pid, Tid task, const siginfo_t &info);

/// The blocked signals of a stopped task, bit N-1 for signal N.
std::optional<std::uint64_t> signal_mask(Tid task);
bool set_signal_mask(Tid task, std::uint64_t mask);

/// A signal of the kernel's own (a trap, a fault) that is queued for this stopped task and will be reported next: a
/// task stops for an interrupt or with its group before it takes such a signal.
bool has_fault_pending(Tid task, int signal);
/// Any of those that an instruction raises, and that is delivered when the task is resumed: one that is blocked was not
/// raised by an instruction (a memory error elsewhere, say), and may wait for ever.
bool has_fault_pending(Tid task);

/// Any signal that is queued for this stopped task or for its process, blocked or not.
bool has_signal_queued(Tid task);

/// PTRACE_GETEVENTMSG: the new task of a clone, fork or vfork event; the former tid at exec.
std::optional<unsigned long> event_message(Tid task);

/// A system call that is about to be made.
struct SyscallEntry {
    static constexpr std::uint64_t foreign = ~std::uint64_t{0}; // is none of SYS_*

    std::uint64_t number = 0;
    std::uint64_t arguments[6] = {};
};
/// PTRACE_GET_SYSCALL_INFO of a task in a system-call stop; nothing: it is the exit from one, or the task is gone.
std::optional<SyscallEntry> syscall_entry(Tid task);

} // namespace ktrace::os
