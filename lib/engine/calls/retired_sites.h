// Retired sites: sites whose memory is gone (dlclose). Nothing is written there any more. Calls that would have
// returned to there have ended. A slot is handed out again once every task was seen outside of all slots.
#pragma once

#include "engine/space/engine.h"

namespace ktrace::engine {

/// Forgets all sites in [start, end), which is not mapped any more, or holds something else by now. Calls of functions
/// in there, and calls that return to there, end as unreturned.
void retire_site(Engine &engine, Process &process, VirtAddr start, VirtAddr end);

/// Makes the slots of retired sites free again, as far as all tasks were seen outside of them since. No task is stopped
/// for it: one that runs all the time without a hit keeps the slots from being used.
void reuse_slots(Engine &engine, AddressSpaceState &space);

} // namespace ktrace::engine
