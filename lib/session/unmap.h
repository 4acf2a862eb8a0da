// unmap: our pages go from an address space that is being left, and each process gets its action for SIGTRAP back.
#pragma once

#include "session/hold.h"

namespace ktrace::session {

/// Done by tasks that are `held`; of a process in which all sleep, one is woken for it and held, too. All tasks that
/// run are held, and outside of our pages. What cannot be unmapped is complained of, and stays.
void unmap_ours(State &state, const GroundPointer &ground, HeldTasks &held);

} // namespace ktrace::session
