// unmap: ktrace's pages are unmapped in an address space that is being left, and each process gets its action for
// SIGTRAP back.
#pragma once

#include "tracees/stop.h"

namespace ktrace::tracees {

/// Done by tasks that are `held`; of a process in which all sleep, one is stopped for it (choice.h) and held, too. All
/// tasks that run are held, and outside of ktrace's pages. A page that cannot be unmapped stays, with a complaint.
/// False: nothing was done, since no task of one of the processes can be stopped.
bool unmap_ours(trace::Trace &trace, const SpacePointer &space, HeldTasks &held);

} // namespace ktrace::tracees
