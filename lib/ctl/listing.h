// listing: what is registered and what became of it so far, for people: `ctl list` and `ctl stats`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trace/trace.h"

namespace ktrace::ctl {

/// A line for each location in each process, in the order in which the probes were given, in the layout of
/// /sys/kernel/debug/kprobes/list:
///
///     000055d0c3a011b5 r do_work+0x0 [worker] [DISABLED]
///
/// [GONE]: it is in no process any more (dlclose, exec); [PENDING]: it waits for its module, or
/// for the process to choose an indirect function's implementation; [OPTIMIZED]: a jump counts there, no task stops.
/// `verbose`: with the reason why one is a trap, where jumps are asked for.
std::string list_text(const trace::Trace &trace, bool verbose);

/// The lines of what is armed in one process, and of what waits in it for an implementation; without their ends.
std::vector<std::string> armed_lines(const trace::Trace &trace, const engine::Process &process);

/// Numbers, counts and tables so far. Calls in flight count as unreturned.
std::string stats_text(trace::Trace &trace, trace::Config::Format format);

/// `3 r do_work: 2 locations`, a line for each of these probes.
std::string added_text(const trace::Trace &trace, const std::vector<std::uint32_t> &numbers);

} // namespace ktrace::ctl
