// attach: the processes that a trace begins with: looked at and planned, then seized one after the other.
#pragma once

#include "trace/trace.h"

namespace ktrace::session {

/// Attaches to the processes of the configuration and arms all probes in them. All are searched before the first is
/// seized: the hits of one could not be served while another is searched. Errors: the reason why one of them is not
/// traced; those seized before it are still traced. given_up: the user does not wait for it any more.
Status attach_to_all(trace::Trace &trace);

/// Starts the plugins, when all processes are there; where a process still waits for its libraries, that is done when
/// no process does. Errors: a plugin's own.
Status add_plugins(trace::Trace &trace);

} // namespace ktrace::session
