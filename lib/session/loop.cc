#include "session/loop.h"

#include <algorithm>
#include <csignal>

#include "agent/layout.h"
#include "arming/registry.h"
#include "base/clock.h"
#include "ctl/orders.h"
#include "engine/agent/agent_calls.h"
#include "engine/agent/agent_records.h"
#include "lifecycle/exec_and_loader.h"
#include "os/tracee/placement.h"
#include "output/label.h"
#include "report/records.h"
#include "report/status_line.h"
#include "report/tables.h"
#include "session/overhead_limit.h"
#include "trace/run_until.h"
#include "upgrade/countable.h"
#include "upgrade/counts.h"
#include "upgrade/overwritten.h"
#include "upgrade/upgrader.h"
#include "upgrade/waking.h"

namespace ktrace::session {

namespace {

constexpr std::size_t most_waiting = 256 * 1024;      // bytes of records, before they are printed though stops go on
constexpr std::uint64_t longest_wait_ns = 50'000'000; // the same, in time
constexpr unsigned look_at_clock_every = 64;          // stops
constexpr unsigned quiet_looks = 2;                   // brief waits in vain: now there is time to print records

/// A signal to ktrace itself. With `run` it is passed on to the program, and the trace ends with the program.
bool ends_trace(trace::Trace &trace, int signal) {
    if (signal == 0) return false;
    if (trace.interrupts->is_abandoned()) return true;
    if (trace.program.pid.value == 0 || trace.program.status >= 0) return true;
    pass_on(trace.program.pid, signal);
    return false;
}

bool all_gone(const trace::Trace &trace) {
    for (const auto &[pid, process] : trace.engine.processes)
        if (!process->silent) return false;
    return true;
}

/// Takes the records of agents again and again, also where no stop comes.
class Collecting {
  public:
    explicit Collecting(trace::Trace &trace) : trace_{trace} {}

    void go_on() {
        const std::uint64_t now = monotonic_ns();
        if (now < next_ns_ || !has_agents()) return;
        if (next_ns_ != 0 && now > next_ns_ + agent::longest_silence_ns) engine::doubt_all_calls(trace_.engine);
        next_ns_ = now + every_ns;
        waking_.start();
        engine::take_all_records(trace_.engine);
    }

  private:
    static constexpr std::uint64_t every_ns = 20'000'000;

    bool has_agents() const {
        return std::ranges::any_of(trace_.engine.processes,
                                   [](const auto &each) { return each.second->space->threads != nullptr; });
    }

    trace::Trace &trace_;
    std::uint64_t next_ns_ = 0;
    upgrade::Waking waking_{every_ns};
};

/// With --engine jump a place that stays a trap ends the trace.
void refuse_traps(trace::Trace &trace) {
    if (trace.config.engine != trace::Config::Engine::jump) return;
    for (const auto &[space, arming] : trace.installed.armings)
        for (const auto &location : arming.locations) {
            const auto why = location->attachment.on ? upgrade::why_trap(trace, *space, location->at) : std::nullopt;
            if (!why) continue;
            trace.voice.complain({Error::Kind::refused,
                                  output::place_with_module(trace.installed.locations.at(location->location)->info) +
                                      " cannot have a jump: " + *why,
                                  "--engine auto leaves a trap there",
                                  {},
                                  -1,
                                  1});
            trace.trouble = trace.program.pid.value != 0 ? 125 : 1;
            trace.engine.closing = true;
        }
}

/// Traps become jumps, where that was asked for.
class Upgrading {
  public:
    explicit Upgrading(trace::Trace &trace)
        : trace_{trace}, upgrader_{trace}, overwritten_{trace}, collecting_{trace} {}

    /// A step. Where stops come, they have as much time as it took before there is another one.
    void go_on() {
        if (trace_.config.engine != trace::Config::Engine::trap && (is_quiet_ || monotonic_ns() >= rest_ns_)) {
            const std::uint64_t began = monotonic_ns();
            is_at_work_ = upgrader_.step();
            const std::uint64_t now = monotonic_ns();
            rest_ns_ = now + (now - began);
            is_busy_ = is_at_work_ && now - began > brief_ns;
            if (!is_at_work_ && has_places() && !std::exchange(was_at_rest_, true)) refuse_traps(trace_);
        }
        collecting_.go_on();
        tell(overwritten_.lift());
        if (trace_.engine.jumps.empty() || !trace_.output.live_line || monotonic_ns() < taken_ns_ + look_every_ns)
            return;
        taken_ns_ = monotonic_ns();
        upgrade::take_counts(trace_);
    }
    bool is_at_work() const { return is_at_work_; }
    /// It has more to do, and is not waiting for anything itself.
    bool is_busy() const { return is_busy_; }
    /// No stop has come for a while.
    bool is_quiet() const { return is_quiet_; }
    void note(bool has_stop) { is_quiet_ = !has_stop; } // after such a wait

