// exits: where a return address may not be trapped (generated code, the signal trampoline), the return instructions of
// the called function are trapped instead. A call that leaves by a jump to a function that is not probed is not seen to
// return: it ends at the jump, as unreturned, or a later return with the same frame would be taken for its own.
#pragma once

#include "engine/space/engine.h"
#include "os/tracee/stopped.h"

namespace ktrace::engine {

/// Traps the return instructions of the armed probe's function, and the jumps that may leave it, once. False: its
/// extent is not known, its code cannot be decoded from end to end, or it may not be trapped there.
bool watch_exits(Engine &engine, Process &process, Attachment &attachment, os::Stopped &stopped);

/// At a trapped jump: true where it leads this call to a function whose end is not seen.
bool leaves_unseen(Process &process, const Site &site, const Attachment &attachment, os::Stopped &stopped);

} // namespace ktrace::engine
