// Countable: the sites whose hits need no stop: a stub counts them, or the agent runs their program; and why one stays
// a trap.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/space/jumps.h"
#include "engine/space/site.h"
#include "trace/trace.h"

namespace ktrace::upgrade {

/// Calls return to there, and that is all.
bool is_return_site(const engine::Site &site);

/// Why a site needs a stop at each hit; nullptr: it needs none, and at least one probe is on.
const char *why_not_countable(const engine::Site &site);

/// The programs that the agent runs there, one for each probe that is on, as credits_of has them; none: a stub counts.
/// Without their places.
std::vector<engine::AgentRun> runs_of(const engine::Site &site);

/// The probes that a hit there is counted for.
std::vector<engine::Credit> credits_of(const engine::Site &site);

/// A jump whose window holds the site would serve both: it is needed there. Breakpoints of former jumps are not.
bool is_in_the_way(const engine::Site &site);

/// The site of a jump that was planned some time ago is a trap still whose hits need no stop, and none is needed in the
/// rest of the window.
bool may_become(const engine::AddressSpaceState &space, const engine::Jump &jump);

/// Why an armed site is a trap; nothing: a jump is there. Words for the user.
std::optional<std::string> why_trap(const trace::Trace &trace, const engine::AddressSpaceState &space, VirtAddr at);

} // namespace ktrace::upgrade
