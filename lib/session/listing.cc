#include "session/listing.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <sys/mman.h>

#include "base/text.h"
#include "output/label.h"
#include "output/summary.h"
#include "session/namesakes.h"
#include "session/unhit.h"

namespace ktrace::session {

namespace {

/// Where a location is armed. Ordered as the list is.
struct Place {
    std::uint32_t probe = 0;
    std::size_t location = 0;
    pid_t pid = 0;
    VirtAddr at;
    auto operator<=>(const Place &) const = default;
};

/// Registered, and not for our own purposes.
bool is_shown(const State &state, std::uint32_t number) {
    const probe::Registered &registered = state.registry.at(number);
    return !registered.removed && !registered.set->hidden;
}

/// What is armed in address spaces, and a process that has it, each.
using Armings = std::vector<std::pair<pid_t, const Arming *>>;

Armings shown_armings(const State &state) {
    Armings armings;
    std::set<const trap::Ground *> seen;
    for (const auto &[pid, traced] : state.world.processes) {
        auto arming = state.armings.find(traced->ground.get());
        if (traced->silent || arming == state.armings.end() || !seen.insert(traced->ground.get()).second) continue;
        armings.emplace_back(pid, &arming->second);
    }
    return armings;
}

std::set<Place> armed_places(const State &state, const Armings &armings) {
    std::set<Place> places;
    for (const auto &[pid, arming] : armings) {
        for (const auto &location : arming->locations) {
            std::uint32_t number = state.locations[location->location]->probe;
            if (is_shown(state, number)) places.insert({number, location->location, pid, location->at});
        }
    }
    return places;
}

/// `strlen+0x0 [libc.so.6]` of each indirect function whose implementation a process has not chosen yet.
std::vector<std::string> unchosen_places(const State &state, const Armings &armings, std::uint32_t number) {
    std::vector<std::string> places;
    for (const auto &[pid, arming] : armings) {
        for (const WaitingIfunc &ifunc : arming->ifuncs) {
            if (ifunc.probe != number || ifunc.has_chosen) continue;
            program::LocationInfo info;
            info.symbol = ifunc.resolver.symbol;
            info.offset = state.registry.at(number).probe.spec.offset;
            info.module = ifunc.resolver.module->name();
            places.push_back(output::place_with_module(info));
        }
    }
    return places;
}

/// `parse+0x0 [libfoo.so]` of a SPEC that has no location yet.
std::string pending_place(const probe::Spec &spec) {
    std::string place = text::escape(spec.text);
    if (spec.form == probe::Spec::Form::symbol) place = fmt::format("{}+{:#x}", text::escape(spec.symbol), spec.offset);
    if (spec.form == probe::Spec::Form::line) place = fmt::format("{}:{}", text::escape(spec.file), spec.line);
    if (spec.form == probe::Spec::Form::module_address) place = fmt::format("{:#x}", spec.address);
    if (!spec.module.empty()) place += " [" + text::escape(text::base_name(spec.module)) + "]";
    return place;
}

std::string line(VirtAddr at, const probe::Registered &registered, bool enabled, const std::string &place,
                 const char *tag) {
    return fmt::format("{:016x} {} {}{}{}", at.value, static_cast<char>(registered.probe.kind), place,
                       enabled ? "" : " [DISABLED]", tag);
}

std::string line(const State &state, const Place &place, const char *tag) {
    const probe::Registered &registered = state.registry.at(place.probe);
    const CountedLocation &location = *state.locations[place.location];
    return line(place.at, registered, registered.enabled && !location.too_costly,
                output::place_with_module(location.info), tag);
}

/// Calls in flight, by location.
std::vector<std::uint64_t> calls_in_flight(const State &state) {
    std::vector<std::uint64_t> calls(state.locations.size());
    for (const auto &[ground, arming] : state.armings)
        for (const auto &location : arming.locations) calls[location->location] += location->armed.active;
    return calls;
}

bool has_location(const State &state, std::uint32_t number) {
    return std::any_of(state.locations.begin(), state.locations.end(),
                       [number](const auto &location) { return location->probe == number; });
}

/// Indices of locations, by the number of their probe.
std::vector<std::size_t> locations_by_number(const State &state) {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < state.locations.size(); i++)
        if (is_shown(state, state.locations[i]->probe)) order.push_back(i);
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return state.locations[a]->probe < state.locations[b]->probe;
    });
    return order;
}

