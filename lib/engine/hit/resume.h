// resume: resumes a stopped task, for every kind of stop.
#pragma once

#include "engine/space/engine.h"
#include "os/tracee/stopped.h"

namespace ktrace::engine {

/// Resumes a task in the step or call that it is in the middle of, with this signal (0: none), and counts the time for
/// which it was stopped.
void continue_task(Engine &engine, Task &task, os::Stopped stopped, int signal = 0);

} // namespace ktrace::engine
