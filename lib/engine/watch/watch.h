// watch: watchpoints: data (or code) that is watched by the debug registers of every task of an address space.
//
// Invariants: a task's debug registers are set at its first resume after the set of watchpoints has changed.
// Task::watches has their generation and the watchpoint of each register, since one that fires may be of an earlier
// set. A new task has none (the kernel does not inherit them) and gets them at its first stop. At detach they are
// cleared.
#pragma once

#include "engine/space/engine.h"
#include "os/tracee/stopped.h"

namespace ktrace::engine {

/// How many debug registers the address space uses already, those of watchpoints that are off included.
std::size_t watch_registers_used(const AddressSpaceState &space);

/// Adds a watchpoint: tasks get it at their next resume, unless it is off (Attachment::on).
void add_watch(Engine &engine, AddressSpaceState &space, Watchpoint watch);
/// Removes a watchpoint: it is silent at once, and tasks lose it at their next resume.
void remove_watch(AddressSpaceState &space, Attachment &attachment);
/// Switches it on as add_watch does, or off as remove_watch does.
void switch_watch(AddressSpaceState &space, Attachment &attachment, bool on);

/// Sets a stopped task's debug registers. Called before every resume.
void set_watches(Engine &engine, Task &task, os::Stopped &stopped);
/// The task is about to be detached.
void clear_watches(Task &task);

/// Some have fired before an instruction: a single step leads over it, with none of them set. `awaited`: those that are
/// reported behind it.
void step_off_watches(Task &task, unsigned awaited);

/// The step has been made, or a signal has come in its place: the registers are set again when the task is resumed.
void end_step_off(Task &task);
/// The task has ended: its thread-local variables are gone.
void forget_values(AddressSpaceState &space, const Task &task);

/// Debug registers (bits) have fired in the stopped task.
void run_watches(Engine &engine, Process &process, Task &task, unsigned fired, os::Stopped &stopped);

} // namespace ktrace::engine
