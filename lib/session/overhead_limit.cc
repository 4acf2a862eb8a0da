#include "session/overhead_limit.h"

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

void switch_off(trace::Trace &trace, const engine::Overhead::Share &share, double part) {
    trace::CountedLocation &location = *trace.installed.locations[share.location];
    location.too_costly = true;
    arming::apply_switches(trace, location.probe);
    if (trace.config.quiet) return;
    std::string thread = std::to_string(share.tid.value);
    if (auto task = trace.engine.tasks.find(share.tid.value); task != trace.engine.tasks.end())
        thread += " (" + text::escape(os::read_comm(task->second.pid, share.tid)) + ")";
    trace.voice.notice(
        fmt::format("{} {} is disarmed: thread {} spent {:.1f}% of a second stopped for it, more than the "
                    "{:g}% of --max-overhead; ktrace ctl -p {} enable {} arms it again",
                    output::place_with_module(location.info), location.info.kind, thread, part * 100,
                    *trace.config.max_overhead * 100, reachable(trace), location.probe));
}

} // namespace

void start_overhead(trace::Trace &trace) {
    if (!trace.config.max_overhead) return;
    if (trace.engine.corrections.is_empty()) trace.engine.corrections = trace::calibrate();
    trace.engine.overhead = std::make_unique<engine::Overhead>();
    trace.engine.waiter.look_often(true); // to know when each stop began
    trace.overhead_since_ns = monotonic_ns();
}

void limit_overhead(trace::Trace &trace) {
    if (!trace.engine.overhead) return;
    const std::uint64_t now = monotonic_ns(), passed = now - trace.overhead_since_ns;
    if (passed < window_ns) return;
    trace.overhead_since_ns = now;
    for (const engine::Overhead::Share &share : trace.engine.overhead->take()) {
        double part = static_cast<double>(share.ns) / static_cast<double>(passed);
        if (part > *trace.config.max_overhead && trace::is_on(trace, *trace.installed.locations[share.location]) &&
            !trace.registry.at(trace.installed.locations[share.location]->probe).set->hidden)
            switch_off(trace, share, part);
    }
}

} // namespace ktrace::session
