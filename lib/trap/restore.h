// restore: what the kernel changes in a process for every trap in a task that blocks or ignores SIGTRAP (force_sig in
// kernel/signal.c): the task's mask, and the whole process's action.
#pragma once

#include "os/stopped.h"
#include "trap/world.h"

namespace ktrace::trap {

/// Looks now and then at what the process does with SIGTRAP.
void look_at_signals(const World &world, Traced &traced);

/// At a trap's or step's stop: puts back what that has changed of the task's mask and the process's action. A system
/// call may be made in the task.
void restore_signals(World &world, Traced &traced, Task &task, os::Stopped &stopped);

/// The task, which is stopped, is let go: its mask is as it set it, though the last traps were not looked at.
void restore_mask(Task &task);

} // namespace ktrace::trap
