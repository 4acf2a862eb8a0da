// Readable: the memory of a process that its agent may read by itself.
#pragma once

#include <vector>

#include "agent/layout.h"
#include "engine/space/engine.h"
#include "os/proc/procfs.h"

namespace ktrace::engine {

/// Of the mappings, those that are read without a trap of ktrace's coming along (no code), and without an effect (no
/// device). At most agent::most_ranges; stops read the rest.
std::vector<agent::Range> readable_ranges(const std::vector<os::Mapping> &maps);

/// Shows the agent of the process what there is now. Nothing where that was done just before, unless it is `urgent`.
void list_readable(Process &process, bool is_urgent);

/// True: the agent would read there by itself.
bool is_listed(const Process &process, std::uint64_t at);

} // namespace ktrace::engine
