// forks: children that are being made while a process is attached to. The kernel copies a process's actions for signals
// before its memory (copy_process in kernel/fork.c): a fork that began before ours for SIGTRAP was there, and goes on
// when traps are planted, makes a child that has these, and nothing that serves them but ktrace.
#pragma once

#include "session/state.h"

namespace ktrace::session {

/// The process's action for SIGTRAP has just become ours, and nothing is planted yet: returns when no fork of its tasks
/// is under way that began before that. Those that sleep are left alone; of those that run on for longer than a moment,
/// each stops once. `stopped`: the task that holds still.
void let_forks_pass(State &state, trap::Traced &traced, Tid stopped);

} // namespace ktrace::session
