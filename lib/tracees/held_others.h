// HeldOthers: the tasks of a process that run, but for one, are stopped for a moment.
#pragma once

#include <deque>

#include "os/tracee/stopped.h"
#include "trace/trace.h"
#include "tracees/stop.h"

namespace ktrace::tracees {

/// They are stopped for as long as it lives. One that does not stop soon runs on.
class HeldOthers {
  public:
    HeldOthers(trace::Trace &trace, const SpacePointer &space, Tid but);
    ~HeldOthers();
    HeldOthers(const HeldOthers &) = delete;

  private:
    bool runs(Tid tid) const;
    void hold(Tid tid);

    trace::Trace &trace_;
    std::deque<os::Stopped> held_;
};

} // namespace ktrace::tracees
