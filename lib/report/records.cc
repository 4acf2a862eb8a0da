#include "report/records.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include <unistd.h>

#include "base/clock.h"
#include "export/sinks.h"
#include "os/self/own_signals.h"
#include "os/self/sigbus_guard.h"
#include "output/summary.h"
#include "output/terminal.h"
#include "report/namesakes.h"
#include "report/tables.h"

namespace ktrace::report {

namespace {

/// False for a location of a set that was refused as a whole, or of a probe of our own.
bool was_registered(const trace::Trace &trace, const trace::CountedLocation &location) {
    const probe::ProbeEntry &registered = trace.registry.at(location.probe);
    return registered.ready && !registered.set->hidden;
}

/// Indices of the locations of which there is something to report, by the number of their probe.
std::vector<std::size_t> locations_to_sum_up(const trace::Trace &trace) {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < trace.installed.locations.size(); i++)
        if (was_registered(trace, *trace.installed.locations[i])) order.push_back(i);
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return trace.installed.locations[a]->probe < trace.installed.locations[b]->probe;
    });
    return order;
}

/// The text of a log record.
std::string_view text_behind(std::span<const std::byte> record) {
    auto text = record.subspan(sizeof(program::RecordHeader));
    return {reinterpret_cast<const char *>(text.data()), text.size()};
}

/// An event that is not shown.
void count_as_dropped(program::Counters &counters) {
    counters.events--;
    counters.dropped++;
}

/// There is no room for the record in the output: it is counted as dropped. False: it is to be shown nevertheless,
/// since the first half of its hit was.
bool drop(trace::Trace &trace, const program::RecordHeader &header) {
    trace::tell_once(trace,
                     "Events are dropped: they come faster than the output is read; aggregate with --count, or filter");
    if (header.moment == program::Moment::log) return true; // no hit of a probe
    const std::pair hit(header.tid, header.location);
    if (header.moment == program::Moment::post) return trace.output.dropped_halves.erase(hit) != 0;
    trace.output.dropped_halves.insert(hit);
    count_as_dropped(trace.installed.locations[header.location]->counters);
    return true;
}

/// The same with room: true for the second half of a hit whose first one was dropped.
bool drop_rest(trace::Trace &trace, const program::RecordHeader &header) {
    bool is_rest = trace.output.dropped_halves.erase({header.tid, header.location}) != 0;
    return is_rest && header.moment == program::Moment::post;
}

/// The writer was given the event: until it is with the kernel, that may fail.
void note_unwritten(trace::Trace &trace, const program::RecordHeader &header) {
    if (header.moment == program::Moment::log || header.moment == program::Moment::post) return; // not counted
    trace.output.unwritten.push_back({trace.output.writer->taken(), header.location});
}

void forget_written(trace::Trace &trace) {
    const std::uint64_t written = trace.output.writer->written();
    while (!trace.output.unwritten.empty() && trace.output.unwritten.front().end <= written)
        trace.output.unwritten.pop_front();
}

/// Events that will not be written any more: writing failed, or the wait for the reader was ended.
void drop_unwritten(trace::Trace &trace) {
    forget_written(trace);
    for (const trace::Unwritten &event : trace.output.unwritten)
        count_as_dropped(trace.installed.locations[event.location]->counters);
    trace.output.unwritten.clear();
}

constexpr std::size_t most_unwritten = std::size_t{16} << 20; // bytes; about 100,000 events

std::unique_ptr<output::Sink> make_sink(const trace::Trace &trace) {
    using Format = trace::Config::Format;
    output::Writer &writer = *trace.output.writer;
    output::Symbolizer *symbolizer = trace.output.symbolizer.get();
    switch (trace.config.format) {
    case Format::json: return output::make_json_sink(writer, symbolizer);
    case Format::csv: return exports::make_csv_sink(writer, symbolizer);
    case Format::folded: return exports::make_folded_sink(writer, symbolizer);
    case Format::chrome: return exports::make_chrome_sink(writer, symbolizer, realtime_ns());
    case Format::text: break;
    }
    const bool has_colours = trace.config.output.empty() && output::takes_colours(STDOUT_FILENO);
    return output::make_text_sink(writer, symbolizer, {trace.config.exact_times, has_colours});
}

} // namespace