/// What a sink writes, as text.
template <class F> std::string written(F &&write) {
    Fd memory(::memfd_create("ktrace-stats", MFD_CLOEXEC));
    if (!memory) return {};
    output::Writer writer(memory.get(), "the answer");
    write(writer);
    writer.flush();
    std::string text(static_cast<std::size_t>(std::max<off_t>(::lseek(memory.get(), 0, SEEK_END), 0)), '\0');
    ssize_t got = ::pread(memory.get(), text.data(), text.size(), 0);
    text.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    return text;
}

} // namespace

std::string list_text(const State &state) {
    const Armings armings = shown_armings(state);
    std::set<Place> places = armed_places(state, armings);
    std::set<std::size_t> armed;
    for (const Place &place : places) armed.insert(place.location);
    for (std::size_t i : locations_by_number(state))
        if (!armed.contains(i)) places.insert({state.locations[i]->probe, i, 0, state.locations[i]->last_at});
    std::string text;
    auto add = [&](const std::string &one) { text += one + "\n"; };
    auto next = places.begin();
    for (std::uint32_t number : state.registry.shown()) {
        const probe::Registered &registered = state.registry.at(number);
        const std::vector<std::string> unchosen = unchosen_places(state, armings, number);
        if (unchosen.empty() && (next == places.end() || next->probe != number))
            add(line({}, registered, registered.enabled, pending_place(registered.probe.spec), " [PENDING]"));
        for (; next != places.end() && next->probe == number; ++next)
            add(line(state, *next, armed.contains(next->location) ? "" : " [GONE]"));
        for (const std::string &place : unchosen) add(line({}, registered, registered.enabled, place, " [PENDING]"));
    }
    return text;
}

std::vector<std::string> armed_lines(const State &state, const trap::Traced &traced) {
    auto found = state.armings.find(traced.ground.get());
    if (found == state.armings.end()) return {};
    const Armings only{{traced.process.pid.value, &found->second}};
    std::vector<std::string> lines;
    for (const Place &place : armed_places(state, only)) lines.push_back(line(state, place, ""));
    for (std::uint32_t number : state.registry.shown()) {
        const probe::Registered &registered = state.registry.at(number);
        for (const std::string &place : unchosen_places(state, only, number))
            lines.push_back(line({}, registered, registered.enabled, place, " [PENDING]"));
    }
    return lines;
}

std::string stats_text(State &state, Config::Format format) {
    bool json = format == Config::Format::json;
    std::string counts = json || state.registry.all_on() ? "" : "All probes are off: ctl on switches them on\n";
    Unhit unhit = find_unhit(state);
    std::vector<std::uint64_t> in_flight = calls_in_flight(state);
    std::string tables = written([&](output::Writer &writer) {
        auto sink = json ? output::make_json_sink(writer, state.symbolizer.get())
                         : output::make_text_sink(writer, state.symbolizer.get());
        std::vector<std::size_t> order = locations_by_number(state);
        if (!json) std::erase_if(order, [&](std::size_t i) { return unhit.left_out[i]; });
        tell_namesakes_apart(state, order);
        for (std::size_t i : order) {
            const CountedLocation &location = *state.locations[i];
            program::Counters counters = location.counters;
            counters.unreturned += in_flight[i];
            program::Table table = location.state->aggregation.snapshot();
            sink->summary(location.info, counters, table.kind != program::Table::Kind::none ? &table : nullptr);
            counts += fmt::format("{} {}", location.probe, output::summary_text(location.info, counters));
        }
    });
    if (json) return tables;
    for (std::uint32_t number : state.registry.shown())
        if (!has_location(state, number))
            counts +=
                fmt::format("{} {} is nowhere yet\n", number, pending_place(state.registry.at(number).probe.spec));
    return counts + unhit.text + tables;
}

std::string added_text(const State &state, const std::vector<std::uint32_t> &numbers) {
    const Armings armings = shown_armings(state);
    std::set<Place> places = armed_places(state, armings);
    std::string text;
    for (std::uint32_t number : numbers) {
        const probe::Registered &registered = state.registry.at(number);
        const probe::Probe &probe = registered.probe;
        auto count = std::count_if(places.begin(), places.end(), [&](const Place &p) { return p.probe == number; });
        std::string why;
        if (count == 0 && !registered.why_nowhere.empty())
            why = ": " + text::escape(registered.why_nowhere);
        else if (count == 0 && !unchosen_places(state, armings, number).empty())
            why = ": it waits until the process chooses an implementation";
        else if (count == 0 && !probe.spec.module.empty())
            why = ": it waits for " + text::escape(probe.spec.module) + " to be loaded";
        text += fmt::format("{} {} {}: {} location{}{}\n", number, static_cast<char>(probe.kind),
                            text::escape(probe.spec.text), count, count == 1 ? "" : "s", why);
    }
    return text;
}

} // namespace ktrace::session
