// A thread that waits is read. One that runs, or whose stack ends where a register is not known, is stopped for the
// moment that it takes to copy its registers and its stack. One thread is stopped at a time, so that none waits for
// another.
#include "sample/stack.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/text.h"
#include "os/facts/blocked_syscall.h"
#include "os/facts/run_clock.h"
#include "os/self/own_signals.h"
#include "report/symbolizer.h"
#include "sample/sample_output.h"
#include "sample/stops.h"
#include "sample/thread_list.h"
#include "trace/downloads.h"
#include "trace/tracing_thread.h"
#include "tracees/access_errors.h"
#include "tracees/detach.h"
#include "tracees/seize.h"

namespace ktrace::sample {

using engine::Process;

namespace {

/// Looks at all threads, in the tracing thread.
class Looking {
  public:
    explicit Looking(trace::Trace &trace) : trace_{trace} {}

    void look_at_all() {
        for (pid_t pid : trace_.config.pids)
            if (!os::OwnSignals::are_pending()) look_at_process(pid);
        tracees::serve_for_the_last_time(trace_);
    }
    const std::vector<ThreadLook> &threads() const { return threads_; }
    int status() const { return status_; }

  private:
    void look_at_process(pid_t pid) {
        auto looked = tracees::look_into(trace_, pid);
        if (!looked) {
            trace_.voice.complain(looked.error());
            status_ = 1;
            if (looked.error().kind == Error::Kind::denied)
                for (Tid tid : tasks_of(Pid{pid})) add(Pid{pid}, tid);
            return;
        }
        Process &process = *(trace_.engine.processes[pid] = std::move(*looked));
        auto status = os::read_status(pid);
        others_ = status && status->tracer != 0;
        if (others_)
            trace_.voice.notice(tracees::denied(pid).message + ": only those of its threads that wait can be read");
        const std::size_t before = threads_.size();
        stopped_ = 0;
        for (Tid tid : tasks_of(Pid{pid}))
            if (!os::OwnSignals::are_pending()) look_at(process, tid);
        tell(process, threads_.size() - before);
    }

    void tell(const Process &process, std::size_t threads) const {
        if (trace_.config.quiet) return;
        std::string text = std::to_string(process.target.pid.value) + " (" + text::escape(process.target.comm) + "): ";
        text += std::to_string(threads) + (threads == 1 ? " thread, " : " threads, ");
        text += stopped_ == 0 ? "none was stopped"
                              : std::to_string(stopped_) +
                                    (stopped_ == 1 ? " was stopped for a moment" : " were stopped for a moment");
        trace_.voice.notice(text);
    }

    static std::vector<Tid> tasks_of(Pid pid) {
        std::vector<Tid> tids = os::read_tasks(pid);
        std::sort(tids.begin(), tids.end());
        return tids;
    }

    ThreadLook &add(Pid pid, Tid tid) {
        ThreadLook &look = threads_.emplace_back();
        look.pid = pid;
        look.tid = tid;
        look.comm = os::read_comm(pid, tid);
        look.time_ns = realtime_ns();
        if (auto stat = os::read_task_stat(pid, tid)) look.state = stat->state;
        if (look.state != 'R' && !has_ended(look)) look.waited_ns = clock_.rested_ns(pid, tid);
        return look;
    }

    static bool has_ended(const ThreadLook &look) { return look.state == 'Z' || look.state == 'X'; }

    void look_at(Process &process, Tid tid) {
        ThreadLook &look = add(process.target.pid, tid);
        if (has_ended(look)) {
            look.why_not = "it has ended";
            return;
        }
        auto waiting = read_waiting(trace_.engine, process, tid);
        if (waiting) {
            if (waiting->place.syscall >= 0) look.call = waiting->place;
            look.stack = std::move(waiting->stack);
            if (waiting->is_complete) return;
        } else {
            look.waited_ns.reset();
        }
        look.why_not = why_not_stopped(look, waiting.has_value());
        if (look.why_not.empty()) look.why_not = stop(process.target.pid, tid);
    }

    /// Empty: it may be stopped.
    std::string why_not_stopped(const ThreadLook &look, bool waits) const {
        if (others_)
            return waits ? "the rest needs a stop, and another tracer has it" : "it runs, and another tracer has it";
        if (!waits) return {};
        const bool is_harmful =
            os::sleeps_deeply(look.tid) || os::interrupted(look.pid, look.tid) == os::Interrupted::cut_short;
        return is_harmful ? "the rest needs a stop, which would cut its call short" : "";
    }

    /// Stops a thread, and takes its stack. Returns why that cannot be done; empty: it is done.
    std::string stop(Pid pid, Tid tid) {
        constexpr std::uint64_t patience_ns = 1'000'000'000; // a busy processor makes it wait for its turn
        if (auto asked = stops_.ask(pid, tid); !asked) {
            if (asked.error().kind != Error::Kind::denied) return asked.error().message;
            status_ = 1;
            trace_.voice.complain(asked.error());
            return "it may not be stopped";
        }
        const std::size_t before = stopped_;
        stops_.serve_until(monotonic_ns() + patience_ns,
                           [&] { return !stops_.awaits(tid) || os::has_ended(tid) || os::OwnSignals::are_pending(); });
        if (stopped_ != before) return {};
        return os::has_ended(tid) ? "it has ended" : "it has not stopped within a second";
    }

    void see(Process &process, const Snapshot &snapshot) {
        stopped_++;
        threads_.back().stack = unwind(trace_.engine, process, snapshot);
    }

    trace::Trace &trace_;
    Stops stops_{trace_, [this](Process &process, Tid, const Snapshot &snapshot) { see(process, snapshot); }};
    os::RunClock clock_;
    std::vector<ThreadLook> threads_;
    std::size_t stopped_ = 0; // of the process at hand
    bool others_ = false;     // another tracer has it
    int status_ = 0;
};

/// The looks, from the tracing thread to the end of the output.
struct KeptLook {
    KeptLook(const trace::Config &config, const trace::Voice &voice)
        : trace(config, voice, look_events), looking(trace) {}
    trace::Trace trace;
    Looking looking;
};

} // namespace

int stack(const trace::Config &config, const trace::Voice &voice) {
    const os::OwnSignals interrupts;
    trace::forbid_downloads();
    std::unique_ptr<KeptLook> kept;
    auto started = trace::in_tracing_thread([&] {
        kept = std::make_unique<KeptLook>(config, voice);
        kept->looking.look_at_all();
    });
    if (!started) {
        voice.complain(started.error());
        return 1;
    }
    // All threads are let go of: to find the names may take longer.
    auto symbolizer = report::make_symbolizer(kept->trace);
    const auto &threads = kept->looking.threads();
    const bool is_json = config.format == trace::Config::Format::json;
    if (auto written =
            write_out(config, is_json ? threads_json(threads, *symbolizer) : threads_text(threads, *symbolizer));
        !written) {
        voice.complain(written.error());
        return 1;
    }
    return kept->looking.status();
}

} // namespace ktrace::sample
