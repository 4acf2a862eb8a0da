#include "os/self/processor_clock.h"

#include <cstdlib>
#include <limits>

#include "arch/host.h"
#include "arch/in_process.h"
#include "base/clock.h"

namespace ktrace::os {

namespace {

constexpr std::uint64_t apart_ns = 1'000'000; // two comparisons, at least: the error of one counts less then
constexpr std::int64_t most_moved_ns = 10'000, parts = 8; // more: the clock was set, or the machine was asleep
constexpr unsigned reads = 5;

} // namespace

bool ProcessorClock::is_steady() { return arch::HostNative::has_steady_counter(); }

/// The closest of some.
ProcessorClock::Pair ProcessorClock::read() {
    Pair best;
    std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
    for (unsigned i = 0; i < reads; i++) {
        const std::uint64_t begin = arch::processor_time(), ns = ktrace::monotonic_ns(), end = arch::processor_time();
        if (end - begin >= least) continue;
        least = end - begin;
        best = {begin + least / 2, ns};
    }
    return best;
}

/// The rate is that since the first comparison. A comparison moves the clock by a part of what it differs, so that
/// times which were converted before it and behind it keep their order.
void ProcessorClock::compare() {
    Pair now = read();
    if (before_.ns == 0) {
        before_ = last_ = now;
        return;
    }
    const auto differs = static_cast<std::int64_t>(now.ns - monotonic_ns(now.time));
    if (last_.time != before_.time && std::abs(differs) < most_moved_ns)
        now.ns += static_cast<std::uint64_t>(differs / parts - differs);
    if (now.ns < before_.ns + apart_ns || now.time <= before_.time) return;
    last_ = now;
    rate_ = static_cast<double>(last_.ns - before_.ns) / static_cast<double>(last_.time - before_.time);
}

std::uint64_t ProcessorClock::monotonic_ns(std::uint64_t time) const {
    const auto since = static_cast<std::int64_t>(time - last_.time);
    return last_.ns + static_cast<std::uint64_t>(static_cast<std::int64_t>(static_cast<double>(since) * rate_));
}

} // namespace ktrace::os
