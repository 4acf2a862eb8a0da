// The name by which ps, pgrep and killall know this process.
#pragma once

#include <string>

namespace ktrace::os {

/// From now on this process is called `name` (15 bytes of it, prctl(2), PR_SET_NAME), and its command line reads
/// `command` as far as there is room (/proc/PID/cmdline shows memory that the arguments of main() lie in). The
/// arguments of main() are overwritten, and may not be read meanwhile. Of its threads the first and the calling one get
/// the name, and those that they start.
void set_title(const std::string &name, const std::string &command);

} // namespace ktrace::os
