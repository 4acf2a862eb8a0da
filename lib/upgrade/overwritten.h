// Overwritten: jumps whose first byte is not ktrace's any more. A kernel uprobe that is set on a site puts a trap of
// its own there, and, when it goes, the byte of the file: what is left of the jump behind that byte would be run.
#pragma once

#include <cstdint>
#include <vector>

#include "trace/trace.h"
#include "upgrade/waking.h"

namespace ktrace::upgrade {

class Overwritten {
  public:
    explicit Overwritten(trace::Trace &trace) : trace_{trace} {}

    /// Once a second, where there are jumps: lifts such ones, and arms a trap where the file's byte is. Reads each page
    /// with jumps once. Gives the locations (of Trace::installed) there. Waits of the calling thread end for it.
    std::vector<std::uint32_t> lift();

  private:
    static constexpr std::uint64_t every_ns = 1'000'000'000;

    trace::Trace &trace_;
    std::uint64_t next_ns_ = 0;
    Waking waking_{every_ns};
};

} // namespace ktrace::upgrade
