// tripwires: a task that sleeps in a call that must not be interrupted is stopped where that ends, without a byte in
// the program's text (os/tripwire). A process all of whose tasks sleep so is armed by them: the traps are written when
// one of them stops there. Who kills ktrace before that leaves nothing behind.
#pragma once

#include "tracees/stop.h"

namespace ktrace::tracees {

/// Sets one (Task::tripwire); it goes when the task has stopped there. False: the task can have none, or does not sleep
/// in a system call.
bool set_tripwire(engine::AddressSpaceState &space, engine::Task &task);

/// Sets them for all tasks, and withholds all traps from now on. Does nothing where some task cannot have one.
void withhold_traps(trace::Trace &trace, const SpacePointer &space);

/// The room is there that was owed, or none is needed any more: the traps are written. Errors: those of
/// AddressSpace::release.
Status release_traps(trace::Trace &trace, const SpacePointer &space);

/// Nobody of them is stopped at a tripwire any more.
void drop_tripwires(trace::Trace &trace, const SpacePointer &space);

/// From the stop of a tripwire's signal, which would be told to the task if ktrace were killed, to one at which nothing
/// is. Other stops stay. False: the task has stopped for something else, or has ended.
bool leave_tripwire(trace::Trace &trace, std::optional<os::Stopped> &stopped);

} // namespace ktrace::tracees
