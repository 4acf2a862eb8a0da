// Agent stops: what a task's stop means for the agent of its process: that the task is one that the agent does not
// know, that its ring is full, that a hit is for ktrace, or that the task begins or ends.
#pragma once

#include "engine/space/engine.h"
#include "os/tracee/stopped.h"

namespace ktrace::engine {

/// Before anything else is done at a stop: takes the task's records (see_agent_records). A task that has rung is led
/// back to its site, so that it comes to the jump once more (Task::has_rung), or, where the hit is for ktrace, behind
/// the site's trap.
void see_agent_stop(Engine &engine, Process &process, Task &task, os::Stopped &stopped);

/// Takes the records of a task that is in no jump: that of a hit which is under way may be taken back.
void see_agent_records(Engine &engine, Process &process, const Task &task, os::Stopped &stopped);

/// The task is about to be resumed: the stop was no part of the calls that the agent times.
void leave_stop_out(const Engine &engine, Process &process, const Task &task, os::Stopped &stopped);

/// A task has ended or was detached. Its calls have been taken over.
void part_with_agent(Engine &engine, Process &process, Tid tid);

} // namespace ktrace::engine
