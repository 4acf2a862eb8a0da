// Named processes: which processes a name means, as with pidof and pgrep -x.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"

namespace ktrace::os {

struct NamedProcesses {
    std::vector<Pid> own;    // that this user may trace, by number: of root, all
    std::vector<Pid> others; // of other users
};

/// Processes whose comm, or whose executable's base name, is exactly `name`; neither this one nor threads of the
/// kernel's, nor any that has ended.
NamedProcesses processes_named(std::string_view name);

/// The comms of all processes, each once.
std::vector<std::string> process_names();

} // namespace ktrace::os
