// signal_frames: threads that a killed ktrace has left in handlers of signals. A signal that came while a thread was in
// a copy of an instruction, untraced, has that address in its frame: the handler returns there.
#pragma once

#include "tracees/stop.h"

namespace ktrace::tracees {

/// Handlers that would return into ktrace's pages return to the program's own code from now on. The tasks that run in
/// the memory are held, or sleep. False: one returns into the middle of a copy; the pages have to stay.
bool lead_handlers_out(trace::Trace &trace, const SpacePointer &space, HeldTasks &held);

} // namespace ktrace::tracees
