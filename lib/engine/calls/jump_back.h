// jump_back: jumps of a function to its own first instruction (a loop whose head is the entry, a call of itself that
// the compiler has made a jump). The task is in the same call then: entry and return probes do not count it again,
// while probes on the instruction do.
//
// Invariant: the task comes from such a jump to the entry with the stack pointer that it had. A handler that runs in
// between has another one.
#pragma once

#include "engine/space/engine.h"
#include "os/tracee/stopped.h"

namespace ktrace::engine {

/// At a jump or branch of a function to its own first instruction.
extern const InternalPurpose jumps_back;

/// At that first instruction, where it is an entry or return probe's: hits there need the stops of the jumps.
extern const InternalPurpose is_jumped_back_to;

/// At a hit of the site: true where the task has come by such a jump, which is forgotten.
bool take_jump_back(Task &task, const Site &site, os::Stopped &stopped);

} // namespace ktrace::engine
