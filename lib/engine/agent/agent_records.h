// Agent records: what threads have left in their rings becomes records and rows of tables, as if each hit had been a
// stop.
#pragma once

#include "engine/space/engine.h"

namespace ktrace::engine {

/// Of one task, but for rows. It stands, or has ended.
void take_records(Engine &engine, Process &process, Tid tid);

/// Of all tasks, of all address spaces, in order of time. `became_another` has just made an exec: what its tasks are
/// called now is no name of what they did before.
void take_all_records(Engine &engine, const Process *became_another = nullptr);

/// Shows the agent what its processor's counter says now.
void show_clock(const Engine &engine, AgentThreads &threads);

} // namespace ktrace::engine
