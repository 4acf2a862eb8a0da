// timing: how long a call of a return probe took by itself, without what ktrace did to its thread: reads and compares
// the clocks of engine/space/clocks.h.
#pragma once

#include <cstdint>

#include "engine/space/clocks.h"
#include "os/tracee/stopped.h"

namespace ktrace::engine {

struct Attachment;
struct Instance;
struct Task;
struct Engine;

/// Does anybody ask how long its calls take?
bool is_timed(const Attachment &attachment);

/// A call of this probe begins: where somebody asks for its time, the task is recorded from now on.
void begin_recording(const Engine &engine, Task &task, const Attachment &attachment);

/// The task has stopped; for one with calls in flight.
void note_stop(Task &task, os::Stopped &stopped);
/// It goes on now, with nothing more to write; the clocks of calls that began in this stop start.
void note_resume(Engine &engine, Task &task, const os::Stopped &stopped);

/// How long the call took, which ends with a stop of the task's that was seen at `seen_ns`; 0 where nobody asks.
std::uint64_t duration(Engine &engine, const Task &task, const Instance &call, std::uint64_t seen_ns);

} // namespace ktrace::engine
