// Buckets: where a value of --hist or --stats is counted.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace ktrace::program {

/// Buckets of durations: 0; 1 to 512 of ns, of us and of ms, ten of each; then powers of two of a second.
inline constexpr std::size_t per_unit = 10, units = 3, last_time_bucket = 64;
inline constexpr std::uint64_t unit_ns[] = {1, 1'000, 1'000'000, 1'000'000'000};

constexpr std::size_t time_bucket(std::uint64_t ns) {
    std::size_t unit = 0;
    while (unit < units && ns >= unit_ns[unit + 1]) ++unit;
    return 1 + unit * per_unit + static_cast<std::size_t>(std::bit_width(ns / unit_ns[unit])) - (ns == 0 ? 0 : 1);
}

constexpr std::uint64_t low_of_time_bucket(std::size_t number) {
    const std::size_t unit = number <= 1 ? 0 : (number - 1) / per_unit < units ? (number - 1) / per_unit : units;
    return unit_ns[unit] << (number - 1 - unit * per_unit);
}

/// Of a positive integer: its power of two, and which 64th of that.
struct FineBucket {
    std::uint32_t octave = 0, part = 0;
};
constexpr FineBucket fine_bucket(std::uint64_t value) {
    const auto octave = static_cast<std::uint32_t>(std::bit_width(value)) - 1;
    const std::uint64_t shifted = octave < 6 ? value << (6 - octave) : value >> (octave - 6);
    return {octave, static_cast<std::uint32_t>(shifted & 63)};
}
/// The least value in it, or the one just below where there is none.
constexpr std::uint64_t low_of(FineBucket bucket) {
    const std::uint64_t low = 64 + bucket.part;
    return bucket.octave < 6 ? low >> (6 - bucket.octave) : low << (bucket.octave - 6);
}

} // namespace ktrace::program
