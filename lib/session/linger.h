// linger: the end of a trace for those who sleep in a call that must not be interrupted: the ktrace that was started
// ends, and the tracing process waits, alone and in the background, until they wake up by themselves.
#pragma once

#include "session/detach.h"

namespace ktrace::session {

/// Tells for whom it waits, and waits. Call it in the tracing thread, when all else was told; `status`: what the ktrace
/// that was started is to end with. Returns when everybody has been let go. A signal (SIGTERM) has who still sleeps
/// interrupted.
void linger(State &state, Leaving &leaving, int status);

/// The same in the foreground, for as long as `go_on`; who sleeps on then is interrupted.
void wait_for_sleepers(State &state, Leaving &leaving, const std::function<bool()> &go_on);

/// Where the tracing process of another ktrace lingers for this process, it is told to end that, and has let go of it
/// when this returns. False: there was none, or it does not obey.
bool end_lingering(Pid pid);

} // namespace ktrace::session
