// owed: what a task has to get back of what is its own while it is in the middle of an instruction: its signal mask,
// whether its calls are sent back to it, and the signals that came meanwhile.
//
// Invariant: what is owed stands in the ledger before it can be lost: should ktrace be killed, the guardian pays.
#pragma once

#include <vector>

#include "engine/space/engine.h"

namespace ktrace::engine {

/// Should ktrace be killed, the guardian gives the task back what is its own: a mask and whether its calls are sent
/// back to it, told before they are changed and until they are put back; signals, told once the task runs on without
/// them, and until it runs on with them.
void tell_what_is_owed(Engine &engine, Task &task);

/// No signal that is not the copy's own fault comes in until give_back_state.
void block_signals(Engine &engine, Task &task);

/// The task is no longer in the middle of an instruction: its signals come in again, its calls are sent back to it
/// where it wants that.
void give_back_state(Task &task);

/// What was held is sent again, to the ends of the queues: real-time signals in the order in which they came first.
void send_again(Task &task, const std::vector<siginfo_t> &signals);

/// One that a handler waits for. SIGCONT is told with the task's going on: to send it again would take back a stop that
/// was asked for after it. Of two there is one, as of others that the kernel keeps.
void keep_for_later(Task &task, const siginfo_t &info);

/// A signal that was sent has been taken for the stop of a trap, and is told when that has been seen to.
void send_on(Task &task, const siginfo_t &info);

/// At a signal's stop: one that was sent again under our name (`Task::stood_in_for`) is told as it was sent first, and
/// before a real-time signal those that came earlier (`Task::earlier`).
void tell_as_sent(Task &task, int signal);

/// A stopped task that is about to be let go gets back what it is still owed: its mask, if it is blocked as for the
/// middle of an instruction, whether its calls are sent back to it, and the signals that came behind the one that is
/// held.
void pay(Task &task);

} // namespace ktrace::engine
