// Clock: what ktime_get() says in a handler: the monotonic clock, less the time in which the thread was stopped since
// the call began that a return handler runs for.
#pragma once

#include <cstdint>

namespace ktrace::plugin::host {

/// A handler begins; the clock says `now_ns` then.
void start_handler_clock(std::uint64_t now_ns);
std::uint64_t handler_clock_ns();

} // namespace ktrace::plugin::host
