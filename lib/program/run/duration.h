// Duration: how long a call of a return probe took, and how well that is known.
#pragma once

#include <cstdint>

namespace ktrace::program {

/// In ns: how long calls of an empty function seem to take; 0: that was not measured. An event's error is p90.
struct TimeErrors {
    double avg = 0, p50 = 0, p90 = 0, p99 = 0;

    TimeErrors &operator+=(const TimeErrors &more) {
        avg += more.avg, p50 += more.p50, p90 += more.p90, p99 += more.p99;
        return *this;
    }
    TimeErrors operator*(double factor) const { return {avg * factor, p50 * factor, p90 * factor, p99 * factor}; }
    TimeErrors operator/(double divisor) const { return *this * (1 / divisor); }
};

/// The least of 1, 2 or 5 × 10ⁿ that is not below `ns`; 0 of 0.
constexpr std::uint64_t round_error(double ns) {
    if (!(ns > 0)) return 0;
    std::uint64_t unit = 1;
    for (; unit < 1'000'000'000'000'000'000U; unit *= 10)
        for (std::uint64_t step : {1U, 2U, 5U})
            if (static_cast<double>(unit * step) >= ns) return unit * step;
    return unit;
}

struct Duration {
    std::uint64_t ns = 0;       // without what was taken off
    std::uint64_t taken_ns = 0; // ktrace's own share, which was
    std::uint64_t inner_ns = 0; // in calls of other return probes that the same thread made inside
    std::uint64_t since_ns = 0; // since its entry, by the clock of the machine
    bool is_nested = false;     // within another call of the same function
    TimeErrors errors;

    std::uint64_t error_ns() const { return round_error(errors.p90); }
    /// Half of what was measured, or more, was ktrace's own.
    bool is_half_taken() const { return taken_ns >= ns; }
};

} // namespace ktrace::program
