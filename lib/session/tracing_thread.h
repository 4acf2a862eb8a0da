// Tracing is done in a thread of its own: when that ends, the kernel lets go of tasks that sleep without waking them.
#pragma once

#include <functional>
#include <future>
#include <thread>
#include <utility>

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

/// The same with `body(run_by_waiting)`: what it gives that is run by the thread that waits for it, which returns then.
/// Once at most. What a process starts is the child of a thread: one that asks for a signal when its parent dies
/// (PR_SET_PDEATHSIG) is sent it at that thread's end.
template <class F> void in_tracing_thread_of_child(F &&body) {
    std::promise<std::function<void()>> asked;
    std::promise<void> done;
    os::Interrupts::block();
    std::thread tracing([&] {
        bool has_asked = false;
        auto run_by_waiting = [&](std::function<void()> what) {
            has_asked = true;
            asked.set_value(std::move(what));
            done.get_future().wait();
        };
        os::Interrupts::unblock();
        body(run_by_waiting);
        if (!has_asked) asked.set_value([] {});
    });
    asked.get_future().get()();
    done.set_value();
    tracing.join();
}

} // namespace ktrace::session
