// Start: how the host comes to have all that is its own in one window of the address space, so that every other address
// can be the target's.
//
// The kernel places a program where it likes. So the first thing that the host does is to start itself again within the
// same process: everything but the window is reserved, the dynamic loader is mapped, of necessity into the window, and
// run; it maps the host's program and libraries there. Then what the kernel had placed is given up.
//
// Invariant: from the return of `leave_old_places` on, no mapping but those in the window is accessible, and none is
// made by the kernel's choice anywhere else.
#pragma once

#include "plugin/wire.h"

namespace ktrace::plugin::host {

/// Starts the program anew in the window, with the same arguments and `mark` in front. Returns why that is not
/// possible.
const char *start_in(const Window &window, const char *mark, int argc, char **argv);

/// In the program that start_in has started. False: something could not be given up.
bool leave_old_places(const Window &window);

} // namespace ktrace::plugin::host
