// exits: where a return address may not be trapped (generated code, the signal trampoline), a call is seen to end at
// the return instructions of its own function instead. A call that leaves by a jump to a function that is not probed
// is not seen to return: at the jump it is over, or the next one at its place would be taken for its end.
#pragma once

#include "engine/space/engine.h"
#include "os/tracee/stopped.h"

namespace ktrace::engine {

/// Traps the return instructions of the armed probe's function, and the jumps that may leave it, once. False: its
/// extent is not known, its code cannot be read from end to end, or it may not be trapped there.
bool watch_exits(Engine &engine, Process &process, Attachment &attachment, os::Stopped &stopped);

/// At a trapped jump: does it lead this call to a function whose end is not seen?
bool leaves_unseen(Process &process, const Site &site, const Attachment &attachment, os::Stopped &stopped);

} // namespace ktrace::engine