Status open_output(trace::Trace &trace) {
    if (trace.config.output.empty()) {
        trace.output.writer = std::make_unique<output::Writer>(STDOUT_FILENO, "standard output");
    } else {
        auto file = output::Writer::create(trace.config.output);
        if (!file) return tl::make_unexpected(file.error());
        trace.output.writer = std::make_unique<output::Writer>(std::move(*file));
    }
    output::Writer::Around around;
    if (trace.output.live_line && trace.config.output.empty() && ::isatty(STDOUT_FILENO) == 1) // the same terminal
        around = [line = trace.output.live_line](const std::function<void()> &write) { line->aside(write); };
    trace.output.writer->write_in_background(most_unwritten, os::OwnSignals::waker(), std::move(around));
    trace.output.sink = make_sink(trace);
    return {};
}

void report_records(trace::Trace &trace, bool flush) {
    for (const std::string &notice : os::take_cut_file_notices()) trace::tell_once(trace, notice);
    std::span<const std::byte> rest = trace.engine.records.bytes();
    while (rest.size() >= sizeof(program::RecordHeader)) {
        program::RecordHeader header;
        std::memcpy(&header, rest.data(), sizeof header);
        const auto record = rest.first(header.size);
        if (trace.output.takes && trace.output.takes(record, header)) {
            rest = rest.subspan(header.size);
            continue;
        }
        bool dropped = !trace.output.writer->has_room()      ? drop(trace, header)
                       : trace.output.dropped_halves.empty() ? false
                                                             : drop_rest(trace, header);
        if (dropped) {
            rest = rest.subspan(header.size);
            continue;
        }
        if (header.moment == program::Moment::log)
            trace.output.sink->log(header, header.location, text_behind(record));
        else
            trace.output.sink->record(record, trace.installed.locations[header.location]->info);
        note_unwritten(trace, header);
        rest = rest.subspan(header.size);
    }
    trace.engine.records.clear();
    forget_written(trace);
    if (flush) trace.output.writer->flush();
}

bool output_failed(trace::Trace &trace) {
    if (!trace.output.writer->failed()) return false;
    if (auto told = trace.output.writer->take_error(); !told) {
        trace.voice.complain(told.error());
        trace.trouble = 1;
    }
    return true;
}

namespace {

/// A line of each clock that calls were timed by, and of each place; without any, of the one that would have been.
std::string timing_text(const engine::Engine &engine) {
    const engine::Corrections &corrections = engine.corrections;
    auto lines = [&](engine::Clock clock, std::string_view name, const engine::Timed::Calls &calls) {
        auto line = [&](std::string_view of, std::uint64_t count, const engine::Correction &each) {
            return output::timing_text(
                {of, name, count, each.per_call_ns, each.per_stop_ns, each.resolution_ns, each.rare_ns});
        };
        std::string text;
        if (calls.together != 0 || calls.apart == 0)
            text += line("Durations", calls.together, corrections.of(clock).together);
        if (calls.apart != 0)
            text += line("Durations on another processor than ktrace's", calls.apart, corrections.of(clock).apart);
        return text;
    };
    const auto [by_switches, by_stops, last] = engine.timed;
    const bool is_recorded = corrections.by_switches.together.resolution_ns != 0;
    std::string text;
    if (by_switches.all() != 0 || (by_stops.all() == 0 && is_recorded))
        text += lines(engine::Clock::switches, "the kernel's records of context switches", by_switches);
    if (by_stops.all() != 0 || !is_recorded) text += lines(engine::Clock::stops, "ktrace's own clock", by_stops);
    return text;
}

/// For a reader that seems to take it, but does not: the file system of a server that is gone.
constexpr std::uint64_t patience_ns = 2'000'000'000;

} // namespace

