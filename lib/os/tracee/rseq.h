// Restartable sequences, rseq(2): a few instructions that a thread must make on one processor and without a break.
#pragma once

#include <optional>

#include "base/addr.h"
#include "base/ids.h"

namespace ktrace::os {

/// Where a stopped task goes on that stands in a restartable sequence, at `pc`: the sequence was broken off, since
/// others have run meanwhile. The kernel sees to that when the task goes on, but only if it stands there still: after
/// a system call for us elsewhere it takes the sequence to be over. Nothing: it stands in none.
std::optional<VirtAddr> abort_of_sequence(Tid task, VirtAddr pc);

} // namespace ktrace::os
