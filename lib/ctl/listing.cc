#include "ctl/listing.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <sys/mman.h>

#include "base/text.h"
#include "output/label.h"
#include "output/summary.h"
#include "report/namesakes.h"
#include "report/tables.h"
#include "report/unhit.h"
#include "upgrade/countable.h"

namespace ktrace::ctl {

namespace {

constexpr const char *all_are_off = "All probes are off: ctl on switches them on";

/// Where a location is armed. Ordered as the list is.
struct Place {
    std::uint32_t probe = 0;
    std::size_t location = 0;
    pid_t pid = 0;
    VirtAddr at;
    auto operator<=>(const Place &) const = default;
};

/// ProbeEntry, and not for our own purposes.
bool is_shown(const trace::Trace &trace, std::uint32_t number) {
    const probe::ProbeEntry &registered = trace.registry.at(number);
    return !registered.removed && !registered.set->hidden;
}

/// The locations armed in address spaces, and a process that has it, each.
using Armings = std::vector<std::pair<pid_t, const trace::Arming *>>;

Armings shown_armings(const trace::Trace &trace) {
    Armings armings;
    std::set<const engine::AddressSpaceState *> seen;
    for (const auto &[pid, process] : trace.engine.processes) {
        auto arming = trace.installed.armings.find(process->space.get());
        if (process->silent || arming == trace.installed.armings.end() || !seen.insert(process->space.get()).second)
            continue;
        armings.emplace_back(pid, &arming->second);
    }
    return armings;
}

std::set<Place> armed_places(const trace::Trace &trace, const Armings &armings) {
    std::set<Place> places;
    for (const auto &[pid, arming] : armings) {
        for (const auto &location : arming->locations) {
            std::uint32_t number = trace.installed.locations[location->location]->probe;
            if (is_shown(trace, number)) places.insert({number, location->location, pid, location->at});
        }
    }
    return places;
}

/// `strlen+0x0 [libc.so.6]` of each indirect function whose implementation a process has not chosen yet.
std::vector<std::string> unchosen_places(const trace::Trace &trace, const Armings &armings, std::uint32_t number) {
    std::vector<std::string> places;
    for (const auto &[pid, arming] : armings) {
        for (const trace::WaitingIfunc &ifunc : arming->ifuncs) {
            if (ifunc.probe != number || ifunc.has_chosen) continue;
            program::LocationInfo info;
            info.symbol = ifunc.resolver.symbol;
            info.offset = trace.registry.at(number).probe.spec.offset;
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

std::string line(VirtAddr at, const probe::ProbeEntry &registered, bool enabled, const std::string &place,
                 const char *tag) {
    return fmt::format("{:016x} {} {}{}{}", at.value, static_cast<char>(registered.probe.kind), place,
                       enabled ? "" : " [DISABLED]", tag);
}

std::string line(const trace::Trace &trace, const Place &place, const char *tag) {
    const probe::ProbeEntry &registered = trace.registry.at(place.probe);
    const trace::CountedLocation &location = *trace.installed.locations[place.location];
    return line(place.at, registered, registered.probe.enabled && !location.too_costly,
                output::place_with_module(location.info), tag);
}

/// Calls in flight, by location.
std::vector<std::uint64_t> calls_in_flight(const trace::Trace &trace) {
    std::vector<std::uint64_t> calls(trace.installed.locations.size());
    for (const auto &[space, arming] : trace.installed.armings)
        for (const auto &location : arming.locations) calls[location->location] += location->attachment.active;
    return calls;
}

bool has_location(const trace::Trace &trace, std::uint32_t number) {
    return std::any_of(trace.installed.locations.begin(), trace.installed.locations.end(),
                       [number](const auto &location) { return location->probe == number; });
}

/// Indices of locations, by the number of their probe.
std::vector<std::size_t> locations_by_number(const trace::Trace &trace) {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < trace.installed.locations.size(); i++)
        if (is_shown(trace, trace.installed.locations[i]->probe)) order.push_back(i);
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return trace.installed.locations[a]->probe < trace.installed.locations[b]->probe;
    });
    return order;
}

/// The output of a sink, as text.
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

/// Whether a jump serves the place, where that is asked for.
std::string engine_tag(const trace::Trace &trace, const Place &place, bool verbose) {
    if (trace.config.engine == trace::Config::Engine::trap) return {};
    const auto process = trace.engine.processes.find(place.pid);
    if (process == trace.engine.processes.end()) return {};
    const auto why = upgrade::why_trap(trace, *process->second->space, place.at);
    if (!why) return " [OPTIMIZED]";
    return verbose ? " (a trap: " + *why + ")" : std::string();
}

} // namespace

std::string list_text(const trace::Trace &trace, bool verbose) {
    const Armings armings = shown_armings(trace);
    std::set<Place> places = armed_places(trace, armings);
    std::set<std::size_t> armed;
    for (const Place &place : places) armed.insert(place.location);
    for (std::size_t i : locations_by_number(trace))
        if (!armed.contains(i))
            places.insert({trace.installed.locations[i]->probe, i, 0, trace.installed.locations[i]->last_at});
    std::string text;
    auto add = [&](const std::string &one) { text += one + "\n"; };
    auto next = places.begin();
    for (std::uint32_t number : trace.registry.shown()) {
        const probe::ProbeEntry &registered = trace.registry.at(number);
        const std::vector<std::string> unchosen = unchosen_places(trace, armings, number);
        if (unchosen.empty() && (next == places.end() || next->probe != number))
            add(line({}, registered, registered.probe.enabled, pending_place(registered.probe.spec), " [PENDING]"));
        for (; next != places.end() && next->probe == number; ++next)
            add(line(trace, *next, armed.contains(next->location) ? "" : " [GONE]") +
                engine_tag(trace, *next, verbose));
        for (const std::string &place : unchosen)
            add(line({}, registered, registered.probe.enabled, place, " [PENDING]"));
    }
    return text;
}

std::vector<std::string> armed_lines(const trace::Trace &trace, const engine::Process &process) {
    auto found = trace.installed.armings.find(process.space.get());
    if (found == trace.installed.armings.end()) return {};
    const Armings only{{process.target.pid.value, &found->second}};
    std::vector<std::string> lines;
    if (!trace.registry.all_on()) lines.push_back(all_are_off);
    for (const Place &place : armed_places(trace, only)) lines.push_back(line(trace, place, ""));
    for (std::uint32_t number : trace.registry.shown()) {
        const probe::ProbeEntry &registered = trace.registry.at(number);
        for (const std::string &place : unchosen_places(trace, only, number))
            lines.push_back(line({}, registered, registered.probe.enabled, place, " [PENDING]"));
    }
    return lines;
}

std::string stats_text(trace::Trace &trace, trace::Config::Format format) {
    bool json = format == trace::Config::Format::json;
    std::string counts = json || trace.registry.all_on() ? "" : std::string(all_are_off) + "\n";
    report::Unhit unhit = report::find_unhit(trace);
    std::vector<std::uint64_t> in_flight = calls_in_flight(trace);
    std::string tables = written([&](output::Writer &writer) {
        auto sink =
            json ? output::make_json_sink(writer, trace.output.symbolizer.get())
                 : output::make_text_sink(writer, trace.output.symbolizer.get(), {trace.config.exact_times, false});
        std::vector<std::size_t> order = locations_by_number(trace);
        if (!json) std::erase_if(order, [&](std::size_t i) { return unhit.left_out[i]; });
        report::report_tables(trace, *sink);
        report::tell_namesakes_apart(trace, order);
        for (std::size_t i : order) {
            const trace::CountedLocation &location = *trace.installed.locations[i];
            program::Counters counters = location.counters;
            counters.unreturned += in_flight[i];
            program::Table table = location.state->aggregation.snapshot();
            sink->summary(location.info, counters, table.kind != program::Table::Kind::none ? &table : nullptr);
            counts += fmt::format("{} {}", location.probe, output::summary_text(location.info, counters));
        }
    });
    if (json) return tables;
    for (std::uint32_t number : trace.registry.shown())
        if (!has_location(trace, number))
            counts +=
                fmt::format("{} {} is nowhere yet\n", number, pending_place(trace.registry.at(number).probe.spec));
    return counts + unhit.text + tables;
}

std::string added_text(const trace::Trace &trace, const std::vector<std::uint32_t> &numbers) {
    const Armings armings = shown_armings(trace);
    std::set<Place> places = armed_places(trace, armings);
    std::string text;
    for (std::uint32_t number : numbers) {
        const probe::ProbeEntry &registered = trace.registry.at(number);
        const probe::Probe &probe = registered.probe;
        auto count = std::count_if(places.begin(), places.end(), [&](const Place &p) { return p.probe == number; });
        std::string why;
        if (count == 0 && !registered.why_nowhere.empty())
            why = ": " + text::escape(registered.why_nowhere);
        else if (count == 0 && !unchosen_places(trace, armings, number).empty())
            why = ": it waits until the process chooses an implementation";
        else if (count == 0 && !probe.spec.module.empty())
            why = ": it waits for " + text::escape(probe.spec.module) + " to be loaded";
        text += fmt::format("{} {} {}: {} location{}{}\n", number, static_cast<char>(probe.kind),
                            text::escape(probe.spec.text), count, count == 1 ? "" : "s", why);
    }
    return text;
}

} // namespace ktrace::ctl
