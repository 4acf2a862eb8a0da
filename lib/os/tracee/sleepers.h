// sleepers: the calls in which tasks slept when they were interrupted, where the registers do not show that at their
// stop (HostNative::moves_to_restart): a call that fails with EINTR has lost its first argument by then.
#pragma once

#include <optional>

#include "base/ids.h"
#include "os/proc/procfs.h"

namespace ktrace::os {

/// Right before the task is interrupted; and where it stands at the entry of a call that is made again.
void note_sleeper(Tid tid);

/// At a stop of the task: the call that it was asleep in, or on its way to sleep in from its noted entry, when it was
/// interrupted last. Nothing: it ran then, or has run or slept again since.
std::optional<TaskPlace> noted_sleeper(Tid tid);

} // namespace ktrace::os
