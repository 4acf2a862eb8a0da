#include "session/overhead_limit.h"

#include <algorithm>

#include <fmt/format.h>

#include "arming/registry.h"
#include "base/clock.h"
#include "base/text.h"
#include "output/label.h"
#include "trace/calibrate.h"

namespace ktrace::session {

namespace {

constexpr std::uint64_t window_ns = 1'000'000'000;

/// A process by which `ktrace ctl` finds this trace: one that the user has named, if it is still there. The thread that
/// was stopped, or a child process, may have ended since.
pid_t reachable(const trace::Trace &trace) {
    const auto &processes = trace.engine.processes;
    for (pid_t pid : trace.config.pids)
        if (processes.contains(pid)) return pid;
    return processes.empty() || processes.contains(trace.program.pid.value) ? trace.program.pid.value
                                                                            : processes.begin()->first;
}

std::string thread_text(const trace::Trace &trace, Tid tid) {
    std::string thread = std::to_string(tid.value);
    if (auto task = trace.engine.tasks.find(tid.value); task != trace.engine.tasks.end())
        thread += " (" + text::escape(os::read_comm(task->second.pid, tid)) + ")";
    return thread;
}

/// The costs of a stop were measured on an idle machine: on a busy one their sum may be more than the time that passed.
std::string percent(std::uint64_t ns, std::uint64_t of_ns) {
    return fmt::format("{:.1f}%", static_cast<double>(std::min(ns, of_ns)) / static_cast<double>(of_ns) * 100);
}

bool can_be_switched_off(trace::Trace &trace, const trace::CountedLocation &location) {
    return trace::is_on(trace, location) && !trace.registry.at(location.probe).set->hidden;
}

void switch_off(trace::Trace &trace, const engine::Overhead::Thread &thread, const engine::Overhead::Share &share,
                std::uint64_t passed) {
    trace::CountedLocation &location = *trace.installed.locations[share.location];
    if (!can_be_switched_off(trace, location)) return;
    location.too_costly = true;
    arming::apply_switches(trace, location.probe);
    trace.voice.notice(fmt::format(
        "{} {} is disarmed: thread {} spent {} of a second stopped for it, and {} for all probes, more than "
        "the {:g}% of --max-overhead; ktrace ctl -p {} enable {} arms it again",
        output::place_with_module(location.info), location.info.kind, thread_text(trace, thread.tid),
        percent(share.ns, passed), percent(thread.ns, passed), *trace.config.max_overhead * 100, reachable(trace),
        location.probe));
}

/// One in whose time the probes have more than half.
void warn(trace::Trace &trace, const engine::Overhead::Thread &thread, std::uint64_t passed) {
    constexpr std::size_t most = 3;
    std::string costliest;
    for (std::size_t i = 0; i < thread.shares.size() && i < most; i++)
        costliest += (i == 0 ? "" : ", ") +
                     output::place_with_module(trace.installed.locations[thread.shares[i].location]->info) + ' ' +
                     percent(thread.shares[i].ns, passed);
    trace.voice.notice(
        fmt::format("thread {} spends {} of its time stopped for probes, most for {}: leave these out, or "
                    "disarm the costliest by --max-overhead 20%",
                    thread_text(trace, thread.tid), percent(thread.ns, passed), costliest));
}

} // namespace

void start_overhead(trace::Trace &trace) {
    if (trace.config.max_overhead) {
        if (trace.engine.corrections.is_empty()) trace.engine.corrections = trace::calibrate();
        trace.engine.waiter.look_often(true); // to know when each stop began
    }
    trace.engine.overhead = std::make_unique<engine::Overhead>();
    trace.overhead_since_ns = monotonic_ns();
}

void watch_overhead(trace::Trace &trace) {
    if (!trace.engine.overhead) return;
    const std::uint64_t now = monotonic_ns(), passed = now - trace.overhead_since_ns;
    if (passed < window_ns) return;
    trace.overhead_since_ns = now;
    const double most = trace.config.max_overhead.value_or(0.5);
    const auto allowed = static_cast<std::uint64_t>(static_cast<double>(passed) * most);
    for (const engine::Overhead::Thread &thread : trace.engine.overhead->take()) {
        if (thread.ns <= allowed) continue;
        if (!trace.config.max_overhead) {
            warn(trace, thread, passed);
            trace.engine.overhead.reset(); // once
            return;
        }
        for (const engine::Overhead::Share &share : engine::costliest_beyond(thread, allowed))
            switch_off(trace, thread, share, passed);
    }
}

} // namespace ktrace::session
