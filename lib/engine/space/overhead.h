// Overhead: how much of its time each thread has spent stopped for probes, and for which locations, in a window that
// its reader begins anew.
//
// Invariant: a stop counts once for its thread, and is charged in full to every location that it was for: each of them
// alone would have needed it.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/ids.h"

namespace ktrace::engine {

class Overhead {
  public:
    /// A stop begins: the charges of one that did not end in `end_stop` are forgotten.
    void begin_stop();
    /// The stop at hand is (also) for this location (index of its LocationInfo).
    void charge(std::uint32_t location) {
        if (charged_.empty() || charged_.back() != location) charged_.push_back(location);
    }
    /// The task is resumed. `seen_ns`: when its stop was seen (CLOCK_MONOTONIC; 0: when it began). `switching_ns`: what
    /// a stop takes beyond that, until it is seen and once it is resumed; 0: not measured, so a usual time.
    void end_stop(Tid tid, std::uint64_t seen_ns, std::uint64_t switching_ns);

    struct Share {
        std::uint32_t location = 0;
        std::uint64_t ns = 0;
    };
    struct Thread {
        Tid tid;
        std::uint64_t ns = 0;      // of all its stops for locations
        std::vector<Share> shares; // of the locations, the costliest first
    };
    /// The window ends, and the next one begins: the threads that were stopped, in no order.
    std::vector<Thread> take();

  private:
    struct Spent {
        std::uint64_t ns = 0;
        std::unordered_map<std::uint32_t, std::uint64_t> by_location;
    };
    std::vector<std::uint32_t> charged_;
    std::uint64_t began_ns_ = 0; // the stop at hand
    std::unordered_map<pid_t, Spent> spent_;
};

/// The costliest of a thread's locations, so many that what is left of its stops takes `allowed_ns` at most.
std::vector<Overhead::Share> costliest_beyond(const Overhead::Thread &thread, std::uint64_t allowed_ns);

} // namespace ktrace::engine
