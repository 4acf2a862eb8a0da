#include "session/loop.h"

#include <csignal>

#include "arming/registry.h"
#include "base/clock.h"
#include "ctl/orders.h"
#include "engine/hit/dispatch.h"
#include "lifecycle/events.h"
#include "lifecycle/exec_and_loader.h"
#include "os/tracee/placement.h"
#include "report/records.h"
#include "report/status_line.h"
#include "session/overhead_limit.h"

namespace ktrace::session {

namespace {

constexpr std::size_t most_waiting = 256 * 1024;      // bytes of records, before they are shown though stops go on
constexpr std::uint64_t longest_wait_ns = 50'000'000; // the same, in time
constexpr unsigned look_at_clock_every = 64;          // stops
constexpr unsigned quiet_looks = 2;                   // brief waits in vain: now there is time to show records

/// A signal to ktrace itself. With `run` it is the program's: the trace ends with the program.
bool ends_trace(trace::Trace &trace, int signal) {
    if (signal == 0) return false;
    if (trace.interrupts->is_abandoned()) return true;
    if (trace.program.value == 0 || trace.program_status >= 0) return true;
    pass_on(trace.program, signal);
    return false;
}

bool all_gone(const trace::Trace &trace) {
    for (const auto &[pid, process] : trace.engine.processes)
        if (!process->silent) return false;
    return true;
}

} // namespace

void pass_on(Pid program, int signal) {
    bool of_the_terminal = signal == SIGINT || signal == SIGQUIT; // which has sent it to the program, too
    if (signal != 0 && !of_the_terminal) ::kill(program.value, signal);
}

// Records are shown when the tracees are quiet, or right after a stop was seen: that time is known to be no part of a
// call's duration. Between a resume and the next stop, rendering would take the processor from the tracee, or let it
// wait at its next stop unseen.
void run_loop(trace::Trace &trace) {
    os::Placement placement(trace.engine.waiter);
    std::uint64_t shown_ns = monotonic_ns();
    unsigned quiet = 0, since_clock = 0;
    while (!trace.engine.closing && !all_gone(trace)) {
        if (ends_trace(trace, trace.interrupts->take()) || trace.interrupts->time_is_up()) return;
        // In the middle of a dlclose nothing is armed anew. The end of that is a stop.
        if (ctl::has_orders(trace) && !trace::anyone_unloads(trace)) ctl::serve_order(trace);
        report::tell_progress(trace);
        bool waiting = trace.engine.records.size() > 0 || trace.writer->pending();
        const bool is_brief = waiting || trace.postponed;
        auto stop = trace.engine.waiter.next(is_brief ? os::Waiter::Block::briefly : os::Waiter::Block::yes);
        if (!stop && trace.engine.waiter.none_left()) return;
        quiet = stop ? 0 : quiet + 1;
        bool due = trace.engine.records.size() >= most_waiting || quiet >= quiet_looks;
        if (waiting && !due && ++since_clock >= look_at_clock_every) {
            since_clock = 0;
            due = monotonic_ns() - shown_ns >= longest_wait_ns;
        }
        if (waiting && due) {
            report::report_records(trace, true);
            shown_ns = monotonic_ns();
        }
        if (stop) {
            placement.note(*stop);
            trace.engine.corrections.is_apart = placement.apart();
            lifecycle::handle_event(trace, engine::dispatch(trace.engine, *stop));
        }
        if (trace.has_dismissed) arming::clear_away(trace);
        limit_overhead(trace);
        if (report::output_failed(trace)) return;
    }
}

} // namespace ktrace::session
