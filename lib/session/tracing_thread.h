// Tracing is done in a thread of its own: when that ends, the kernel lets go of tasks that sleep without waking them.
#pragma once

#include <thread>

#include "os/interrupts.h"

namespace ktrace::session {

/// Runs `body` in a thread that alone takes the signals that are meant for ktrace; returns when it has ended.
template <class F> void in_tracing_thread(F &&body) {
    os::Interrupts::block();
    std::thread([&] {
        os::Interrupts::unblock();
        body();
    }).join();
}

} // namespace ktrace::session
