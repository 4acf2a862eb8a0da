#include "plugin/host/clock.h"

#include <ctime>

namespace ktrace::plugin::host {

namespace {

std::uint64_t ahead_ns = 0; // of the handler's clock, by the monotonic one

std::uint64_t monotonic_ns() {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(now.tv_nsec);
}

} // namespace

void start_handler_clock(std::uint64_t now_ns) { ahead_ns = now_ns != 0 ? monotonic_ns() - now_ns : 0; }

std::uint64_t handler_clock_ns() { return monotonic_ns() - ahead_ns; }

} // namespace ktrace::plugin::host
