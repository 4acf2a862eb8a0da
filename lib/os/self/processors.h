// Processors: all processors of the machine, brought to one point.
#pragma once

namespace ktrace::os {

/// Returns when every processor has come by the kernel since the call, and so sees code as it was written before it
/// (membarrier(2), MEMBARRIER_CMD_GLOBAL: 7 to 12 ms; no task is stopped). False: the kernel does not do that
/// (nohz_full, a seccomp filter).
bool synchronize_processors();

} // namespace ktrace::os
