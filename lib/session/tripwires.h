// tripwires: a process all of whose tasks sleep in calls that must not be interrupted is armed without a byte in its
// text: where each of them goes on a tripwire stops it, and then the traps are written. Who kills ktrace before that
// leaves nothing behind.
#pragma once

#include "session/hold.h"

namespace ktrace::session {

/// Sets them, and withholds all traps from now on. Does nothing where some task cannot have one, or does not sleep.
void set_tripwires(State &state, const GroundPointer &ground);

/// The room is there that was owed: the traps are written. Errors: those of AddressSpace::release.
Status spring_tripwires(trap::Ground &ground);

/// From the stop of a tripwire's signal, which would be told to the task if ktrace were killed, to one at which nothing
/// is. Other stops stay. False: the task has stopped for something else, or has ended.
bool leave_tripwire(State &state, std::optional<os::Stopped> &stopped);

} // namespace ktrace::session
