// Downloads: when debuginfod may be asked. Until something is armed only the user waits for it, and may end the wait;
// later a thread of the target may be waiting at a trap.
#pragma once

namespace ktrace::trace {

void permit_downloads();
void forbid_downloads();

} // namespace ktrace::trace
