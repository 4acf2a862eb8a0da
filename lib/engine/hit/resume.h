// resume: how a stopped task goes on, whatever it has stopped for.
#pragma once

#include "engine/space/engine.h"
#include "os/tracee/stopped.h"

namespace ktrace::engine {

/// Lets a task go on in what it is in the middle of, with this signal (0: none), and keeps the books on the time for
/// which it was stopped.
void continue_task(Engine &engine, Task &task, os::Stopped stopped, int signal = 0);

} // namespace ktrace::engine
