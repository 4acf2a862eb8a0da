#include "session/loop.h"

#include <csignal>

#include "session/placement.h"
#include "session/report.h"
#include "session/settle.h"
#include "trap/dispatch.h"

namespace ktrace::session {

namespace {

constexpr std::size_t most_waiting = 256 * 1024; // bytes of records, before they are shown while stops are pending

/// A signal to ktrace itself. With `run` the terminal's Ctrl-C is the program's too, and SIGTERM is handed on to it:
/// the trace ends with the program.
bool ends_trace(State &state, int signal) {
    if (signal == 0) return false;
    if (state.program.value == 0 || state.program_status >= 0) return true;
    if (signal != SIGINT) ::kill(state.program.value, signal);
    return false;
}

bool all_gone(const State &state) {
    for (const auto &[pid, traced] : state.world.processes)
        if (!traced->silent) return false;
    return true;
}

} // namespace

void trace(State &state) {
    Placement placement;
    while (!state.world.closing && !all_gone(state)) {
        if (ends_trace(state, state.interrupts->take()) || state.interrupts->time_is_up()) return;
        bool idle = state.world.records.size() == 0 && !state.writer->pending();
        auto stop = state.world.waiter.next(idle ? os::Waiter::Block::yes : os::Waiter::Block::no);
        if (stop) {
            placement.note(*stop);
            settle(state, trap::dispatch(state.world, *stop));
            if (state.world.records.size() < most_waiting) continue;
        } else if (state.world.waiter.none_left()) {
            return;
        }
        report_records(state, !stop);
        if (output_failed(state)) return;
    }
}

} // namespace ktrace::session
