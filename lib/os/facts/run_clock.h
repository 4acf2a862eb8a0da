// run_clock: when a task ran last, and whether it has run since it was looked at, without touching it.
//
// Source: se.exec_start of /proc/PID/task/TID/sched is when the task was last seen running, by the clock of its
// processor's run queue. That is no clock that a program can read, and each processor has its own (tried: 4.7 s apart).
// It is compared with that of the calling thread, which runs on the same processor for that.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>

#include <sched.h>

#include "base/fd.h"
#include "base/ids.h"

namespace ktrace::os {

/// The nanoseconds of se.exec_start in the text of /proc/PID/task/TID/sched; nothing: it is not in there. Pure.
std::optional<std::uint64_t> parse_exec_start(std::string_view text);

/// The calling thread may change its processor as long as a RunClock lives.
class RunClock {
  public:
    RunClock();
    ~RunClock();
    RunClock(const RunClock &) = delete;

    /// For how long a task that waits has not run. Nothing: the kernel does not say, or this thread may not run where
    /// that task did.
    std::optional<std::uint64_t> rested_ns(Pid pid, Tid tid);

  private:
    std::optional<std::int64_t> ahead_of_monotonic(int processor);

    cpu_set_t allowed_;
    std::map<int, std::optional<std::int64_t>> ahead_; // by processor: its clock less CLOCK_MONOTONIC
};

/// The time that a task has had of its processors.
struct Ran {
    std::uint64_t ns = 0;    // on one, or waiting for one; of a task that is on one, until a tick of the kernel's
    std::uint64_t times = 0; // it came on one
    bool operator==(const Ran &) const = default;
};

/// Of the text of /proc/PID/task/TID/schedstat; nothing: it is not that. Pure.
std::optional<Ran> parse_ran(std::string_view text);

/// How often one task has come on a processor, and for how long. Its file stays open.
/// Source: Documentation/scheduler/sched-stats.rst of Linux, /proc/<pid>/schedstat.
class RunCount {
  public:
    RunCount(Pid pid, Tid tid);
    /// Nothing: it has ended, or the kernel does not count.
    std::optional<Ran> read();

  private:
    Fd file_;
};

} // namespace ktrace::os
