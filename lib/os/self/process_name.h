// What ps, pgrep and killall know this process by.
#pragma once

#include <string>

namespace ktrace::os {

/// From now on this process is called `name` (15 bytes of it, prctl(2), PR_SET_NAME), and its command line reads
/// `command` as far as there is room (/proc/PID/cmdline shows memory that the arguments of main() lie in). What main()
/// was given is overwritten, and nobody may read that meanwhile. Of its threads the first and the calling one get the
/// name, and those that they start.
void set_title(const std::string &name, const std::string &command);

} // namespace ktrace::os
