// exits: where a return address may not be trapped (generated code, the signal trampoline), a call is seen to end at
// the return instructions of its own function instead. A call that leaves by a tail jump to a function that is not
// probed is not seen to end.
#pragma once

#include "os/stopped.h"
#include "trap/world.h"

namespace ktrace::trap {

/// Traps the return instructions of the armed probe's function, once. False: its extent is not known, or its code
/// cannot be read from end to end.
bool watch_exits(World &world, Traced &traced, Armed &armed, os::Stopped &stopped);

} // namespace ktrace::trap
