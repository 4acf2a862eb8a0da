// ProcessorClock: the counter that all processors share (the time stamp counter), in CLOCK_MONOTONIC: programs can read
// it in some 10 ns, without a system call. It is compared with that clock again and again, so it follows its
// adjustments.
#pragma once

#include <cstdint>

namespace ktrace::os {

class ProcessorClock {
  public:
    /// The counter can be used: it never stops, is the same in all processors, and the kernel trusts it.
    static bool is_steady();

    /// Compares the clocks. Times up to now can be converted then, those since the call before it best: to some 50 ns.
    void compare();

    /// Times 2^32; 0: it is not known yet.
    std::uint64_t ns_per_tick() const { return static_cast<std::uint64_t>(rate_ * 4294967296.0); }

    /// In ns of CLOCK_MONOTONIC.
    std::uint64_t monotonic_ns(std::uint64_t time) const;

  private:
    struct Pair {
        std::uint64_t time = 0, ns = 0;
    };
    static Pair read();

    Pair before_, last_;
    double rate_ = 0; // ns a tick
};

} // namespace ktrace::os
