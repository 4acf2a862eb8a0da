// dispatch: serves one stop: gather reads its facts, classify decides on them, apply carries the verdict out, and the
// task is resumed. A stop that concerns more than one task and its sites (new processes, exec, the end, the loader)
// goes up as an Event.
#pragma once

#include "engine/hit/apply.h"
#include "engine/hit/resume.h"
#include "engine/space/engine.h"
#include "os/tracee/wait.h"

namespace ktrace::engine {

/// Handles one stop.
Event dispatch(Engine &engine, const os::Stop &stop);

} // namespace ktrace::engine
