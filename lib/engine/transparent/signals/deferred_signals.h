// deferred_signals: while a task is stepped over an instruction, all signals but the synchronous ones are blocked to
// it. One that came before the step, to a task in a slot, is held and delivered behind it: one at most.
//
// Invariants: (1) a mask or signal that is kept from a task stands in the ledger before it can be lost: should ktrace
// be killed, the guardian gives it back; (2) its own mask stands in the recovery page, too, before it is changed, and
// from then on the step ends with a SIGTRAP in any case: should both be killed, the page's handler gives it back; (3)
// no mask is changed at the stop of a signal that the task may be left with: the kernel would put the step's mask into
// that signal's frame.
#pragma once

#include "engine/space/engine.h"
#include "os/tracee/stopped.h"

namespace ktrace::engine {

/// Should ktrace be killed, the guardian gives the task back its own: a mask, entered before it is changed and until it
/// is put back; a signal, entered once the task runs on without it, and until it runs on with it.
void update_ledger(Engine &engine, Task &task);

/// No signal that is not the copy's own fault comes in until give_back_state. The task, at the stop of a trap or on its
/// way to a system call, stands where it goes on.
void block_signals(Engine &engine, Process &process, Task &task, os::Stopped &stopped);

/// The same at the stop of an interrupt, for the step before which a signal is held. The step ends by the flag in the
/// registers, too: the kernel's own goes with ktrace, and then no SIGTRAP would come.
void block_at_interrupt(Engine &engine, Process &process, Task &task, os::Stopped &stopped);

/// The step ends by the flag in the registers, too, and so do the others until the copy is done: of a task that is
/// stepped once more the kernel takes a flag that it finds for the program's own (enable_single_step in
/// arch/x86/kernel/step.c), and would leave it there.
void show_step_flag(Task &task, os::Stopped &stopped);

/// That flag is taken out of the registers, at each stop, before anything reads them.
void hide_step_flag(os::Stopped &stopped);

/// The task is no longer in the middle of an instruction: its signals come in again.
void give_back_state(Task &task);

/// A SIGTRAP that was sent has been taken for the stop of a trap, or a step's end, and is delivered when that is done:
/// it is held behind a step, else sent again, and delivered as it was sent first.
void defer_sent_trap(Task &task, const siginfo_t &info);

bool is_end_of_step(const siginfo_t &info);

/// The stepped copy is done, of a program that steps itself: that signal is delivered first, as the kernel does with
/// what an instruction raises. A signal that is held is sent again, but for SIGCONT: sent again, it would take back a
/// stop that was asked for after it.
void keep_end_of_step(Task &task, VirtAddr pc);

/// At the stop of a SIGTRAP: one that was sent again in ktrace's name is delivered as it was.
void see_sent_again(Task &task);

/// Before a stopped task is detached: gives it back its own mask, if the step's is in force, and its syscall user
/// dispatch. (A held signal is delivered at the detach.)
void give_back_at_end(Task &task);

} // namespace ktrace::engine
