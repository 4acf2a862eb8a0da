// Clocks: CLOCK_MONOTONIC for durations and order, CLOCK_REALTIME for what is shown; both in nanoseconds.
#pragma once

#include <cstdint>
#include <ctime>

namespace ktrace {

inline std::uint64_t clock_ns(clockid_t clock) {
    timespec ts;
    ::clock_gettime(clock, &ts);
    return static_cast<std::uint64_t>(ts.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(ts.tv_nsec);
}

inline std::uint64_t monotonic_ns() { return clock_ns(CLOCK_MONOTONIC); }
inline std::uint64_t realtime_ns() { return clock_ns(CLOCK_REALTIME); }

} // namespace ktrace
