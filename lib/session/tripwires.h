// tripwires: a task that sleeps in a call that must not be interrupted is stopped where that ends, without a byte in
// the program's text (os/tripwire). A process all of whose tasks sleep so is armed by them: the traps are written when
// one of them stops there. Who kills ktrace before that leaves nothing behind.
#pragma once

#include "session/hold.h"

namespace ktrace::session {

/// Sets one (Task::tripwire); it goes when the task has stopped there. False: the task can have none, or does not sleep
/// in a system call.
bool set_tripwire(trap::Ground &ground, trap::Task &task);

/// Sets them for all tasks, and withholds all traps from now on. Does nothing where some task cannot have one.
void withhold_traps(State &state, const GroundPointer &ground);

/// The room is there that was owed, or none is needed any more: the traps are written. Errors: those of
/// AddressSpace::release.
Status release_traps(State &state, const GroundPointer &ground);

/// Nobody of them is stopped at a tripwire any more.
void drop_tripwires(State &state, const GroundPointer &ground);

/// From the stop of a tripwire's signal, which would be told to the task if ktrace were killed, to one at which nothing
/// is. Other stops stay. False: the task has stopped for something else, or has ended.
bool leave_tripwire(State &state, std::optional<os::Stopped> &stopped);

} // namespace ktrace::session
