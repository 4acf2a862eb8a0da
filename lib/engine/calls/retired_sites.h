// RetiredSite: sites whose memory is gone (dlclose). Nothing is written there any more; calls that would have returned
// to there are over; a slot is handed out again once every task was seen outside of all slots.
#pragma once

#include "engine/space/engine.h"

namespace ktrace::engine {

/// Forgets everything of ours in [start, end), which is not mapped any more, or holds something else by now. Calls of
/// functions in there, and calls that return to there, end as unreturned.
void retire_site(Engine &engine, Process &process, VirtAddr start, VirtAddr end);

/// Makes the slots of buried sites free again, as far as all tasks were seen outside of them since. Nobody is stopped
/// for it: a task that has run all the time without a hit keeps them from being used.
void reuse_slots(Engine &engine, AddressSpaceState &space);

} // namespace ktrace::engine
