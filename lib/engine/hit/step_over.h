// step_over: gets a stopped task past the instruction under a trap, by its site's method.
#pragma once

#include "engine/space/engine.h"
#include "os/tracee/stopped.h"

namespace ktrace::engine {

/// From the trap on: emulates, or sends the task through the slot. `post`: a post handler waits for the instruction's
/// end. The task runs on, unless emulation faulted (then it gets its SIGSEGV). Spends the token.
void step_over(Engine &engine, Process &process, Task &task, Site &site, os::Stopped stopped, Places post);

/// The task, at a trap's stop, is about to go to an address that may be right behind another trap of ours: if ktrace
/// were killed before its resume, the handler in the recovery page would take it for a hit there. Marks it for the
/// handler.
void mark_moved(Process &process, Task &task, os::Stopped &stopped);

/// The single step of the copy is done: fixes up, runs the post handlers, delivers a held signal; or steps once more.
void finish_step(Engine &engine, Process &process, Task &task, os::Stopped stopped);

/// The task, whose copy ran freely, goes on in the middle of it by steps, until it is done.
void step_out(Task &task, Site &site, os::Stopped &stopped);

/// The step of the copy goes no further: nothing of the instruction was done, and the task is back at the site.
void abort_step(Task &task, const Site &site, os::Stopped &stopped);

/// The stepped copy has faulted: the fault is delivered at the site.
void fault_in_step(Engine &engine, Process &process, Task &task, os::Stopped stopped);

/// A signal arrived with nothing of the copy done, or in the middle of it: it waits until the copy is done.
void hold_signal(Engine &engine, Process &process, Task &task, os::Stopped stopped);

/// The pc is in a slot, and the signal is to be delivered at the program's own address. `again`: the site's instruction
/// will run again without being a new hit.
void deliver_outside(Engine &engine, Process &process, Task &task, os::Stopped stopped, bool again);

/// The copy has faulted where it ran freely: the fault is delivered at the site.
void fault_outside(Engine &engine, Process &process, Task &task, os::Stopped stopped);

/// At the entry (exit) of the system call that the slot's copy makes.
void enter_syscall(Engine &engine, Task &task, os::Stopped stopped);
void leave_syscall(Engine &engine, Process &process, Task &task, os::Stopped stopped);

} // namespace ktrace::engine
