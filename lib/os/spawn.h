// spawn: starts a program that is seized before its first instruction.
#pragma once

#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "os/interrupts.h"
#include "os/wait.h"

namespace ktrace::os {

/// Starts `program` (looked up in PATH, as execvp does), seized, and waits for its exec; its signals are as
/// `interrupts` found them. `guardian` may trace it, too. Returns its id; its task is in the exec event's stop
/// (consumed; see Waiter). Errors: not_found (no such program), denied (cannot be run: exec's reason), system (ktrace
/// cannot trace it).
Result<Pid> spawn_seized(Waiter &waiter, const Interrupts &interrupts, Pid guardian,
                         const std::vector<std::string> &program);

} // namespace ktrace::os
