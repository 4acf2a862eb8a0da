#include "report/tables.h"

#include <algorithm>
#include <chrono>

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

bool is_shown(const trace::Trace &trace, std::uint32_t number) {
    const probe::ProbeEntry &registered = trace.registry.at(number);
    return registered.ready && !registered.set->hidden && !registered.actions().silent;
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
                        const program::Aggregation &hits, std::span<const double> also) {
    program::Aggregation named = hits.empty_copy();
    named.add_named(hits, [&](const std::vector<program::KeyPart> &key, std::int32_t pid) {
        std::string name;
        for (const program::KeyPart &part : key) {
            output::append_text(name, output::node_of(part), {location.types, trace.output.symbolizer.get(), pid});
            name += '\0';
        }
        return name;
    });
    return named.snapshot(also);
}

program::Table table_of(const trace::Trace &trace, const Locations &locations, Hits wanted,
                        std::span<const double> also = {}) {
    auto hits_of = [&](std::size_t i) -> const program::Aggregation & {
        const program::Aggregation &all = trace.installed.locations[i]->state->aggregation;
        return wanted == Hits::all ? all : all.recent_hits();
    };
    program::Aggregation sum = hits_of(locations[0]).empty_copy();
    if (locations.size() > 1)
        for (std::size_t i : locations) sum.add_all(hits_of(i));
    const program::Aggregation &hits = locations.size() > 1 ? sum : hits_of(locations[0]);
    program::Table table = hits.snapshot(also);
    return has_callers(table) ? by_names(trace, trace.installed.locations[locations[0]]->info, hits, also) : table;
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
    std::vector<std::size_t> shown;
    std::vector<output::FunctionTable> tables;
    for (std::uint32_t number = 1; number <= trace.registry.last(); number++) {
        if (!is_shown(trace, number)) continue;
        for (const auto &[function, locations] : functions_of(trace, number)) {
            program::Table table = table_of(trace, locations, hits);
            if (table.kind == program::Table::Kind::none || table.rows.empty()) continue;
            shown.push_back(locations[0]);
            tables.push_back({&trace.installed.locations[locations[0]]->info, std::move(table)});
        }
    }
    tell_namesakes_apart(trace, shown);
    sink.tables(tables, layout_of(trace.config), interval);
}

} // namespace

FunctionKey key_of(const trace::CountedLocation &location) {
    const bool is_inlined = location.instance != 0;
    return {location.module, location.info.symbol, location.info.offset, is_inlined ? 0 : location.vaddr};
}

std::map<FunctionKey, Locations> functions_of(const trace::Trace &trace, std::uint32_t number) {
    std::map<FunctionKey, Locations> functions;
    for (std::size_t i = 0; i < trace.installed.locations.size(); i++) {
        const trace::CountedLocation &location = *trace.installed.locations[i];
        if (location.probe == number) functions[key_of(location)].push_back(i);
    }
    return functions;
}

program::Table table_of(const trace::Trace &trace, const Locations &locations, std::span<const double> also) {
    return table_of(trace, locations, Hits::all, also);
}

program::Table sum_of(const trace::Trace &trace, const Locations &locations, std::span<const double> also) {
    auto hits_at = [&](std::size_t i) -> const program::Aggregation & {
        return trace.installed.locations[i]->state->aggregation;
    };
    program::Aggregation sum = hits_at(locations[0]).empty_copy();
    const std::string of = sum.snapshot().of;
    for (std::size_t i : locations)
        if (hits_at(i).kind() == sum.kind() && hits_at(i).snapshot().of == of)
            sum.add_named(hits_at(i), [](const auto &, std::int32_t) { return std::string(); });
    program::Table table = sum.snapshot(also);
    table.by.clear();
    for (program::Row &row : table.rows) row.key.clear();
    return table;
}

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