  private:
    static constexpr std::uint64_t look_every_ns = 200'000'000, brief_ns = 100'000;

    /// With `run` there are none before the program is loaded.
    bool has_places() const {
        return std::ranges::any_of(trace_.installed.armings,
                                   [](const auto &each) { return !each.second.locations.empty(); });
    }

    void tell(const std::vector<std::uint32_t> &overwritten) {
        for (std::uint32_t location : overwritten)
            trace::tell_once(trace_, output::place_with_module(trace_.installed.locations.at(location)->info) +
                                         ": something else has written there, a kernel uprobe perhaps: ktrace does "
                                         "not see the hits that it takes");
    }

    trace::Trace &trace_;
    upgrade::Upgrader upgrader_;
    upgrade::Overwritten overwritten_;
    Collecting collecting_;
    std::uint64_t taken_ns_ = 0, rest_ns_ = 0;
    bool is_at_work_ = false, is_busy_ = false, is_quiet_ = true, was_at_rest_ = false;
};

/// The work between two stops. True: the trace is over.
bool is_over(trace::Trace &trace, Upgrading &upgrading, report::Intervals &intervals) {
    if (trace.installed.has_dismissed) arming::clear_away(trace);
    watch_overhead(trace);
    if (report::output_failed(trace) || trace.engine.closing || all_gone(trace)) return true;
    if (ends_trace(trace, trace.interrupts->take()) || trace.interrupts->time_is_up()) return true;
    // In the middle of a dlclose nothing is armed anew. The end of that is a stop.
    if (ctl::has_orders(trace) && !trace::anyone_unloads(trace)) ctl::serve_order(trace);
    upgrading.go_on();
    if (trace.engine.closing) return true; // a place was refused
    if (intervals.has_ended()) {
        upgrade::take_counts(trace);
        intervals.report();
    }
    report::tell_progress(trace);
    return false;
}

/// When records are shown: while the tracees are quiet, or right after a stop was seen. That time is known to be no
/// part of a call's duration. Between a resume and the next stop, rendering would take the processor from the tracee,
/// or let it wait at its next stop unseen.
class Showing {
  public:
    Showing(trace::Trace &trace, const Upgrading &upgrading) : trace_{trace}, upgrading_{upgrading} {}

    /// How the next stop is waited for.
    trace::Wait wait() {
        waiting_ = trace_.engine.records.size() > 0 || trace_.output.writer->pending();
        if (upgrading_.is_busy() && upgrading_.is_quiet()) return trace::Wait::no;
        return waiting_ || trace_.orders.postponed || upgrading_.is_at_work() ? trace::Wait::briefly : trace::Wait::yes;
    }
    /// The wait is over.
    void show(bool has_stop) {
        quiet_ = has_stop ? 0 : quiet_ + 1;
        if (!waiting_ || !is_due()) return;
        report::report_records(trace_, true);
        shown_ns_ = monotonic_ns();
    }

  private:
    bool is_due() {
        if (trace_.engine.records.size() >= most_waiting || quiet_ >= quiet_looks) return true;
        if (++since_clock_ < look_at_clock_every) return false;
        since_clock_ = 0;
        return monotonic_ns() - shown_ns_ >= longest_wait_ns;
    }

    trace::Trace &trace_;
    const Upgrading &upgrading_;
    std::uint64_t shown_ns_ = monotonic_ns();
    unsigned quiet_ = 0, since_clock_ = 0;
    bool waiting_ = false; // records do, to be shown
};

} // namespace

void pass_on(Pid program, int signal) {
    bool of_the_terminal = signal == SIGINT || signal == SIGQUIT; // which has sent it to the program, too
    if (signal != 0 && !of_the_terminal) ::kill(program.value, signal);
}

void run_loop(trace::Trace &trace) {
    os::Placement placement(trace.engine.waiter);
    Upgrading upgrading(trace);
    Showing showing(trace, upgrading);
    report::Intervals intervals(trace);
    auto before = [&](const os::Stop *stop) {
        showing.show(stop != nullptr);
        upgrading.note(stop != nullptr);
        if (!stop) return;
        placement.note(*stop);
        trace.engine.corrections.is_apart = placement.apart();
    };
    trace::run_until(trace, [&] { return is_over(trace, upgrading, intervals); },
                     {[&] { return showing.wait(); }, before});
}

} // namespace ktrace::session
