// The three standard descriptors. Where one is closed, the next file that is opened would take its place, and what is
// meant for a reader would be written to it.
#pragma once

namespace ktrace::os {

/// Puts something in the place of standard descriptors that are closed: using it fails with EBADF, as before, and a
/// program that is started finds it closed. Call it before anything is opened.
void hold_standard_descriptors();

} // namespace ktrace::os
