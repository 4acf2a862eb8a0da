// linger: the end of a trace for those who sleep in a call that must not be interrupted: the ktrace that was started
// ends, and the tracing process waits, alone and in the background, until they wake up by themselves.
#pragma once

#include "tracees/detach.h"

namespace ktrace::tracees {

/// Tells for whom it waits, and waits. Call it in the tracing thread, when all else was told; `status`: what the ktrace
/// that was started is to end with. Returns when everybody has been let go, or another ktrace has asked for one of the
/// processes (handover): then with the others. The thread is to end, and they are to be waited for anew. A signal
/// (SIGTERM) has who still sleeps interrupted.
std::vector<Pid> linger(trace::Trace &trace, Leaving &leaving, int status);

/// Waits, as linger, for processes that nobody waits for any more. The calling thread traces nothing.
std::vector<Pid> linger_on(const std::vector<Pid> &pids, const trace::Voice &voice, os::OwnSignals &interrupts);

/// The same in the foreground, for as long as `go_on`; who sleeps on then is interrupted.
void wait_for_sleepers(trace::Trace &trace, Leaving &leaving, const std::function<bool()> &go_on);

/// Where the tracing process of another ktrace lingers for this process, it is told to end that, and has let go of it
/// when this returns; who sleeps is interrupted. False: there was none, or it does not obey.
bool end_lingering(Pid pid);

} // namespace ktrace::tracees
