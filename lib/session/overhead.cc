#include "session/overhead.h"

#include <fmt/format.h>

#include "base/clock.h"
#include "base/text.h"
#include "output/label.h"
#include "session/calibrate.h"
#include "session/registry.h"

namespace ktrace::session {

namespace {

constexpr std::uint64_t window_ns = 1'000'000'000;

/// A process by which ktrace ctl finds this trace: one that the user has named, if it is there still. The thread that
/// was stopped, and a child that it was in, may have ended since.
pid_t reachable(const State &state) {
    const auto &processes = state.world.processes;
    for (pid_t pid : state.config.pids)
        if (processes.contains(pid)) return pid;
    return processes.empty() || processes.contains(state.program.value) ? state.program.value
                                                                        : processes.begin()->first;
}

void switch_off(State &state, const trap::Overhead::Share &share, double part) {
    CountedLocation &location = *state.locations[share.location];
    location.too_costly = true;
    apply_switches(state, location.probe);
    if (state.config.quiet) return;
    std::string thread = std::to_string(share.tid.value);
    if (auto task = state.world.tasks.find(share.tid.value); task != state.world.tasks.end())
        thread += " (" + text::escape(os::read_comm(task->second.pid, share.tid)) + ")";
    state.voice.notice(
        fmt::format("{} {} is disarmed: thread {} spent {:.1f}% of a second stopped for it, more than the "
                    "{:g}% of --max-overhead; ktrace ctl -p {} enable {} arms it again",
                    output::place_with_module(location.info), location.info.kind, thread, part * 100,
                    *state.config.max_overhead * 100, reachable(state), location.probe));
}

} // namespace

void start_overhead(State &state) {
    if (!state.config.max_overhead) return;
    if (state.world.corrections.is_empty()) state.world.corrections = calibrate();
    state.world.overhead = std::make_unique<trap::Overhead>();
    state.world.waiter.look_often(true); // when a stop began is known by that
    state.overhead_since_ns = monotonic_ns();
}

void limit_overhead(State &state) {
    if (!state.world.overhead) return;
    const std::uint64_t now = monotonic_ns(), passed = now - state.overhead_since_ns;
    if (passed < window_ns) return;
    state.overhead_since_ns = now;
    for (const trap::Overhead::Share &share : state.world.overhead->take()) {
        double part = static_cast<double>(share.ns) / static_cast<double>(passed);
        if (part > *state.config.max_overhead && is_on(state, *state.locations[share.location]) &&
            !state.registry.at(state.locations[share.location]->probe).set->hidden)
            switch_off(state, share, part);
    }
}

} // namespace ktrace::session
