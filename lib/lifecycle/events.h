// events: what a stop means beyond its own task: a process starts, execs, ends; its loader has news.
#pragma once

#include "engine/hit/dispatch.h"
#include "trace/trace.h"

namespace ktrace::lifecycle {

/// For trace::EventHandlers, which says what they do.
void handle_event(trace::Trace &trace, engine::Event event);
void handle_end(trace::Trace &trace, Tid tid);

inline constexpr trace::EventHandlers event_handlers{handle_event, handle_end};

} // namespace ktrace::lifecycle
