// inject: makes the changes of a program in a stopped thread. All registers are set by the one write before its resume
// (memory before that). So a tracer that is killed leaves the thread unchanged or wholly changed.
#pragma once

#include "engine/space/engine.h"
#include "os/tracee/stopped.h"
#include "program/run/changes.h"

namespace ktrace::engine {

/// Makes the changes, except skipping the function. True: the pc is among them.
bool make_changes(Process &process, const program::Changes &changes, os::Stopped &stopped);

/// The function, at whose first instruction the thread is, returns at once. False: its return address cannot be read.
bool skip_function(Process &process, VirtAddr function, os::Stopped &stopped);

} // namespace ktrace::engine
