// Short slices: a thread that looks at others at times of its own comes to a processor soon after it has woken up.
#pragma once

namespace ktrace::os {

/// The calling thread asks the scheduler for slices of a tenth of a millisecond (sched_setattr(2); since Linux 6.12):
/// one that wakes up is then put before a thread that computes, and has no more of the processor than before. Elsewhere
/// nothing changes.
void ask_for_short_slices();

} // namespace ktrace::os