/// A signal may have come before there was anything to wait for: the second of two that were sent as one (timeout(1)
/// sends two). So it takes nothing from a reader that is as fast as the writer.
void finish_output(trace::Trace &trace, const std::function<void()> &meanwhile) {
    std::uint64_t told_at = 0;
    trace.output.writer->finish([&] {
        meanwhile();
        const bool told = trace.interrupts->take() != 0 || trace.interrupts->is_abandoned();
        if (told && told_at == 0) told_at = monotonic_ns();
        return told_at != 0 && (!trace.output.writer->is_taken() || monotonic_ns() - told_at > patience_ns);
    });
}

namespace {

void add(program::Counters &to, const program::Counters &more) {
    using program::Counters;
    for (auto count : {&Counters::hits, &Counters::events, &Counters::filtered, &Counters::unselected,
                       &Counters::missed, &Counters::unreturned, &Counters::dropped, &Counters::injected,
                       &Counters::in_flight, &Counters::ended, &Counters::left, &Counters::unfollowed})
        to.*count += more.*count;
}

output::Totals totals_of(const trace::Trace &trace, const std::vector<std::size_t> &order) {
    output::Totals totals;
    totals.places = order.size();
    if (trace.began_ns != 0) totals.ns = monotonic_ns() - trace.began_ns;
    for (std::size_t i : order) {
        const trace::CountedLocation &location = *trace.installed.locations[i];
        add(totals.counters, location.counters);
        totals.hit += location.counters.hits != 0 ? 1 : 0;
        totals.injects = totals.injects || location.info.injects;
    }
    return totals;
}

/// With -v the counts of all places, and how durations were corrected. Of a place that lost hits, why; the totals.
std::string summary_text(const trace::Trace &trace, const std::vector<std::size_t> &order) {
    std::string text;
    bool timed = false;
    if (trace.config.verbose > 0)
        for (std::size_t i : order) {
            text += output::summary_text(trace.installed.locations[i]->info, trace.installed.locations[i]->counters);
            timed = timed || trace.installed.locations[i]->info.kind == 'r';
        }
    const engine::Timed &calls = trace.engine.timed;
    if (timed && (!trace.engine.corrections.is_empty() || calls.by_switches.all() + calls.by_stops.all() != 0))
        text += timing_text(trace.engine);
    const output::Totals totals = totals_of(trace, order);
    if (trace.began_ns == 0 && totals.counters.hits == 0) return text; // it never began
    text += output::totals_text(totals);
    for (std::size_t i : order) {
        const trace::CountedLocation &location = *trace.installed.locations[i];
        if (location.counters.lost() != 0)
            text += output::lost_text(location.info, location.counters, location.maxactive);
    }
    return text;
}

} // namespace

void report_summary(trace::Trace &trace, const std::function<void()> &meanwhile) {
    report_records(trace, false);
    const std::vector<std::size_t> order = locations_to_sum_up(trace);
    report_tables(trace, *trace.output.sink);
    tell_namesakes_apart(trace, order);
    for (std::size_t i : order) {
        const auto &location = trace.installed.locations[i];
        program::Table table = location->state->aggregation.snapshot();
        const bool is_silent = trace.registry.at(location->probe).actions().silent;
        const bool show = table.kind != program::Table::Kind::none && !is_silent;
        trace.output.sink->summary(location->info, location->counters, show ? &table : nullptr);
    }
    trace.output.sink->end();
    finish_output(trace, meanwhile);
    drop_unwritten(trace);
    output_failed(trace);
    if (trace.config.quiet) return;
    const std::string text = summary_text(trace, order);
    output::Writer errors(STDERR_FILENO, "standard error"); // signals may come in: nothing of it is lost
    errors.write_in_background(text.size() + 1, [] {});
    errors.write(text);
    errors.finish([&] {
        meanwhile();
        return false;
    });
}

} // namespace ktrace::report
