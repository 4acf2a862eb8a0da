// events: serves the events of a stop that concern more than its task: a process starts, execs, ends; its loader has
// mapped or unmapped a library.
#pragma once

#include "engine/hit/dispatch.h"
#include "trace/trace.h"

namespace ktrace::lifecycle {

/// See trace::EventHandlers.
void handle_event(trace::Trace &trace, engine::Event event);
void handle_end(trace::Trace &trace, Tid tid);

inline constexpr trace::EventHandlers event_handlers{handle_event, handle_end};

} // namespace ktrace::lifecycle
