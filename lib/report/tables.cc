#include "report/tables.h"

#include <chrono>
#include <map>
#include <tuple>

#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/quiet_thread.h"
#include "os/self/own_signals.h"
#include "report/namesakes.h"

namespace ktrace::report {

namespace {

/// The locations of one function, by their indices: those of its inlined instances are one with it.
using Locations = std::vector<std::size_t>;

bool was_registered(const trace::Trace &trace, const trace::CountedLocation &location) {
    const probe::ProbeEntry &registered = trace.registry.at(location.probe);
    return registered.ready && !registered.set->hidden;
}

std::vector<Locations> functions_with_hits(const trace::Trace &trace) {
    std::map<std::tuple<std::uint32_t, const symbols::Module *, std::string_view, std::uint64_t, std::uint64_t>,
             Locations>
        found;
    for (std::size_t i = 0; i < trace.installed.locations.size(); i++) {
        const trace::CountedLocation &location = *trace.installed.locations[i];
        if (!was_registered(trace, location)) continue;
        const bool is_inlined = location.instance != 0;
        found[{location.probe, location.module, location.info.symbol, location.info.offset,
               is_inlined ? 0 : location.vaddr}]
            .push_back(i);
    }
    std::vector<Locations> functions;
    for (auto &[key, locations] : found) functions.push_back(std::move(locations));
    return functions;
}

enum class Hits : std::uint8_t { all, recent };

program::Table table_of(const trace::Trace &trace, const Locations &locations, Hits hits) {
    const program::Aggregation &first = trace.installed.locations[locations[0]]->state->aggregation;
    if (locations.size() == 1) return hits == Hits::all ? first.snapshot() : first.recent();
    program::Aggregation sum = first.empty_copy();
    for (std::size_t i : locations) {
        const program::Aggregation &each = trace.installed.locations[i]->state->aggregation;
        hits == Hits::all ? sum.add_all(each) : sum.add_recent(each);
    }
    return sum.snapshot();
}

output::TableLayout layout_of(const trace::Config &config) {
    winsize size{};
    const bool is_terminal = config.output.empty() && ::isatty(STDOUT_FILENO) == 1 &&
                             ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col != 0;
    if (!is_terminal) return {0, 0, config.sort, config.top, config.exact_times};
    return {size.ws_col, size.ws_row, config.sort, config.top, config.exact_times};
}

void report(trace::Trace &trace, output::Sink &sink, Hits hits, std::uint64_t interval) {
    const std::vector<Locations> functions = functions_with_hits(trace);
    std::vector<std::size_t> shown;
    std::vector<output::FunctionTable> tables;
    for (const Locations &locations : functions) {
        program::Table table = table_of(trace, locations, hits);
        if (table.kind == program::Table::Kind::none || table.rows.empty()) continue;
        shown.push_back(locations[0]);
        tables.push_back({&trace.installed.locations[locations[0]]->info, std::move(table)});
    }
    tell_namesakes_apart(trace, shown);
    sink.tables(tables, layout_of(trace.config), interval);
}

} // namespace

void report_tables(trace::Trace &trace, output::Sink &sink) { report(trace, sink, Hits::all, 0); }

Intervals::~Intervals() {
    {
        std::lock_guard lock(mutex_);
        is_over_ = true;
    }
    changed_.notify_one();
    if (waking_.joinable()) waking_.join();
}

void Intervals::begin_to_wake() {
    waking_ = start_quiet_thread([this, every = *trace_.config.interval_ns, wake = os::OwnSignals::waker()] {
        std::unique_lock lock(mutex_);
        while (!changed_.wait_for(lock, std::chrono::nanoseconds(every), [this] { return is_over_; })) wake();
    });
}

bool Intervals::has_ended() {
    if (!trace_.config.interval_ns || !trace_.time_has_begun) return false;
    const std::uint64_t now = monotonic_ns();
    if (next_ns_ == 0) {
        next_ns_ = now + *trace_.config.interval_ns;
        begin_to_wake();
    }
    if (now < next_ns_) return false;
    next_ns_ = now + *trace_.config.interval_ns;
    return true;
}

void Intervals::report() {
    report::report(trace_, *trace_.output.sink, Hits::recent, ++number_);
    trace_.output.writer->flush();
    for (const auto &location : trace_.installed.locations) location->state->aggregation.clear_recent();
}

} // namespace ktrace::report
