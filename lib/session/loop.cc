#include "session/loop.h"

#include <csignal>

#include "base/clock.h"
#include "session/orders.h"
#include "session/overhead.h"
#include "session/placement.h"
#include "session/progress.h"
#include "session/registry.h"
#include "session/report.h"
#include "session/settle.h"
#include "session/start.h"
#include "trap/dispatch.h"
#include "trap/reset.h"

namespace ktrace::session {

namespace {

constexpr std::size_t most_waiting = 256 * 1024;      // bytes of records, before they are shown though stops go on
constexpr std::uint64_t longest_wait_ns = 50'000'000; // the same, in time
constexpr unsigned look_at_clock_every = 64;          // stops
constexpr unsigned quiet_looks = 2;                   // brief waits in vain: now there is time to show records

/// A signal to ktrace itself. With `run` it is the program's: the trace ends with the program.
bool ends_trace(State &state, int signal) {
    if (signal == 0) return false;
    if (state.interrupts->is_abandoned()) return true;
    if (state.program.value == 0 || state.program_status >= 0) return true;
    pass_on(state.program, signal);
    return false;
}

bool all_gone(const State &state) {
    for (const auto &[pid, traced] : state.world.processes)
        if (!traced->silent) return false;
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
void trace(State &state) {
    Placement placement(state.world.waiter);
    std::uint64_t shown_ns = monotonic_ns();
    unsigned quiet = 0, since_clock = 0;
    while (!state.world.closing && !all_gone(state)) {
        if (ends_trace(state, state.interrupts->take()) || state.interrupts->time_is_up()) return;
        // In the middle of a dlclose nothing is armed anew. The end of that is a stop.
        if (has_orders(state) && !anyone_unloads(state)) serve_order(state);
        tell_progress(state);
        bool waiting = state.world.records.size() > 0 || state.writer->pending();
        const bool is_brief = waiting || state.world.has_unseen || state.postponed;
        auto stop = state.world.waiter.next(is_brief ? os::Waiter::Block::briefly : os::Waiter::Block::yes);
        if (!stop && state.world.waiter.none_left()) return;
        quiet = stop ? 0 : quiet + 1;
        if (!stop && state.world.has_unseen) trap::look_at_actions_when_quiet(state.world);
        bool due = state.world.records.size() >= most_waiting || quiet >= quiet_looks;
        if (waiting && !due && ++since_clock >= look_at_clock_every) {
            since_clock = 0;
            due = monotonic_ns() - shown_ns >= longest_wait_ns;
        }
        if (waiting && due) {
            report_records(state, true);
            shown_ns = monotonic_ns();
        }
        if (stop) {
            placement.note(*stop);
            state.world.corrections.is_apart = placement.apart();
            settle(state, trap::dispatch(state.world, *stop));
        }
        if (state.has_dismissed) clear_away(state);
        limit_overhead(state);
        if (output_failed(state)) return;
    }
}

} // namespace ktrace::session
