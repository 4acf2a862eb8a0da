// sleepers: where tasks slept in calls when they were interrupted. Some architectures do not show at a stop whether a
// call has just failed with EINTR there (HostNative::moves_to_restart): a handler may have returned to behind one that
// had.
#pragma once

#include <optional>

#include "base/ids.h"
#include "os/proc/procfs.h"

namespace ktrace::os {

/// Right before the task is interrupted.
void note_sleeper(Tid tid);

/// The task is about to be resumed.
void resume_sleeper(Tid tid);

/// At a stop of the task, of which the interrupt is the reason or which came before it: where it slept when it was
/// interrupted. A call that fails there with EINTR is one that the task has made since, as no handler was run in
/// between.
std::optional<TaskPlace> noted_sleeper(Tid tid);

} // namespace ktrace::os
