// Downloads: when debuginfod may be asked. Until something is armed only the user waits for it, who may have
// enough of it; later a thread of the target's may be waiting at a trap.
#pragma once

namespace ktrace::trace {

void permit_downloads();
void forbid_downloads();

} // namespace ktrace::trace
