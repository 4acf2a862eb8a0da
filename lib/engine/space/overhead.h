// Overhead: how much of its time each thread has spent stopped for each location, in a window that its reader begins
// anew.
//
// Invariant: a stop is charged in full to every location that it was for: each of them alone would have needed it.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/ids.h"

namespace ktrace::engine {

class Overhead {
  public:
    /// A stop begins: the charges of one that did not end in `end_stop` are forgotten.
    void begin_stop() { charged_.clear(); }
    /// The stop at hand is (also) for this location (index of its LocationInfo).
    void charge(std::uint32_t location) {
        if (charged_.empty() || charged_.back() != location) charged_.push_back(location);
    }
    /// The task is resumed after it was stopped for `ns`.
    void end_stop(Tid tid, std::uint64_t ns);

    struct Share {
        std::uint32_t location = 0;
        Tid tid; // of the thread that it has cost most
        std::uint64_t ns = 0;
    };
    /// The window ends, and the next one begins: a share of each location that was hit, in no order.
    std::vector<Share> take();

  private:
    std::vector<std::uint32_t> charged_;
    std::unordered_map<std::uint32_t, std::unordered_map<pid_t, std::uint64_t>> spent_; // by location and thread
};

} // namespace ktrace::engine
