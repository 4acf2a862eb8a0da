// Guardian: ktrace traces in a process of its own; the one that the user has started watches over it.
//
// Killed, the guardian takes nothing with it: the tracing process is told by a signal (Interrupts::abandoned), detaches
// as for Ctrl-C, and ends. When the tracing process dies, the guardian puts right what it left. Only who kills both at
// once leaves targets to the handler in their rescue page.
//
// Invariants: the guardian has no thread, opens nothing and traces nothing while the other lives; signals that are
// meant for ktrace reach the tracing process once; the guardian's exit status is that of the tracing process.
#pragma once

#include <functional>

#include "recovery/ledger.h"

namespace ktrace::recovery {

enum class Terminal : std::uint8_t {
    left, // the tracing process has a process group of its own: kill -9 of a job, or the end of its terminal, does not
          // take it
    kept, // it stays in the foreground, for the program that it starts
};

/// The name of the tracing process. It is not "ktrace", so that who kills all that is called so (killall, pkill) kills
/// the guardian, and the tracing process lets go of what it traces.
inline constexpr const char *tracing_process_name = "kt-tracer";

/// True for a thread of a tracing process whose guardian was killed: it lets go of what it traces, and ends. False
/// where that may not be looked at.
bool is_abandoned(Tid tracer);

/// Runs `trace` in a process of its own; its result is that process's exit status, and what this returns. `mend` runs
/// here when that process was killed by `signal`, and gives the exit status instead; not where nothing was in the
/// ledger yet and the signal is one that asks for the end (Ctrl-C): this process ends by that, too. Call it while there
/// are no threads.
int guarded(Terminal terminal, const std::function<int(Ledger &)> &trace,
            const std::function<int(const Ledger &, int signal)> &mend);

} // namespace ktrace::recovery
