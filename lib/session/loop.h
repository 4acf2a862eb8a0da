// loop: stops in, records out, until something ends the trace.
#pragma once

#include "session/state.h"

namespace ktrace::session {

/// Runs until Ctrl-C, SIGTERM, --duration, --max-events, a failed output, or the end of the last traced process.
void trace(State &state);

} // namespace ktrace::session
