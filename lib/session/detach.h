// detach: leaves a process as it was: all bytes back and checked, every task out of the slots, our pages unmapped,
// signals kept, nobody disturbed who sleeps.
#pragma once

#include "session/state.h"

namespace ktrace::session {

/// Detaches from all processes. What could not be put back is complained of. Tasks that sleep in the kernel stay traced
/// (by nothing but name) until this thread ends, which lets them go without waking them.
void detach_all(State &state);

} // namespace ktrace::session
