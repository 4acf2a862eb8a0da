// calls: how a call of a return probe begins and how it ends: its instance, the trap at its return address, the counts.
#pragma once

#include <cstddef>
#include <vector>

#include "os/stopped.h"
#include "trap/world.h"

namespace ktrace::trap {

/// A call of the site's function begins. Takes an instance and traps its return address, or counts it as missed
/// (nullptr).
Instance *begin_call(World &world, Traced &traced, Task &task, Armed &armed, Site &site, os::Stopped &stopped,
                     std::vector<std::byte> captured);

/// The same for a call that began before it was seen: `frame` is where it is on the stack. Nobody is told where it is
/// not seen to end.
void adopt_call(World &world, Traced &traced, Task &task, Armed &armed, Site &site, os::Stopped &stopped,
                const arch::Frame &frame);

void end_returned(World &world, Traced &traced, Instance &call);
void end_unreturned(World &world, Traced &traced, Instance &call);

/// A trap there would break off a restartable sequence each time.
bool is_in_sequence(Traced &traced, const Site &site);

/// True where an exception or longjmp has passed since the call began and its frame is no longer there.
bool vanished(Traced &traced, const Task &task, const Instance &call);

/// All calls of the address space end unreturned (exec, the end).
void end_all(World &world, Traced &traced);

} // namespace ktrace::trap
