// Where in the address space a plugin host can live so that every address of a target's stays free for the target.
#pragma once

#include <optional>
#include <vector>

#include "os/proc/procfs.h"
#include "plugin/wire.h"

namespace ktrace::plugin {

inline constexpr unsigned window_attempts = 7;

/// A window in the widest hole of `maps` (of all processes that are traced), far from its edges, where the targets'
/// heaps, stacks and libraries grow. `attempt`, from 0: another place, for when a host cannot be had there. Pure.
std::optional<Window> choose_window(std::vector<os::Mapping> maps, unsigned attempt);

/// Is any of the window mapped in the process? Asks the kernel for that alone where it can answer (Linux 6.11), else
/// reads all of its maps.
bool is_taken(Pid pid, const Window &window);

} // namespace ktrace::plugin
