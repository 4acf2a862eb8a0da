#include "session/progress.h"

#include <ctime>

#include <unistd.h>

#include "base/clock.h"
#include "os/interrupts.h"
#include "output/writer.h"

namespace ktrace::session {

namespace {

std::uint64_t own_processor_time_ns() {
    timespec used{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return static_cast<std::uint64_t>(used.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(used.tv_nsec);
}

output::Progress progress(const State &state) {
    output::Progress now;
    now.time_ns = monotonic_ns();
    now.busy_ns = own_processor_time_ns();
    for (const auto &location : state.locations) {
        now.hits += location->counters.hits;
        now.dropped += location->counters.dropped;
    }
    return now;
}

} // namespace

std::shared_ptr<output::LiveLine> open_live_line(const Config &config) {
    // Who reads from a pipe (less, grep) may write to the same terminal, behind the half line.
    if (config.output.empty() && output::is_pipe_like(STDOUT_FILENO)) return nullptr;
    if (config.quiet || !output::LiveLine::is_possible(STDERR_FILENO)) return nullptr;
    // The job is the guardian's: the tracing process has a group of its own.
    return std::make_shared<output::LiveLine>(STDERR_FILENO, ::getpgid(::getppid()), os::Interrupts::waker());
}

Voice beside(output::LiveLine *line, const Voice &voice) {
    if (!line) return voice;
    Voice beside = voice;
    beside.complain = [line, say = voice.complain](const Error &error) { line->aside([&] { say(error); }); };
    beside.notice = [line, say = voice.notice](const std::string &text) { line->aside([&] { say(text); }); };
    return beside;
}

void begin_progress(State &state) {
    if (state.live_line) state.live_line->begin(progress(state));
}

void tell_progress(State &state) {
    if (state.live_line && state.live_line->asks()) state.live_line->answer(progress(state));
}

} // namespace ktrace::session
