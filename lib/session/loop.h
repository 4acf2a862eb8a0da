// loop: stops in, records out, until something ends the trace.
#pragma once

#include "trace/trace.h"

namespace ktrace::session {

/// Runs until Ctrl-C, SIGTERM, --duration, --max-events, a failed output, or the end of the last traced process.
void run_loop(trace::Trace &trace);

/// Passes a signal to ktrace on to the program that it has started. Ctrl-C is not passed on: the terminal sends it to
/// both.
void pass_on(Pid program, int signal);

} // namespace ktrace::session
