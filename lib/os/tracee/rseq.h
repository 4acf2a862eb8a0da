// Restartable sequences, rseq(2): a few instructions that a thread must make on one processor and without a break.
#pragma once

#include <optional>

#include "base/addr.h"
#include "base/ids.h"

namespace ktrace::os {

/// Where to resume a stopped task that is in a restartable sequence, at `pc`: the sequence is aborted, since other
/// tasks have run meanwhile. The kernel aborts it when the task is resumed, but only if it is still there: after an
/// injected call elsewhere it takes the sequence to be over. Nothing: it stands in none.
std::optional<VirtAddr> abort_of_sequence(Tid task, VirtAddr pc);

} // namespace ktrace::os
