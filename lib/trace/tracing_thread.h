// Tracing is done in a thread of its own: when that ends, the kernel detaches from tasks that sleep without waking
// them.
#pragma once

#include <system_error>
#include <thread>

#include "base/result.h"
#include "os/self/own_signals.h"
#include "os/tracee/spawn.h"

namespace ktrace::trace {

/// Runs `body` in a thread that alone takes the signals that are meant for ktrace; returns when it has ended. Errors:
/// system (no thread is to be had, and nothing was run).
template <class F> [[nodiscard]] Status in_tracing_thread(F &&body) {
    os::OwnSignals::block();
    std::thread thread;
    try {
        thread = std::thread([&] {
            os::OwnSignals::unblock();
            body();
        });
    } catch (const std::system_error &refusal) {
        os::OwnSignals::unblock();
        return fail(os::no_new_task("thread", refusal.code().value()));
    }
    thread.join();
    return {};
}

/// The same for what must be done: in the calling thread where no other is to be had, which is to end soon.
template <class F> void in_some_tracing_thread(F &&body) {
    if (!in_tracing_thread(body)) body();
}

} // namespace ktrace::trace
