// Clock: ktime_get() in a handler: the monotonic clock, less the time in which the thread was stopped since the
// beginning of the call that a return handler runs for. It stands until the handler first asks for it: the work before
// that (pages to be fetched) may take longer than the call did, whose duration would be negative.
#pragma once

#include <cstdint>

namespace ktrace::plugin::host {

/// A handler begins; the clock will say `now_ns` first. 0: it is the monotonic one.
void start_handler_clock(std::uint64_t now_ns);
std::uint64_t handler_clock_ns();

} // namespace ktrace::plugin::host
