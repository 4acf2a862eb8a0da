// leave_jump: a task that stops on its way through a jump of ktrace's. It is taken out of it: back to the site, as if
// it had not come yet, or on to where it is in the copy of the program's instructions. So the rooms above, and the
// program's handlers, see no pc but the program's own.
//
// Invariant: a hit is counted as often as its instruction is come to. One that was counted before the task was taken
// back is counted when the task comes again, and once less for that (Jump::undone).
#pragma once

#include "engine/space/engine.h"
#include "os/tracee/stopped.h"

namespace ktrace::engine {

/// At a stop of a signal, an interrupt or job control. Where the site's instruction has faulted, or the program steps
/// itself, the jump is lifted: a trap serves these hits from now on.
void leave_jump(Process &process, Task &task, os::Stopped &stopped);

} // namespace ktrace::engine
