// seize: takes hold of a running process: all of its tasks, and one of them stopped where a system call can be made in
// it.
#pragma once

#include <string>

#include "base/result.h"
#include "os/tracee/stopped.h"
#include "trace/trace.h"

namespace ktrace::tracees {

/// What /proc tells of a process or task. Where who traces it has been killed, or is a ktrace whose guardian was, it is
/// let go in a moment, which is waited for: what that one has left is found only then.
std::optional<os::ProcessStatus> read_status_without_ending_tracer(pid_t pid);

/// Looks at a process that is to be traced, without touching it. Errors name the cause: no such process, a zombie, a
/// kernel thread, 32-bit, traced already and by whom.
Result<std::unique_ptr<engine::Process>> look_at(trace::Trace &trace, pid_t pid);

/// True where the process has called exec since it was looked at, unseen: nothing that is known of it holds any more.
bool became_another(const engine::Process &process);

/// Seizes all tasks of the process, those included that start meanwhile, but not the threads that the kernel works with
/// in it (os::is_kernel_worker). Errors: denied, with the cause (ptrace_scope,
/// another user, not dumpable).
Status seize_all(trace::Trace &trace, engine::Process &process);

/// Fewer seccomp filters, which we may not suspend, judge the calls that it makes.
bool is_freer(Tid one, Tid other);

/// The task of the process that an interrupt disturbs least, of those that the fewest such filters judge; nothing: none
/// is left.
std::optional<Tid> least_disturbed(const trace::Trace &trace, Pid pid);

/// How long one that runs is left alone in the hope that it falls asleep. Stopped at work for a call in the kernel, a
/// write to a pipe whose reader keeps up, it would answer with the part that is done; most of these sleep soon.
inline constexpr std::uint64_t patience_with_running_ns = 10'000'000;

/// False where every task of the process sleeps in a system call whose time-out would begin anew if it were
/// interrupted, and none of them is freer than others.
bool may_stop_one(const trace::Trace &trace, Pid pid);

/// Stops one task of the process where ktrace may use it: one that runs, else one whose sleep is restarted by the
/// kernel as if nothing had been. The caller resumes it. Errors: gone.
Result<os::Stopped> stop_one(trace::Trace &trace, engine::Process &process);

/// Where all sleep in such calls one is stopped when its call ends (at a tripwire), if that is soon. Nothing: they
/// sleep on, or one is awake.
std::optional<os::Stopped> stop_at_waking(trace::Trace &trace, Pid pid);

/// One or the other; nothing: all sleep on. Errors: gone.
Result<std::optional<os::Stopped>> stop_one_gently(trace::Trace &trace, engine::Process &process);

/// Lets every task of the process that has not the debug registers it should have stop and go on once: those that run,
/// and those that sleep, whose system calls go on. Where a call's time-out would begin anew, that is done when the call
/// ends (waking.h). Errors: refused (they cannot be set).
Status set_all_watches(trace::Trace &trace, engine::Process &process);

/// Lets the task of stop_one go on as it was.
void release_one(trace::Trace &trace, os::Stopped stopped);

} // namespace ktrace::tracees
