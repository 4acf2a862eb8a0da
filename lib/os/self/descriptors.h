// Descriptors that this process was started with. Where a standard one is closed, the next file that is opened would
// take its place, and get the output that is meant for a reader. And the limit of their number: each file that a traced
// process has mapped takes one.
//
// Invariants: programs that are started have the limits that ktrace was started with.
#pragma once

#include "base/result.h"

namespace ktrace::os {

/// Puts something in the place of standard descriptors that are closed: using it fails with EBADF, as before, and a
/// program that is started finds it closed. Call it before anything is opened.
void hold_standard_descriptors();

/// From now on this process may have as many as the system allows it (RLIMIT_NOFILE, setrlimit(2)). Errors: refused:
/// these are too few for anything.
Status allow_many_descriptors();

/// As it was before: in a child that is to become another program. Only makes a system call.
void restore_descriptor_limit();

} // namespace ktrace::os
