// restore: what the kernel changes in a process for every trap in a task that blocks or ignores SIGTRAP (force_sig in
// kernel/signal.c): the task's mask, and the whole process's action.
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

/// Everything that can be blocked is in the mask, or all but what faults raise: SIGTRAP was, too.
bool blocks_everything(std::uint64_t mask);

/// SIGTRAP is in the mask, and not because everything is.
bool blocks_traps_alone(std::uint64_t mask);

/// At the first instruction of a function with pthread_sigmask's arguments: what that sets is known.
extern const InternalPurpose sets_mask;

/// The task has been seized, and no trap of ours has changed its mask yet.
void note_mask(Task &task);

/// A new task of the maker's, which has its mask: as it is when the maker's call is over. Nothing, if it has come by a
/// trap, or has set its mask, already.
void inherit_mask(Task &child, const Task &maker);

/// SIGTRAP was blocked to the task, and the process's action for it is gone: it was no signal that somebody has sent.
bool is_forced(const Task &task);

/// A fork's child, which is traced and has not run yet, may have been made while a trap in another thread had reset the
/// action: it gets it back.
void restore_at_birth(Engine &engine, Process &child, os::Stopped &stopped);

/// At a trap's or step's stop: puts back what that has changed of the task's mask and the process's action. A system
/// call may be made in the task.
void restore_signals(Engine &engine, Process &process, Task &task, os::Stopped &stopped);

/// The task, which is stopped, is let go: its mask is as it set it, though the last traps were not looked at.
void restore_mask(const Process &process, Task &task, os::Stopped &stopped);

/// A signal is about to be delivered to the task: the mask that its handler's frame saves, and brings back, is the
/// task's own.
void restore_saved_mask(const Process &process, Task &task, os::Stopped &stopped);

/// A SIGTRAP of the program's own is about to be delivered: where it is caught, the task stops once more, at the first
/// instruction of the handler.
void follow_into_handler(Task &task);

/// There, SIGTRAP is made open to it. It is blocked while its handler runs, and a trap of ours in there would take the
/// action from all threads: the next SIGTRAP of any of them would be the end of the process.
void open_traps(Task &task, os::Stopped &stopped);

/// A SIGTRAP is about to be delivered to the task. True: somebody has sent it, and the task is in that handler. SIGTRAP
/// is blocked to it then, as the program has it, and the signal is to be sent again: it waits for the handler's end.
bool waits_for_handler(Task &task, os::Stopped &stopped);

} // namespace ktrace::engine
