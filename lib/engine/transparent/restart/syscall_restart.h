// syscall_restart: system calls that fail with EINTR only because ktrace is there. Some of them the kernel does not
// restart (os/facts/blocked_syscall), and without a tracer neither an interrupt nor a signal that the process ignores
// would have ended them. They are restarted by hand:
//
// 1. At the stop, the registers are kept, and the pc is set back to the call's instruction.
// 2. The task is resumed by PTRACE_SYSCALL. If its next stop is the call's entry, the call has begun anew.
// 3. If it is any other stop (a signal, a group stop), the task gets the kept registers back. For a signal with a
//    handler, the call has failed with EINTR; for one that the process ignores, all begins again at 1.
//
// Invariants: (1) the task is never detached by PTRACE_DETACH at the call's entry: the kernel would wake the call with
// EINTR; (2) pending signals are not looked at: one may come right after. (By such a look 13 % of the signals that came
// at the same time lost their EINTR: the handler ran, and the call slept on.)
#pragma once

#include <cstdint>

#include "engine/space/engine.h"
#include "os/tracee/stopped.h"

namespace ktrace::engine {

/// The effect of a stop on the system call that its task is in.
enum class Interruption : std::uint8_t {
    none,       // the call goes on, has ended by itself, or fails as it would without a tracer
    by_kernel,  // the kernel restarts it, and the program sees nothing: no new hit where a probe is on it
    new_hit,    // the kernel restarts it behind a handler: a new hit
    made_again, // it has failed with EINTR for nothing that the program sees: restarted by hand
};

/// `awaits_restart`: the kernel is about to restart the call; `failed`: it has failed with -EINTR and stays so;
/// `is_seen`: the stop is of a signal that the program sees; `may_be_made_again`: nothing of the call is lost by that
/// (os/facts/blocked_syscall.h). Pure; `may_be_made_again` is asked for only where the others leave it open.
template <typename Ask>
Interruption interruption_of(bool awaits_restart, bool failed, bool is_seen, Ask may_be_made_again) {
    if (awaits_restart) return is_seen ? Interruption::new_hit : Interruption::by_kernel;
    return failed && !is_seen && may_be_made_again() ? Interruption::made_again : Interruption::none;
}

/// A call was to be restarted, and this is its task's next stop: it has begun only if that is its entry. Pure.
bool has_begun(os::Stop::Kind next);

/// At every stop, first: looks whether a call that was to be restarted has begun.
void see_restart(Task &task, os::Stopped &stopped);

/// The task stands at the stop of an interrupt, or of a signal that is about to be delivered. Where the call would end
/// for a reason that the program would not see without a tracer, it is restarted: by hand (1), or by the kernel, and
/// then it is no new hit where a probe is on its instruction.
void see_interruption(Process &process, Task &task, os::Stopped &stopped);

/// The task is about to be resumed and to restart its call: leads it to the slot of the site that is on the call's
/// instruction by now, so that it is no new hit.
void lead_to_copy(Engine &engine, Task &task, os::Stopped &stopped);

/// The task stands at the exit stop of a system call: where an interrupt of ktrace's may have ended the call, the
/// interrupt is sent once more, for the kernel forgets one with any stop.
void renew_interrupt(os::Stopped &stopped);

/// The task stands at a group stop, which ends these calls with and without a tracer: the call stays so, whatever the
/// next stop is, before it runs on (the SIGCONT).
void accept_interruption(os::Stopped &stopped);

} // namespace ktrace::engine
