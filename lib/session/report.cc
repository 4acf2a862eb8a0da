#include "session/report.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include <unistd.h>

#include "base/clock.h"
#include "os/cut_files.h"
#include "os/interrupts.h"
#include "output/summary.h"
#include "session/namesakes.h"
#include "session/unhit.h"

namespace ktrace::session {

namespace {

/// False for a location of a set that was refused as a whole, or of a probe of our own.
bool was_registered(const State &state, const CountedLocation &location) {
    const probe::Registered &registered = state.registry.at(location.probe);
    return registered.ready && !registered.set->hidden;
}

/// Indices of the locations of which there is something to tell, by the number of their probe.
std::vector<std::size_t> locations_to_sum_up(const State &state) {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < state.locations.size(); i++)
        if (was_registered(state, *state.locations[i])) order.push_back(i);
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return state.locations[a]->probe < state.locations[b]->probe;
    });
    return order;
}

/// The text of a log record.
std::string_view text_behind(std::span<const std::byte> record) {
    auto text = record.subspan(sizeof(program::RecordHeader));
    return {reinterpret_cast<const char *>(text.data()), text.size()};
}

/// An event that nobody is told of.
void count_as_dropped(program::Counters &counters) {
    counters.events--;
    counters.dropped++;
}

/// There is no room for the record in the output: it is counted as dropped. False: it is to be shown nevertheless,
/// since the first half of its hit was.
bool drop(State &state, const program::RecordHeader &header) {
    tell_once(state, "Events are dropped: they come faster than the output is read; aggregate with --count, or filter");
    if (header.moment == program::Moment::log) return true; // no hit of a probe
    const std::pair hit(header.tid, header.location);
    if (header.moment == program::Moment::post) return state.dropped_halves.erase(hit) != 0;
    state.dropped_halves.insert(hit);
    count_as_dropped(state.locations[header.location]->counters);
    return true;
}

/// The same with room: true for the second half of a hit whose first one was dropped.
bool drop_rest(State &state, const program::RecordHeader &header) {
    bool is_rest = state.dropped_halves.erase({header.tid, header.location}) != 0;
    return is_rest && header.moment == program::Moment::post;
}

/// The writer was given the event: until it is with the kernel, that may fail.
void note_unwritten(State &state, const program::RecordHeader &header) {
    if (header.moment == program::Moment::log || header.moment == program::Moment::post) return; // not counted
    state.unwritten.push_back({state.writer->taken(), header.location});
}

void forget_written(State &state) {
    const std::uint64_t written = state.writer->written();
    while (!state.unwritten.empty() && state.unwritten.front().end <= written) state.unwritten.pop_front();
}

/// What will not be written any more: writing failed, or nobody waits for the reader.
void drop_unwritten(State &state) {
    forget_written(state);
    for (const Unwritten &event : state.unwritten) count_as_dropped(state.locations[event.location]->counters);
    state.unwritten.clear();
}

constexpr std::size_t most_unwritten = std::size_t{16} << 20; // bytes; about 100,000 events

} // namespace

Status open_output(State &state) {
    if (state.config.output.empty()) {
        state.writer = std::make_unique<output::Writer>(STDOUT_FILENO, "standard output");
    } else {
        auto file = output::Writer::create(state.config.output);
        if (!file) return tl::make_unexpected(file.error());
        state.writer = std::make_unique<output::Writer>(std::move(*file));
    }
    output::Writer::Around around;
    if (state.live_line && state.config.output.empty() && ::isatty(STDOUT_FILENO) == 1) // the same terminal
        around = [line = state.live_line](const std::function<void()> &write) { line->aside(write); };
    state.writer->write_in_background(most_unwritten, os::Interrupts::waker(), std::move(around));
    state.sink = state.config.format == Config::Format::json
                     ? output::make_json_sink(*state.writer, state.symbolizer.get())
                     : output::make_text_sink(*state.writer, state.symbolizer.get());
    return {};
}

