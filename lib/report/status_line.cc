#include "report/status_line.h"

#include <ctime>

#include <unistd.h>

#include "base/clock.h"
#include "os/self/own_signals.h"
#include "output/writer.h"

namespace ktrace::report {

namespace {

std::uint64_t own_processor_time_ns() {
    timespec used{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return static_cast<std::uint64_t>(used.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(used.tv_nsec);
}

output::Progress progress(const trace::Trace &trace) {
    output::Progress now;
    now.time_ns = monotonic_ns();
    now.busy_ns = own_processor_time_ns();
    for (const auto &location : trace.installed.locations) {
        now.hits += location->counters.hits;
        now.dropped += location->counters.dropped;
    }
    return now;
}

} // namespace

std::shared_ptr<output::LiveLine> open_live_line(const trace::Config &config) {
    // The reader of a pipe (less, grep) may write to the same terminal, behind the half line.
    if (config.output.empty() && output::is_pipe_like(STDOUT_FILENO)) return nullptr;
    if (config.quiet || !output::LiveLine::is_possible(STDERR_FILENO)) return nullptr;
    // The job is the guardian's: the tracing process has a group of its own.
    return std::make_shared<output::LiveLine>(STDERR_FILENO, ::getpgid(::getppid()), os::OwnSignals::waker());
}

trace::Voice beside(output::LiveLine *line, const trace::Voice &voice) {
    if (!line) return voice;
    trace::Voice beside = voice;
    beside.complain = [line, say = voice.complain](const Error &error) { line->aside([&] { say(error); }); };
    beside.notice = [line, say = voice.notice](const std::string &text) { line->aside([&] { say(text); }); };
    return beside;
}

void begin_progress(trace::Trace &trace) {
    if (trace.output.live_line) trace.output.live_line->begin(progress(trace));
}

void tell_progress(trace::Trace &trace) {
    if (trace.output.live_line && trace.output.live_line->asks()) trace.output.live_line->answer(progress(trace));
}

} // namespace ktrace::report
