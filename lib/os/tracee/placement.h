// Placement: runs the tracing thread where the only busy task runs, if that stays there: a stop then costs no wake-up
// of another processor. Where the kernel wakes the task on an idle processor instead, which it does as long as it finds
// one, the thread stays apart from it, and waits by asking.
//
// Invariant: only one busy task is followed; with more than one, or when it ends, the thread may run anywhere again.
#pragma once

#include <cstdint>

#include <sched.h>

#include "base/ids.h"
#include "os/tracee/wait.h"

namespace ktrace::os {

class Placement {
  public:
    /// Borrows the waiter; it is set to ask for a moment before it sleeps.
    explicit Placement(os::Waiter &waiter);
    ~Placement();
    Placement(const Placement &) = delete;

    /// A stop was served. Every now and then looks where its task runs.
    void note(const os::Stop &stop);

    /// The task ran on another processor when it was last looked at.
    bool apart() const { return apart_; }

  private:
    void look(Tid tid);
    void move_to(int cpu);

    os::Waiter &waiter_;
    cpu_set_t allowed_; // what the thread may use, as it was started
    int cpu_ = -1;      // the one that it is bound to now; -1: none
    bool apart_ = false;
    Tid last_;
    std::uint32_t in_a_row_ = 0;
    std::uint32_t until_look_ = 0;
    std::uint32_t evasions_ = 0; // looks in a row in which the task was elsewhere although it had been followed
};

} // namespace ktrace::os
