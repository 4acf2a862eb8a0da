// Find processes: the words behind -p become processes.
#pragma once

#include "base/result.h"
#include "command_line/invocation.h"

namespace ktrace::cli {

/// Fills in config.pids and list.pid: the processes by number, all that a name fits, and of a thread its process, with
/// notices. Errors: not_found: there is none; usage: a name fits several, and the command looks into one.
Status find_processes(Invocation &into);

} // namespace ktrace::cli
