// Tasks: `current`, for each thread that a handler has run for.
#pragma once

#include <cstdint>

struct task_struct;

namespace ktrace::plugin::host {

/// The handlers that follow run for this thread.
void set_current(std::int32_t pid, std::int32_t tid);
/// The struct of the current thread; it stays as long as the host knows of a call of that thread's in flight.
task_struct *current_task();

/// A call in flight keeps its thread's struct (and lets go of it).
void hold_task(task_struct *task);
void release_task(task_struct *task);

/// A handler looks at a thread's comm, at `address`: reads it. False: nothing of that kind is there.
bool fill_in_comm(std::uint64_t address);
/// Facts that were read may change: they are read again at their next use.
void forget_comms();

} // namespace ktrace::plugin::host
