// repeated_hit: hits that were counted before. A signal that comes before a probed instruction has run is delivered at
// the site: when the task comes back to it, it is the same hit. The same holds where a Go function has found its stack
// too small and begins again.
//
// Invariant: the task comes back by nothing but the return from that signal's handler, with the site and the stack
// pointer as they were. A handler that returns to elsewhere, or leaves by siglongjmp, gives the hit up: the next one
// there is another. So the task stops at its system calls from such a signal on, until the one that returns from the
// handler (rt_sigreturn) shows where it leads.
#pragma once

#include "engine/space/engine.h"
#include "os/tracee/stopped.h"

namespace ktrace::engine {

/// The task stands at a site whose hit has been counted, and whose instruction has not run.
void remember_hit(Task &task, VirtAddr site, os::Stopped &stopped);

/// The task does not come back to it.
void forget_hit(Task &task);

/// A signal is about to be delivered to the task.
void follow_handler(Task &task, os::Stopped &stopped, int signal);

/// The stop of a system call in a handler that is followed.
void see_return(Process &process, Task &task, os::Stopped &stopped);

/// At a hit: true where it is the same as before, or its function has begun again. Nothing is changed.
bool is_repeated_hit(const AddressSpaceState &space, const Task &task, const Site &site, os::Stopped &stopped);

/// That hit is being handled: it is forgotten.
void take_hit(AddressSpaceState &space, Task &task, const Site &site, os::Stopped &stopped);

} // namespace ktrace::engine
