// interruption: system calls that fail with EINTR only because ktrace is there. The kernel does not make some of them
// again by itself (signal(7): epoll_wait, semop, sigtimedwait, …), but would not have ended them without a tracer.
#pragma once

#include "os/procfs.h"
#include "os/stopped.h"
#include "trap/world.h"

namespace ktrace::trap {

/// Does the process let this signal pass without notice? The kernel discards such a signal when it is sent, but shows
/// it to the tracer of a traced process, for which it ends the task's system call.
bool lets_pass(const os::ProcessStatus &status, int signal);

/// The task stands at a stop: of our interrupt, or of a signal that its process lets pass. Where the call that it was
/// in has failed with EINTR, and no other signal is the reason, it makes the call again when it goes on: true then, the
/// pc is on the call's instruction.
bool undo_interruption(os::Stopped &stopped);

/// At such a stop: what the kernel has told of a sleep that was interrupted (rest.h) is taken back, or told after all.
void see_to_rest(Traced &traced, Task &task, os::Stopped &stopped);

/// At such a stop: the same as undo_interruption and see_to_rest, and the call is no new hit where a probe is on its
/// instruction, whoever makes it again.
void go_unnoticed(Traced &traced, Task &task, os::Stopped &stopped);

/// The task stands at the end of a system call, which is told: where an interrupt of ours may have ended the call it is
/// made once more, for the kernel forgets one with any stop.
void renew_interrupt(os::Stopped &stopped);

/// The task stands at a group stop, which ends these calls with and without a tracer: its call stays so, whatever is
/// told next, before it runs on (the SIGCONT). One that was to be made again, and has not been yet, has failed: the
/// stop's signal had ended it already, though another thread had taken that signal, and nothing was seen of it.
void accept_interruption(Task &task, os::Stopped &stopped);

} // namespace ktrace::trap
