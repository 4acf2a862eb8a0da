// Overwritten: jumps whose first byte is not ktrace's any more. A kernel uprobe that is set on a site puts a trap of
// its own there, and, when it goes, the byte of the file: what is left of the jump behind that byte would be run.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "trace/trace.h"

namespace ktrace::upgrade {

class Overwritten {
  public:
    explicit Overwritten(trace::Trace &trace) : trace_{trace} {}
    ~Overwritten();
    Overwritten(const Overwritten &) = delete;

    /// Once a second, where there are jumps: lifts such ones, and arms a trap where the file's byte is. Reads each page
    /// with jumps once. Gives the locations (of Trace::installed) there. Waits of the calling thread end for it.
    std::vector<std::uint32_t> lift();

  private:
    trace::Trace &trace_;
    std::uint64_t next_ns_ = 0;
    std::thread waking_;
    std::mutex mutex_;
    std::condition_variable changed_;
    bool is_over_ = false;
};

} // namespace ktrace::upgrade
