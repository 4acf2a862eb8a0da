#include "report/tables.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <tuple>

#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/quiet_thread.h"
#include "os/self/own_signals.h"
#include "output/render.h"
#include "output/table_lines.h"
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

bool has_callers(const program::Table &table) {
    return std::any_of(table.rows.begin(), table.rows.end(), [](const program::Row &row) {
        return std::any_of(row.key.begin(), row.key.end(),
                           [](const program::KeyPart &part) { return part.tag == program::Tag::function; });
    });
}

/// Two calls in one function are two addresses, and one caller.
program::Table by_names(const trace::Trace &trace, const program::LocationInfo &location,
                        const program::Aggregation &hits) {
    program::Aggregation named = hits.empty_copy();
    named.add_named(hits, [&](const std::vector<program::KeyPart> &key, std::int32_t pid) {
        std::string name;
        for (const program::KeyPart &part : key) {
            output::append_text(name, output::node_of(part), {location.types, trace.output.symbolizer.get(), pid});
            name += '\0';
        }
        return name;
    });
    return named.snapshot();
}

program::Table table_of(const trace::Trace &trace, const Locations &locations, Hits wanted) {
    auto hits_of = [&](std::size_t i) -> const program::Aggregation & {
        const program::Aggregation &all = trace.installed.locations[i]->state->aggregation;
        return wanted == Hits::all ? all : all.recent_hits();
    };
    program::Aggregation sum = hits_of(locations[0]).empty_copy();
    if (locations.size() > 1)
        for (std::size_t i : locations) sum.add_all(hits_of(i));
    const program::Aggregation &hits = locations.size() > 1 ? sum : hits_of(locations[0]);
    program::Table table = hits.snapshot();
    return has_callers(table) ? by_names(trace, trace.installed.locations[locations[0]]->info, hits) : table;
}

output::TableLayout layout_of(const trace::Config &config) {
    output::TableLayout layout;
    layout.sort = config.sort;
    layout.top = config.top;
    layout.exact_times = config.exact_times;
    winsize size{};
    if (!config.output.empty() || ::isatty(STDOUT_FILENO) != 1) return layout;
    if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return layout;
    layout.width = size.ws_col;
    layout.height = size.ws_row;
    layout.in_place = config.program.empty(); // else the program writes there, too
    return layout;
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
