// watch: watchpoints: data (or code) that the debug registers of every task of an address space watch.
//
// Invariants: a task's debug registers are set whenever it goes on after the set of watchpoints has changed
// (Task::watches has the generation that they are of), and it is known what each of them watches,
// since one that fires may be of an earlier set; a new task has none (the kernel does not inherit them) and gets them
// at its first stop; before a task is let go they are cleared.
#pragma once

#include "engine/space/engine.h"
#include "os/tracee/stopped.h"

namespace ktrace::engine {

/// How many debug registers the address space uses already, those of watchpoints that are off included.
std::size_t watch_registers_used(const AddressSpaceState &space);

/// Begins: tasks get it when they go on the next time, unless it is off (Attachment::on).
void add_watch(Engine &engine, AddressSpaceState &space, Watchpoint watch);
/// Ends: it is silent at once, and tasks lose it when they go on the next time.
void remove_watch(AddressSpaceState &space, Attachment &attachment);
/// Switches it on as add_watch does, or off as remove_watch does.
void switch_watch(AddressSpaceState &space, Attachment &attachment, bool on);

/// A stopped task's registers are made what they should be. Every way by which a task goes on calls it.
void set_watches(Engine &engine, Task &task, os::Stopped &stopped);
/// The task is let go.
void clear_watches(Task &task);
/// The task has ended: its thread-local variables are gone.
void forget_values(AddressSpaceState &space, const Task &task);

/// Debug registers (bits) have fired in the stopped task.
void run_watches(Engine &engine, Process &process, Task &task, unsigned fired, os::Stopped &stopped);

} // namespace ktrace::engine
