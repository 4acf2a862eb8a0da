// Descriptors that this process was started with. Where a standard one is closed, the next file that is opened would
// take its place, and what is meant for a reader would be written to it.
#pragma once

namespace ktrace::os {

/// Puts something in the place of standard descriptors that are closed: using it fails with EBADF, as before, and a
/// program that is started finds it closed. Call it before anything is opened.
void hold_standard_descriptors();

/// Lets go of all descriptors that this process was started with: whoever waits for the end of a pipe is not to wait
/// for this process. The standard ones become /dev/null. Those that were opened since have FD_CLOEXEC, and stay.
void drop_inherited_descriptors();

} // namespace ktrace::os
