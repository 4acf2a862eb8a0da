// reset: what the process's action for SIGTRAP tells of masks. A trap that finds SIGTRAP blocked in its task makes the
// kernel open it there, of which nothing is left to be seen, and reset the process's action (force_sig_info_to_task in
// kernel/signal.c), which is.
//
// A look costs half of what a hit does. So not each trap's end is looked at: those of tasks that were seen to block
// SIGTRAP are, a new task's first ones, those of ours that are seldom come by (python calls sigaction for each signal
// when it starts), and one now and then, which finds a loss soon after it; from then on all are.
#pragma once

#include <cstdint>

#include "engine/space/engine.h"
#include "os/tracee/stopped.h"

namespace ktrace::engine {

/// What is seen of the action at a trap's, step's or watchpoint's stop.
enum class Action : std::uint8_t {
    unknown, // it was not looked at, or was put back since the task's last trap
    kept,    // SIGTRAP was open to the task
    lost,    // SIGTRAP was blocked: in this task, or in another one that has come by a trap since the last look
};
/// `at`: the address of the trap, should it be one that it has stopped for.
Action look_at_action(Engine &engine, Process &process, Task &task, VirtAddr at);

/// The process has been seized: opens what looks are made by, so that no later moment has more descriptors open.
void prepare_looks(Process &process);

/// No stop has come for a while: of traps that were not looked at it is seen now that they have found SIGTRAP open.
void look_at_actions_when_quiet(Engine &engine);

/// The action was lost, and what is known of the task's mask does not explain that. True: no other task, and no other
/// trap of this one, can have done it, and it is the kernel's doing. System calls may be made in the task.
bool has_lost_action(Engine &engine, Process &process, const Task &task, os::Stopped &stopped);

/// The action has been put back.
void note_action_renewed(Process &process);

} // namespace ktrace::engine
