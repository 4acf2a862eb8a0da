// timing: the duration of a return probe's call, without the time that ktrace took from its thread: reads and compares
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

/// True where durations of its calls are asked for.
bool is_timed(const Attachment &attachment);

/// A call of this probe begins: where its duration is asked for, the task's switches are recorded from now on.
void begin_recording(const Engine &engine, Task &task, const Attachment &attachment);

/// The task has stopped; for one with calls in flight.
void note_stop(Task &task, os::Stopped &stopped);
/// The task is about to be resumed, with nothing more to write: the clocks of calls that began in this stop start.
void note_resume(Task &task, os::Stopped &stopped);

/// An interrupt of ktrace's has found the task in a system call that goes on, and ends when it would have: the stop has
/// taken nothing from it.
bool is_asleep(os::Stopped &stopped);

/// The time of a call that ends with a stop of the task's, seen at `seen_ns`; all 0 where it is not asked for.
program::Duration duration(Engine &engine, const Task &task, const Instance &call, std::uint64_t seen_ns);

/// The call has ended, and took so long: that was spent inside the call that made it.
void add_to_caller(const Instance &call, std::uint64_t ns);
/// The same of a call that the task has made inside its youngest one, and that has ended.
void add_to_youngest(const Task &task, std::uint64_t ns);

/// The task's clocks leave time out that it has spent in the agent.
void leave_out(TaskClock &clock, std::uint64_t ns);

} // namespace ktrace::engine
