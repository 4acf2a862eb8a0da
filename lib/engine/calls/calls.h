// calls: how a call of a return probe begins and how it ends: its instance, the trap at its return address, the counts.
#pragma once

#include <cstddef>
#include <vector>

#include "engine/space/engine.h"
#include "os/tracee/stopped.h"

namespace ktrace::engine {

/// A call of the site's function begins. Takes an instance and traps its return address, or counts it as missed
/// (nullptr).
Instance *begin_call(Engine &engine, Process &process, Task &task, Attachment &attachment, Site &site,
                     os::Stopped &stopped, std::vector<std::byte> captured);

/// A call of the site's function begins that the probe does not follow. Older calls with the same frame have ended.
void pass_call(Engine &engine, Process &process, Task &task, Site &site, os::Stopped &stopped);

/// As begin_call, for a call that began before the task was seen first: `frame` is its place on the stack. Where its
/// return cannot be trapped, the call is left out, and not counted as missed.
void adopt_call(Engine &engine, Process &process, Task &task, Attachment &attachment, Site &site, os::Stopped &stopped,
                const arch::Frame &frame);

void end_returned(Engine &engine, Process &process, Instance &call);
void end_unreturned(Engine &engine, Process &process, Instance &call);
/// It ends by a jump to a function whose end is not seen.
void end_left(Engine &engine, Process &process, Instance &call);
/// It ends with its thread, or with the trace.
void end_unfinished(Engine &engine, Process &process, Instance &call);

/// The task is at the call's return address: true where there was an unwinding since the call began and no return has
/// led here.
bool vanished(Process &process, const Task &task, const Instance &call, os::Stopped &stopped);

/// All calls of the address space end unreturned (exec, the end).
void end_all(Engine &engine, Process &process);

} // namespace ktrace::engine
