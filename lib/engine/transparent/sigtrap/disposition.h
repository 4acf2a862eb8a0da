// disposition: at every trap in a task that blocks or ignores SIGTRAP the kernel (force_sig_info_to_task in
// kernel/signal.c) takes SIGTRAP out of the task's mask, which leaves no trace, and resets the whole process's action,
// which shows in SigCgt.
//
// ktrace puts back the action, wherever it was lost. It puts SIGTRAP back into the mask of a task that blocked it when
// it or its maker was seized, and of one that blocks everything, as glibc does for a moment around clone and thread
// exit, and daemons do in their workers for ever. A task that comes to block SIGTRAP and little else has it open from
// its next trap on, until it sets its mask again.
#pragma once

#include "engine/space/engine.h"
#include "os/tracee/stopped.h"

namespace ktrace::engine {

/// Looks now and then whether the process catches, ignores or blocks SIGTRAP.
void look_at_signals(const Engine &engine, Process &process);

/// In a function that may set the process's action for SIGTRAP: a task stops at its next system calls.
extern const InternalPurpose sets_action;

/// At such a stop: the program gets back the action that it sets here from then on.
void see_action(Process &process, Task &task, os::Stopped &stopped);

/// The task has been seized, and no trap of ktrace's has changed its mask yet.
void note_mask(Task &task);

/// A new task has its maker's mask. Does nothing if it has come by a trap already.
void inherit_mask(Task &child, const Task &maker);

/// The same for a thread or process whose stop came before the event that names its maker: takes the mask of a task of
/// `maker` that blocks SIGTRAP. Where another task has made it, the first trap leaves the action for SIGTRAP in place,
/// and the guess ends.
void guess_mask(const Engine &engine, Task &child, Pid maker);

/// The task has stopped with a SIGTRAP that was sent, at a site. True: it was pending, blocked, when the task came by
/// the trap, and stands in the place of the trap's: the process's action for SIGTRAP is gone.
bool is_forced(const Process &process, const Task &task);

/// A fork's child, which is traced and has not run yet, may have been made while a trap in another thread had reset the
/// action: it gets it back.
void restore_at_birth(Engine &engine, Process &child, os::Stopped &stopped);

/// At a trap's or step's stop: puts back the task's mask and the process's action where that has changed them. May make
/// an injected call in the task.
void restore_signals(Engine &engine, Process &process, Task &task, os::Stopped &stopped);

/// The stopped task is about to be detached, or a signal is about to be delivered, whose handler's frame saves the
/// mask: puts the mask back where the last traps, which were not looked at, have changed it.
void restore_mask(Process &process, Task &task);

/// A SIGTRAP of the program's own is about to be delivered to the task, which is at its stop, or the task is at a trap,
/// about to ask for the action: puts the action back, should a trap have reset it meanwhile. (The program's handler
/// blocks SIGTRAP while it runs, and there may be a probe in it.)
void restore_action(Engine &engine, Process &process, Task &task, os::Stopped &stopped);

} // namespace ktrace::engine
