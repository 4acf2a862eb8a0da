// Placement: runs the tracing thread where the traced task runs. A stop then costs no wake-up of another processor.
//
// Invariant: only one busy task is followed; with more than one, or when it ends, the thread may run anywhere again.
#pragma once

#include <cstdint>

#include <sched.h>

#include "base/ids.h"
#include "os/wait.h"

namespace ktrace::session {

class Placement {
  public:
    Placement();
    ~Placement();
    Placement(const Placement &) = delete;

    /// A stop was served. Every now and then looks where its task runs.
    void note(const os::Stop &stop);

  private:
    void move_to(int cpu);

    cpu_set_t allowed_; // what the thread may use, as it was started
    int cpu_ = -1;      // the one that it is bound to now; -1: none
    Tid last_;
    std::uint32_t in_a_row_ = 0;
    std::uint32_t until_look_ = 0;
};

} // namespace ktrace::session
