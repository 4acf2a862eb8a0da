// settle: what a stop means beyond its own task: a process starts, execs, ends; its loader has news.
#pragma once

#include "session/state.h"
#include "trap/dispatch.h"

namespace ktrace::session {

/// Does what an Event asks for; its task runs on (or was let go).
void settle(State &state, trap::Event event);

/// A task was found to be gone without a stop that said so.
void settle_ended(State &state, Tid tid);

} // namespace ktrace::session
