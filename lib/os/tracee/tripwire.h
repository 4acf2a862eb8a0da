// Tripwire: a task that sleeps is stopped when it comes to an instruction, without having been stopped for that.
//
// It is a breakpoint of perf_event_open(2) that sends SIGTRAP (Linux 5.13). Unlike a trap in the text it takes no byte
// of the program's, and is gone with the process that has set it: the kernel closes that one's files (by its last
// thread) and lets go of its tracees within the same microseconds.
#pragma once

#include <optional>
#include <utility>

#include "base/addr.h"
#include "base/fd.h"
#include "base/ids.h"

namespace ktrace::os {

/// TRAP_PERF, the si_code of the SIGTRAP of an event of perf_event_open(2): not in every libc's headers.
inline constexpr int trap_perf = 6;

class Tripwire {
  public:
    /// From now on `task` stops by a SIGTRAP (is_tripwire) at `at`, before the instruction there is run: as long as
    /// this lives. A task that blocks SIGTRAP would not. Nothing: the kernel gives none (its version,
    /// perf_event_paranoid, no debug register is free, too many files are open).
    static std::optional<Tripwire> set(Tid task, VirtAddr at);

    VirtAddr at() const { return at_; }

  private:
    Tripwire(Fd event, VirtAddr at) : event_(std::move(event)), at_(at) {}
    Fd event_;
    VirtAddr at_;
};

/// Is that what the task, at the stop of a SIGTRAP, has stopped for?
bool is_tripwire(Tid task);

} // namespace ktrace::os
