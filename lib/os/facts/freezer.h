// The freezers of control groups (cgroups(7)): a frozen process does nothing that it is asked to do before it is
// thawed.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"

namespace ktrace::os {

/// A control group that can freeze a process.
struct Freezer {
    std::string folder;
    bool legacy = false; // of version 1

    /// The command that thaws it.
    std::string thawing() const;
};

/// The groups that a process is in, and those above, as far as they are to be seen: by /proc/PID/cgroup and
/// /proc/self/mountinfo. Pure.
std::vector<Freezer> parse_freezers(std::string_view groups, std::string_view mounts);

/// The one that keeps the process from running now; nothing: none that is to be seen from here.
std::optional<Freezer> frozen_by(Pid pid);

} // namespace ktrace::os
