// attach: the processes that a trace begins with: looked at and planned, then taken one after the other.
#pragma once

#include "trace/trace.h"

namespace ktrace::session {

/// Attaches to the processes of the configuration and arms all probes in them. All are searched before the first is
/// taken: nobody serves the hits of one while another is searched. Errors: what keeps one of them from being traced;
/// those that were taken before it are traced still. given_up: the user does not wait for it any more.
Status attach_to_all(trace::Trace &trace);

/// Starts the plugins, when all processes are there; where a process still waits for its libraries that is done when
/// none does any more. Errors: a plugin's own.
Status add_plugins(trace::Trace &trace);

} // namespace ktrace::session
