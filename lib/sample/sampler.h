// Sampler: looks at all threads of some processes again and again.
//
// A thread that runs is stopped, and what was copied of it is unwound when it runs again. A thread that waits is read,
// and then not looked at again before it has run: until then it waits where it did.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>

#include "os/facts/run_clock.h"
#include "sample/samples.h"
#include "sample/shares.h"
#include "sample/stops.h"
#include "trace/trace.h"

namespace ktrace::sample {

class Sampler {
  public:
    explicit Sampler(trace::Trace &trace) : trace_{trace} {}

    /// Takes a process in. Errors: as look_at of tracees.
    Status add(pid_t pid);
    /// Looks, `frequency` times a second, until `end_ns` (CLOCK_MONOTONIC), a signal, or no thread is left. Errors:
    /// denied.
    Status run(unsigned frequency, std::uint64_t end_ns);

    const Samples &samples() const { return samples_; }

  private:
    /// A thread between looks.
    struct Thread {
        Thread(Pid pid, Tid tid) : runs(pid, tid) {}

        os::RunCount runs;
        std::optional<os::Ran> ran;              // by runs, when it was seen to wait
        Sample *waits_in = nullptr;              // since then
        std::optional<os::TaskPlace> stopped_in; // it was stopped in its sleep: it is to be there again
        std::uint64_t asked_ns = 0;              // CLOCK_MONOTONIC, when it was asked to stop
        Shares shares;
        std::uint64_t round = 0; // the last in which it was there
    };

    bool is_over() const;
    void look_at_all();
    void look_at(engine::Process &process, Tid tid, Thread &thread);
    void note(Thread &thread, Sample &sample, bool is_on, const std::optional<os::Ran> &ran,
              std::uint64_t stood_ns = 0);
    void count_looks();
    bool still_waits(const engine::Process &process, Tid tid, Thread &thread);
    bool may_be_stopped(Pid pid, Tid tid) const;
    void see(engine::Process &process, Tid tid, const Snapshot &snapshot);
    Sample &sample_of(engine::Process &process, Tid tid, Stack stack);
    void look_for_modules();

    trace::Trace &trace_;
    Stops stops_{trace_,
                 [this](engine::Process &process, Tid tid, const Snapshot &snapshot) { see(process, tid, snapshot); }};
    std::unordered_map<pid_t, Thread> threads_;
    Samples samples_;
    std::uint64_t round_ = 0, period_ns_ = 0;
    bool has_unknown_code_ = false; // a library was loaded since the last look at modules, perhaps
    std::uint64_t modules_ns_ = 0;  // when that was
    Status failed_;
};

} // namespace ktrace::sample
