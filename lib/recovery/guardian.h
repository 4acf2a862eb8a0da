// Guardian: ktrace traces in a process of its own; the one that the user has started watches over it.
//
// When the guardian is killed, the kernel sends the tracing process a signal (OwnSignals::abandoned): it detaches as
// for Ctrl-C, and ends. When the tracing process dies, the guardian restores the targets. When both are killed at once,
// the targets are left to the handler in their recovery page.
//
// Invariants: the guardian has no thread, opens nothing and traces nothing while the tracing process lives; signals
// that are meant for ktrace reach the tracing process once; the guardian's exit status is that of the tracing process.
#pragma once

#include <functional>

#include "recovery/ledger.h"

namespace ktrace::recovery {

enum class Terminal : std::uint8_t {
    left, // the tracing process has a process group of its own: kill -9 of a job, or the end of its terminal, does not
          // end it
    kept, // it stays in the foreground, for the program that it starts
};

/// The name of the tracing process. It is not "ktrace", so that killall(1) and pkill(1) of that name kill the guardian
/// alone, and the tracing process detaches.
inline constexpr const char *tracing_process_name = "kt-tracer";

/// True for a thread of a tracing process whose guardian was killed: that process detaches, and ends. False where /proc
/// does not show it.
bool is_abandoned(Tid tracer);

/// Runs `trace` in a process of its own, and returns its exit status, which is `trace`'s result. When that process was
/// killed by `signal`, `mend` runs here and gives the exit status. Where the ledger is empty still and the signal asks
/// for the end (Ctrl-C), this process ends by the same signal. Call it while there are no threads.
int guarded(Terminal terminal, const std::function<int(Ledger &)> &trace,
            const std::function<int(const Ledger &, int signal)> &mend);

} // namespace ktrace::recovery
