// disposition: what the kernel changes in a process for every trap in a task that blocks or ignores SIGTRAP
// (force_sig_info_to_task in kernel/signal.c): it takes SIGTRAP out of the task's mask, of which nothing is left to be
// seen, and resets the whole process's action, which shows in what the process catches.
//
// What is put back: the action, wherever it was lost; SIGTRAP in the mask of a task that blocked it when it or its
// maker was seized, and of one that blocks everything, as glibc has it for a moment around clone and thread exit and
// daemons have it in their workers for ever. A task that comes to block SIGTRAP and little else has it open from its
// next trap on, until it sets its mask again.
#pragma once

#include "engine/space/engine.h"
#include "os/tracee/stopped.h"

namespace ktrace::engine {

/// Looks now and then at what the process does with SIGTRAP.
void look_at_signals(const Engine &engine, Process &process);

/// In a function that may set the process's action for SIGTRAP: a task stops at its next system calls.
extern const InternalPurpose sets_action;

/// At such a stop: what the program sets its action to is what it gets back from then on.
void see_action(Process &process, Task &task, os::Stopped &stopped);

/// The task has been seized, and no trap of ours has changed its mask yet.
void note_mask(Task &task);

/// A new task of the maker's, which has its mask. Nothing, if it has come by a trap already.
void inherit_mask(Task &child, const Task &maker);

/// The same of a thread or process that was faster than the news of it, which says which task has made it: the mask of
/// one of `maker` that blocks SIGTRAP. Where another one has made it, the first trap leaves the action for SIGTRAP in
/// place, and the guess ends.
void guess_mask(const Engine &engine, Task &child, Pid maker);

/// The task has stopped with a SIGTRAP that was sent, at a site. True: it was pending, blocked, when the task came by
/// the trap, and stands in the place of the trap's: the process's action for SIGTRAP is gone.
bool is_forced(const Process &process, const Task &task);

/// A fork's child, which is traced and has not run yet, may have been made while a trap in another thread had reset the
/// action: it gets it back.
void restore_at_birth(Engine &engine, Process &child, os::Stopped &stopped);

/// At a trap's or step's stop: puts back what that has changed of the task's mask and the process's action. A system
/// call may be made in the task.
void restore_signals(Engine &engine, Process &process, Task &task, os::Stopped &stopped);

/// The task, which is stopped, is let go, or a signal is about to be delivered to it, whose handler's frame saves its
/// mask and brings it back: it is as the task set it, though the last traps were not looked at.
void restore_mask(Process &process, Task &task);

/// A SIGTRAP of the program's own is about to be delivered to the task, which is at its stop, or the task is at a trap,
/// about to ask for the action: that is there, should a trap of ours have reset it meanwhile. (Its own handler blocks
/// SIGTRAP while it runs, and there may be a probe in it.)
void restore_action(Engine &engine, Process &process, Task &task, os::Stopped &stopped);

} // namespace ktrace::engine
