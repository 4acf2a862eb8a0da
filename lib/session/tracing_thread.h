// Tracing is done in a thread of its own: when that ends, the kernel lets go of tasks that sleep without waking them.
#pragma once

#include <functional>
#include <future>
#include <system_error>
#include <thread>
#include <utility>

#include "base/result.h"
#include "os/interrupts.h"

namespace ktrace::session {

/// Starts `body` in a thread that alone takes the signals that are meant for ktrace. Errors: system (no thread is to be
/// had, and nothing was run).
template <class F> Result<std::thread> start_tracing_thread(F &&body) {
    os::Interrupts::block();
    try {
        return std::thread([&body] {
            os::Interrupts::unblock();
            body();
        });
    } catch (const std::system_error &) {
        os::Interrupts::unblock();
        return fail(Error::Kind::system,
                    "no thread can be started: this user, or this control group, has as many as it may have",
                    "end some, or raise the limit (ulimit -u, pids.max)");
    }
}

/// Runs `body` in such a thread; returns when it has ended. Errors: as above.
template <class F> [[nodiscard]] Status in_tracing_thread(F &&body) {
    auto tracing = start_tracing_thread(body);
    if (!tracing) return tl::make_unexpected(tracing.error());
    tracing->join();
    return {};
}

/// The same for what must be done: in the calling thread where no other is to be had, which is to end soon.
template <class F> void in_some_tracing_thread(F &&body) {
    if (!in_tracing_thread(body)) body();
}

/// The same with `body(run_by_waiting)`: what it gives that is run by the thread that waits for it, which returns then.
/// Once at most. What a process starts is the child of a thread: one that asks for a signal when its parent dies
/// (PR_SET_PDEATHSIG) is sent it at that thread's end.
template <class F> [[nodiscard]] Status in_tracing_thread_of_child(F &&body) {
    std::promise<std::function<void()>> asked;
    std::promise<void> done;
    auto trace = [&] {
        bool has_asked = false;
        auto run_by_waiting = [&](std::function<void()> what) {
            has_asked = true;
            asked.set_value(std::move(what));
            done.get_future().wait();
        };
        body(run_by_waiting);
        if (!has_asked) asked.set_value([] {});
    };
    auto tracing = start_tracing_thread(trace);
    if (!tracing) return tl::make_unexpected(tracing.error());
    asked.get_future().get()();
    done.set_value();
    tracing->join();
    return {};
}

} // namespace ktrace::session
