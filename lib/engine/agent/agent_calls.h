// Agent calls: the calls in flight that the agent of a process follows become the engine's own, where their end, or
// what else becomes of them, is for a stop to see.
//
// Invariant: a call is the agent's or the engine's. It goes from the one to the other once, while its task stands, and
// those that are younger than it go with it.
#pragma once

#include "engine/space/engine.h"
#include "engine/space/returns.h"

namespace ktrace::engine {

/// Those of a task that stands, or has ended, whose return addresses lie at `up_to` or below. Calls whose end would not
/// be seen end as unreturned.
void take_over_calls(Engine &engine, Process &process, Task &task, VirtAddr up_to = VirtAddr{~std::uint64_t{0}});

/// ktrace has not run for so long that hits have passed by: calls in flight may have returned unseen.
void doubt_all_calls(Engine &engine);

/// Calls in flight that will not be seen to return count as unreturned now, not when their thread ends.
void count_lost_calls(Engine &engine);

/// Calls of a probe are under way in the task that the agent follows.
bool has_agent_call(Process &process, const Task &task, const Attachment &attachment);

/// The call has ended, and took so long. True: that was spent inside a call that the agent follows, and is noted there.
bool add_to_agent_caller(const Engine &engine, Process &process, const Task &task, const Instance &call,
                         std::uint64_t ns);

} // namespace ktrace::engine