void report_records(State &state, bool flush) {
    for (const std::string &notice : os::take_cut_file_notices()) tell_once(state, notice);
    std::span<const std::byte> rest = state.world.records.bytes();
    while (rest.size() >= sizeof(program::RecordHeader)) {
        program::RecordHeader header;
        std::memcpy(&header, rest.data(), sizeof header);
        bool dropped = !state.writer->has_room()      ? drop(state, header)
                       : state.dropped_halves.empty() ? false
                                                      : drop_rest(state, header);
        if (dropped) {
            rest = rest.subspan(header.size);
            continue;
        }
        const auto record = rest.first(header.size);
        if (header.moment == program::Moment::log)
            state.sink->log(header, header.location, text_behind(record));
        else
            state.sink->record(record, state.locations[header.location]->info);
        note_unwritten(state, header);
        rest = rest.subspan(header.size);
    }
    state.world.records.clear();
    forget_written(state);
    if (flush) state.writer->flush();
}

bool output_failed(State &state) {
    if (!state.writer->failed()) return false;
    if (auto told = state.writer->take_error(); !told) {
        state.voice.complain(told.error());
        state.trouble = 1;
    }
    return true;
}

namespace {

/// A line of each clock that calls were timed by, and of each place; without any, of the one that would have been.
std::string timing_text(const trap::World &world) {
    const trap::Corrections &corrections = world.corrections;
    auto lines = [&](trap::Clock clock, std::string_view name, const trap::Timed::Calls &calls) {
        auto line = [&](std::string_view of, std::uint64_t count, const trap::Correction &each) {
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
    const auto [by_switches, by_stops, last] = world.timed;
    const bool is_recorded = corrections.by_switches.together.resolution_ns != 0;
    std::string text;
    if (by_switches.all() != 0 || (by_stops.all() == 0 && is_recorded))
        text += lines(trap::Clock::switches, "the kernel's records of context switches", by_switches);
    if (by_stops.all() != 0 || !is_recorded) text += lines(trap::Clock::stops, "ktrace's own clock", by_stops);
    return text;
}

/// For who seems to take it, but does not: the file system of a server that is gone.
constexpr std::uint64_t patience_ns = 2'000'000'000;

} // namespace

/// A signal may have come before there was anything to wait for: the second of two that were sent as one (timeout(1)
/// sends two). So it takes nothing from who reads as fast as is written.
void finish_output(State &state, const std::function<void()> &meanwhile) {
    std::uint64_t told_at = 0;
    state.writer->finish([&] {
        meanwhile();
        const bool told = state.interrupts->take() != 0 || state.interrupts->is_abandoned();
        if (told && told_at == 0) told_at = monotonic_ns();
        return told_at != 0 && (!state.writer->is_taken() || monotonic_ns() - told_at > patience_ns);
    });
}

void report_summary(State &state, const std::function<void()> &meanwhile) {
    report_records(state, false);
    bool timed = false, json = state.config.format == Config::Format::json;
    Unhit unhit = find_unhit(state);
    std::vector<std::size_t> order = locations_to_sum_up(state);
    if (!json) std::erase_if(order, [&](std::size_t i) { return unhit.left_out[i]; });
    tell_namesakes_apart(state, order);
    for (std::size_t i : order) {
        const auto &location = state.locations[i];
        program::Table table = location->state->aggregation.snapshot();
        bool show = table.kind != program::Table::Kind::none;
        state.sink->summary(location->info, location->counters, show ? &table : nullptr);
        timed = timed || location->info.kind == 'r';
    }
    finish_output(state, meanwhile);
    drop_unwritten(state);
    output_failed(state);
    if (state.config.quiet) return;
    std::string text;
    for (std::size_t i : order)
        if (!unhit.left_out[i]) text += output::summary_text(state.locations[i]->info, state.locations[i]->counters);
    text += unhit.text;
    const trap::Timed &calls = state.world.timed;
    timed = timed && (!state.world.corrections.is_empty() || calls.by_switches.all() + calls.by_stops.all() != 0);
    if (timed) text += timing_text(state.world);
    output::Writer errors(STDERR_FILENO, "standard error"); // signals may come in: nothing of it is lost
    errors.write_in_background(text.size() + 1, [] {});
    errors.write(text);
    errors.finish([&] {
        meanwhile();
        return false;
    });
}

} // namespace ktrace::session
