// seize: all tasks of a running process are seized, and one of them is stopped where it can make injected calls.
#pragma once

#include <string>

#include "base/result.h"
#include "os/tracee/stopped.h"
#include "trace/trace.h"

namespace ktrace::tracees {

/// The status of a process or task by /proc. Where its tracer was killed, or is a ktrace whose guardian was, its end is
/// waited for: the remains are found only then.
std::optional<os::ProcessStatus> read_status_without_ending_tracer(pid_t pid);

/// Looks at a process that is to be traced, without touching it. Errors name the cause: no such process, a zombie, a
/// kernel thread, 32-bit, traced already and by whom.
Result<std::unique_ptr<engine::Process>> look_at(trace::Trace &trace, pid_t pid);

/// The same of a process that another tracer may have.
Result<std::unique_ptr<engine::Process>> look_into(trace::Trace &trace, pid_t pid);

/// True where the process has called exec since it was looked at, unseen: nothing that is known of it holds any more.
bool became_another(const engine::Process &process);

/// Seizes all tasks of the process, those included that start meanwhile, but not the threads that the kernel works with
/// in it (os::is_kernel_worker). Errors: denied, with the cause (ptrace_scope,
/// another user, not dumpable).
Status seize_all(trace::Trace &trace, engine::Process &process);

enum class Patience : std::uint8_t {
    users, // until a task can be stopped, or the user waits no more
    none,  // a moment
};

/// Stops one task of the process where ktrace may use it (choice.h). The caller resumes it. Errors: gone; refused: none
/// can be stopped, and the wait is given up.
Result<os::Stopped> stop_one(trace::Trace &trace, engine::Process &process, Patience patience = Patience::users);

/// Lets every task of the process that has not the debug registers it should have stop and go on once, whether it runs
/// or sleeps. Errors: refused (they cannot be set).
Status set_all_watches(trace::Trace &trace, engine::Process &process);

/// Lets the task of stop_one go on as it was.
void release_one(trace::Trace &trace, os::Stopped stopped);

} // namespace ktrace::tracees
