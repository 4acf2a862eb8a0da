// Stops: threads that are stopped for a moment, to look at them.
//
// Invariants: a thread is seized only when it is to be stopped for the first time, and without options: nothing that it
// starts is traced. At its stop its registers and its stack are copied; then that stop is served as any other in a
// trace, and it runs on.
#pragma once

#include <functional>
#include <unordered_set>
#include <utility>
#include <vector>

#include "sample/threads.h"
#include "trace/trace.h"

namespace ktrace::sample {

/// For a Trace without probes whose threads are seized for looks.
extern const trace::EventHandlers look_events;

class Stops {
  public:
    /// A thread has stopped, and runs on.
    using Seen = std::function<void(engine::Process &, Tid, const Snapshot &)>;

    Stops(trace::Trace &trace, Seen seen) : trace_{trace}, seen_{std::move(seen)} {}

    /// Asks a thread to stop; its stop comes to `serve`. Errors: denied; gone.
    Status ask(Pid pid, Tid tid);
    /// True where it was asked and has not stopped yet.
    bool awaits(Tid tid) const { return asked_.contains(tid.value); }
    bool awaits_any() const { return !asked_.empty(); }
    void forget(Tid tid) { asked_.erase(tid.value); }

    /// Waits for stops and serves them until `is_done`, or `end_ns` (CLOCK_MONOTONIC), whatever is first.
    void serve_until(std::uint64_t end_ns, const std::function<bool()> &is_done);

  private:
    Status seize(Pid pid, Tid tid);
    void see_stop(const os::Stop &stop);
    void copy(engine::Task &task, engine::Process &process, const os::Stop &stop);
    void show_copies();

    trace::Trace &trace_;
    Seen seen_;
    std::unordered_set<pid_t> asked_;
    std::vector<std::pair<Tid, Snapshot>> copies_; // of threads that may run again by now
};

} // namespace ktrace::sample
