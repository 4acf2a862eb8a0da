// inject: does to a stopped thread what a program has asked for. Everything goes to the thread with the one write that
// lets it go (memory before it), so a tracer that is killed leaves it as it was or as it was to be.
#pragma once

#include "engine/space/engine.h"
#include "os/tracee/stopped.h"
#include "program/run/changes.h"

namespace ktrace::engine {

/// Makes the changes, but for skipping. True: the pc is among them.
bool make_changes(Process &process, const program::Changes &changes, os::Stopped &stopped);

/// The function, at whose first instruction the thread is, returns at once. False: its return address cannot be read.
bool skip_function(Process &process, VirtAddr function, os::Stopped &stopped);

} // namespace ktrace::engine
