// Calls: how a return probe's call begins and returns in the process itself. A hit that is not plain is for ktrace:
// the thread rings (Bell::serve), and ktrace takes its calls over.
#pragma once

#include "agent/inside/hit.h"

namespace ktrace::agent {

/// A call of the site's function begins, and is left as the last of `left.calls`. Costs are not counted yet.
Outcome begin_call(const Hit &hit, Left &left);

/// Calls may have returned to the site. `begin`: of the hit.
Effect end_calls(const Hit &hit, std::uint64_t begin);

/// True where calls that ktrace follows began there, or at a place that comes to the same.
inline bool is_in_ktrace(const Threads &threads, std::uint64_t place) {
    return *static_cast<const volatile std::uint32_t *>(&threads.in_ktrace[place_of(place)]) != 0;
}

} // namespace ktrace::agent
