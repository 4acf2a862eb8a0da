// Shares: gives a thread's time to the stacks that it was seen in.
//
// How much of it the thread was on a processor is the kernel's figure, not how often it was seen there: looks come late
// behind those at a thread that runs, and while it keeps the processor that ktrace needs, so that what runs would be
// seen too rarely. Looks say in which stacks that time was: each half of the time between two looks goes to the nearer
// one, if that saw the thread in such a state, else to the other one, else to the last one that did.
#pragma once

#include <cstdint>
#include <optional>

#include "os/facts/run_clock.h"
#include "sample/samples.h"

namespace ktrace::sample {

/// A look at a thread.
struct Look {
    bool is_on = false;         // on a processor, or waiting for one
    std::uint64_t at_ns = 0;    // CLOCK_MONOTONIC, when `ran` was read
    os::Ran ran;                // up to date: the thread waits, or has just been stopped
    std::uint64_t stood_ns = 0; // it was stopped for the look for so long
};

/// Of one thread. The samples have to outlive it.
class Shares {
  public:
    /// The thread was seen in this sample. The first look counts for `period_ns`.
    void see(Sample &sample, const Look &look, std::uint64_t period_ns);

  private:
    Sample *on_ = nullptr, *off_ = nullptr; // where it was seen last
    std::optional<Look> last_;
};

} // namespace ktrace::sample
