// rest: what is left of a sleep, which the kernel writes for the program when it interrupts nanosleep or
// clock_nanosleep. Where a signal's handler comes in between the program is told so; where only ktrace has interrupted
// the sleep, which then goes on, the program's memory is as it was: the time-out itself may be there.
#pragma once

#include "engine/space/engine.h"
#include "os/tracee/stopped.h"

namespace ktrace::engine {

/// Interrupts a task that may be asleep. False: it is gone.
bool interrupt_asleep(Engine &engine, Tid tid);

/// The task stands at the stop of that interrupt.
void take_back_rest(Process &process, Task &task, os::Stopped &stopped);

/// A signal is about to be told to the task, which ends the sleep after all.
void tell_rest(Process &process, Task &task, os::Stopped &stopped);

} // namespace ktrace::engine
