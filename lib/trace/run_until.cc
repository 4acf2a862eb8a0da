#include "trace/run_until.h"

#include <cerrno>
#include <ctime>
#include <vector>

#include "base/clock.h"
#include "engine/hit/dispatch.h"
#include "os/self/ticker.h"

namespace ktrace::trace {

void serve(Trace &trace, const os::Stop &stop) {
    trace.events.handle_event(trace, engine::dispatch(trace.engine, stop));
}

void run_until(Trace &trace, const std::function<bool()> &is_done, const Serving &serving) {
    while (!is_done()) {
        auto stop = trace.engine.waiter.next(serving.wait());
        if (!stop && trace.engine.waiter.none_left()) return;
        if (serving.before) serving.before(stop ? &*stop : nullptr);
        if (stop) serve(trace, *stop);
    }
}

void serve_each_until(Trace &trace, const std::function<bool()> &is_done, std::uint64_t pause_ns) {
    while (!is_done()) {
        serve_each(trace);
        pause(pause_ns);
    }
}

void serve_each(Trace &trace) {
    std::vector<Tid> tids;
    for (const auto &[id, task] : trace.engine.tasks) tids.push_back(Tid{id});
    for (Tid tid : tids)
        if (trace.engine.tasks.contains(tid.value)) serve_next_of(trace, tid, Wait::no);
}

bool serve_next_of(Trace &trace, Tid tid, Wait wait) {
    auto stop = trace.engine.waiter.next_of(tid, wait);
    if (stop) serve(trace, *stop);
    return stop.has_value();
}

std::optional<os::Stop> next_stop_of(Trace &trace, Tid tid) { return trace.engine.waiter.next_of(tid); }

Answer await_answer(Trace &trace, Tid tid, const std::function<bool()> &gives_up) {
    os::Ticker ticker; // no wait for one task is for ever
    ticker.start();
    while (true) {
        auto stop = trace.engine.waiter.next_of(tid, Wait::briefly);
        const bool is_late = !stop && errno == EINTR;
        const bool has_ended = is_late && os::has_ended(tid);
        if (has_ended) stop = trace.engine.waiter.next_of(tid, Wait::no); // its end came behind the wait
        if (!stop) {
            if (!is_late || has_ended) return {Answer::Kind::gone, {}};
            if (gives_up()) return {Answer::Kind::given_up, {}};
            continue;
        }
        if (stop->kind == os::Stop::Kind::started || stop->kind == os::Stop::Kind::group)
            return {Answer::Kind::stands, stop};
        os::interrupt(tid); // pending while it goes on
        serve(trace, *stop);
        return {Answer::Kind::served, {}};
    }
}

void pause(std::uint64_t ns) {
    constexpr std::uint64_t second_ns = 1'000'000'000;
    const std::uint64_t end = monotonic_ns() + ns;
    const timespec until{static_cast<time_t>(end / second_ns), static_cast<long>(end % second_ns)};
    while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
    }
}

} // namespace ktrace::trace
