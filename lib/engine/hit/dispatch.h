// dispatch: one stop comes in, everything that follows from it is done, the task runs on: gather (what is known),
// classify (what it means), apply (what is done). What is not about one task and its sites (new processes, exec, the
// end, a loader's news) goes up as an Event.
#pragma once

#include "engine/hit/apply.h"
#include "engine/hit/resume.h"
#include "engine/space/engine.h"
#include "os/tracee/wait.h"

namespace ktrace::engine {

/// Handles one stop.
Event dispatch(Engine &engine, const os::Stop &stop);

} // namespace ktrace::engine
