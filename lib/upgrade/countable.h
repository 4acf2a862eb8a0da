// Countable: the sites whose probes do nothing but count.
#pragma once

#include <vector>

#include "engine/space/jumps.h"
#include "engine/space/site.h"

namespace ktrace::upgrade {

/// Why a site needs a stop at each hit; nullptr: its probes only count, and at least one is on.
const char *why_not_countable(const engine::Site &site);

/// The probes that a hit there is counted for.
std::vector<engine::Credit> credits_of(const engine::Site &site);

} // namespace ktrace::upgrade
