// Agent rows: what threads have added to their own rows (agent::Row) comes to the tables.
#pragma once

#include <cstdint>

#include "engine/space/engine.h"
#include "engine/space/jumps.h"

namespace ktrace::engine {

/// Of one thread, which may run.
void take_rows(Engine &engine, const Process &process, AgentThreads::Place &place);

/// A record for a table was read; `value`: its value, where it has one that could be read. Where such ones come often,
/// and the table can be had as rows, the thread gets one.
void consider_row(const Engine &engine, AgentThreads &threads, AgentThreads::Place &place, const AgentRun &run,
                  const Credit &credit, const std::uint64_t *value);

} // namespace ktrace::engine
