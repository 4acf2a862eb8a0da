// Clock: what ktime_get() says in a handler: the monotonic clock, less the time in which the thread was stopped since
// the call began that a return handler runs for. It stands until the handler asks for it: what comes before that, pages
// to be fetched among it, would make a call that took less than that take less than nothing.
#pragma once

#include <cstdint>

namespace ktrace::plugin::host {

/// A handler begins; the clock will say `now_ns` first. 0: it is the monotonic one.
void start_handler_clock(std::uint64_t now_ns);
std::uint64_t handler_clock_ns();

} // namespace ktrace::plugin::host
