// settle: what a stop means beyond its own task: a process starts, execs, ends; its loader has news.
#pragma once

#include "engine/hit/dispatch.h"
#include "trace/trace.h"

namespace ktrace::lifecycle {

/// Does what an Event asks for; its task runs on (or was let go).
void handle_event(trace::Trace &trace, engine::Event event);

/// A task was found to be gone without a stop that said so.
void handle_end(trace::Trace &trace, Tid tid);

} // namespace ktrace::lifecycle
