// progress: the live line of `attach`: how fast hits come and what they cost, on the terminal.
#pragma once

#include <memory>

#include "output/live_line.h"
#include "trace/trace.h"

namespace ktrace::report {

/// nullptr where there is to be none: with -q, or where standard error is no terminal. Call it in the tracing thread.
std::shared_ptr<output::LiveLine> open_live_line(const trace::Config &config);

/// A voice that takes the line away while it says something. `line` may be nullptr; it outlives the voice.
trace::Voice beside(output::LiveLine *line, const trace::Voice &voice);

/// The line is there from now on.
void begin_progress(trace::Trace &trace);
/// Answers what the line asks, if it does. For the loop, between stops.
void tell_progress(trace::Trace &trace);

} // namespace ktrace::report
