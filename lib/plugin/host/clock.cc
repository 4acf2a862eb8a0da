#include "plugin/host/clock.h"

#include <ctime>

namespace ktrace::plugin::host {

namespace {

std::uint64_t begins_ns = 0;   // what it says first; 0: it is the monotonic one
std::uint64_t asked_at_ns = 0; // when that was; 0: not yet

std::uint64_t monotonic_ns() {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(now.tv_nsec);
}

} // namespace

void start_handler_clock(std::uint64_t now_ns) {
    begins_ns = now_ns;
    asked_at_ns = 0;
}

std::uint64_t handler_clock_ns() {
    std::uint64_t now = monotonic_ns();
    if (begins_ns == 0) return now;
    if (asked_at_ns == 0) asked_at_ns = now;
    return begins_ns + (now - asked_at_ns);
}

} // namespace ktrace::plugin::host
