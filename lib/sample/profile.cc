#include "sample/profile.h"

#include <algorithm>
#include <memory>
#include <string>

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "os/self/own_signals.h"
#include "output/time_text.h"
#include "report/symbolizer.h"
#include "sample/flame_graph.h"
#include "sample/profile_tables.h"
#include "sample/sample_output.h"
#include "sample/sampler.h"
#include "trace/downloads.h"
#include "trace/tracing_thread.h"

namespace ktrace::sample {

namespace {

/// The samples, from the tracing thread to the end of the output.
struct KeptProfile {
    KeptProfile(const trace::Config &config, const trace::Voice &voice)
        : trace(config, voice, look_events), sampler(trace) {}
    trace::Trace trace;
    Sampler sampler;
    std::uint64_t took_ns = 0;
};

Status sample_all(KeptProfile &kept, const ProfileRequest &request) {
    const trace::Config &config = kept.trace.config;
    for (pid_t pid : config.pids)
        if (auto added = kept.sampler.add(pid); !added) return added;
    const std::uint64_t began = monotonic_ns();
    const std::uint64_t duration = config.duration_ns.value_or(default_duration_ns);
    Status sampled = kept.sampler.run(request.frequency, began + duration);
    kept.took_ns = monotonic_ns() - began;
    return sampled;
}

TableSize size_of(const trace::Config &config) {
    TableSize size;
    size.top = config.top.value_or(0);
    winsize terminal{};
    if (config.output.empty() && ::isatty(STDOUT_FILENO) == 1 && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &terminal) == 0)
        size.width = terminal.ws_col;
    return size;
}

/// `12 looks …`: so that an empty table is understood.
std::string summary_of(const std::vector<NamedSample> &samples, std::uint64_t took_ns) {
    std::uint64_t on = 0, off = 0;
    for (const NamedSample &each : samples) {
        on += each.sample.on.looks;
        off += each.sample.off.looks;
    }
    const std::uint64_t all = std::max<std::uint64_t>(on + off, 1);
    auto percent = [all](std::uint64_t looks) {
        return fmt::format("{:.1f}%", 100.0 * static_cast<double>(looks) / static_cast<double>(all));
    };
    return fmt::format("{} looks at threads in {}: {} on the processor, {} waiting", on + off,
                       output::time_text(static_cast<double>(took_ns), output::summary_style), percent(on),
                       percent(off));
}

std::string title_of(const trace::Trace &trace, Which which) {
    std::string title = which == Which::waiting ? "waiting:" : "on the processor:";
    for (const auto &[pid, process] : trace.engine.processes)
        title += " " + text::escape(process->target.comm) + " (" + std::to_string(pid) + ")";
    return title;
}

std::string report_of(const KeptProfile &kept, const ProfileRequest &request, const std::vector<NamedSample> &samples,
                      output::Symbolizer &symbolizer) {
    const trace::Config &config = kept.trace.config;
    const Which which = request.waiting ? Which::waiting : Which::on_processor;
    if (config.output.ends_with(".svg")) return flame_graph(title_of(kept.trace, which), paths_of(samples, which));
    if (config.format == trace::Config::Format::folded) return folded(paths_of(samples, which));
    if (config.format == trace::Config::Format::json) return profile_json(samples, symbolizer);
    return profile_tables(samples, size_of(config));
}

} // namespace

int profile(const trace::Config &config, const ProfileRequest &request, const trace::Voice &voice) {
    const os::OwnSignals interrupts;
    trace::forbid_downloads();
    std::unique_ptr<KeptProfile> kept;
    Status sampled;
    auto started = trace::in_tracing_thread([&] {
        kept = std::make_unique<KeptProfile>(config, voice);
        sampled = sample_all(*kept, request);
    });
    if (started) started = sampled;
    if (!started) {
        voice.complain(started.error());
        return 1;
    }
    auto symbolizer = report::make_symbolizer(kept->trace);
    const auto samples = name_all(kept->sampler.samples(), *symbolizer);
    if (auto written = write_out(config, report_of(*kept, request, samples, *symbolizer)); !written) {
        voice.complain(written.error());
        return 1;
    }
    if (!config.quiet) voice.notice(summary_of(samples, kept->took_ns));
    return 0;
}

} // namespace ktrace::sample
