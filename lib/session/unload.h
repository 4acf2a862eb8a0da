// unload: libraries that a process has let go of (dlclose). What was armed in them is forgotten; it is armed again when
// they are loaded again, wherever that is.
#pragma once

#include "base/result.h"
#include "session/state.h"

namespace ktrace::session {

/// Brings the list of the process's modules up to date. What was armed in one that is not loaded any more is forgotten:
/// its memory is not touched. Errors: gone.
Status refresh_modules(State &state, trap::Traced &traced);

} // namespace ktrace::session
