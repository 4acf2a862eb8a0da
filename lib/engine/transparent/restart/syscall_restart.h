// interruption: system calls that fail with EINTR only because ktrace is there. The kernel does not make some of them
// again by itself (signal(7): epoll_wait, semop, sigtimedwait, …), but would not have ended them without a tracer.
#pragma once

#include "engine/space/engine.h"
#include "os/proc/procfs.h"
#include "os/tracee/stopped.h"

namespace ktrace::engine {

/// Does the process let this signal pass without notice? The kernel discards such a signal when it is sent, but shows
/// it to the tracer of a traced process, for which it ends the task's system call.
bool lets_pass(const os::ProcessStatus &status, int signal);

/// The task stands at a stop: of our interrupt, or of a signal that its process lets pass. Where the call that it was
/// in has failed with EINTR, and no other signal is the reason, it makes the call again when it goes on: true then, the
/// pc is on the call's instruction.
bool undo_interruption(os::Stopped &stopped);

/// At such a stop, or at that of a signal that is about to be told: the same as undo_interruption; what the kernel has
/// told of a sleep that was interrupted (rest.h) is taken back, or told after all; and the call is no new hit where a
/// probe is on its instruction, whoever makes it again. A call that was to be made again, and has not been when another
/// signal comes, fails: without a tracer it would have slept until then.
void go_unnoticed(Process &process, Task &task, os::Stopped &stopped);

/// The task stands at the end of a system call, which is told: where an interrupt of ours may have ended the call it is
/// made once more, for the kernel forgets one with any stop.
void renew_interrupt(os::Stopped &stopped);

/// The task stands at a group stop, which ends these calls with and without a tracer: its call stays so, whatever is
/// told next, before it runs on (the SIGCONT). One that was to be made again, and has not been yet, fails: another
/// thread has taken the stop's signal, and nothing was seen of it.
void accept_interruption(Task &task, os::Stopped &stopped);

/// Job control stops the process: the calls of its tasks that were to be made again have failed.
void note_group_stop(Engine &engine, Pid pid);

/// A signal is about to be told to a task: it may be one that stops the process.
void note_stop_signal(Engine &engine, const Task &told, int signal);

/// The task, which has been held, is let go: the same where a signal is on its way to it, or a stop.
void see_late_signal(Task &task, os::Stopped &stopped);

} // namespace ktrace::engine
