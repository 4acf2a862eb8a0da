#include "judging/cases.h"

#include <algorithm>

#include <fmt/format.h>

#include "judging/gathered.h"
#include "os/proc/procfs.h"
#include "output/table_lines.h"
#include "report/namesakes.h"

namespace ktrace::judging {

namespace {

using expect::Case;
using expect::Claim;
using Locations = std::vector<std::size_t>;
using Functions = std::map<report::FunctionKey, Locations>;

/// The percentiles of a claim, as fractions, in the order of its figures.
std::vector<double> fractions_of(const Claim &claim) {
    std::vector<double> fractions;
    for (const std::string &figure : claim.figures)
        if (int percentile = expect::percentile_of(figure)) fractions.push_back(percentile / 100.0);
    return fractions;
}

/// The functions of the probes that a claim is judged by.
class Found {
  public:
    explicit Found(trace::Trace &trace) : trace_(trace) {}

    const Functions &of(std::uint32_t number) {
        auto [at, is_new] = found_.try_emplace(number);
        if (is_new) at->second = report::functions_of(trace_, number);
        return at->second;
    }
    /// nullptr: this probe has not found that function.
    const Locations *of(std::uint32_t number, const report::FunctionKey &key) {
        const Functions &functions = of(number);
        auto at = functions.find(key);
        return at == functions.end() ? nullptr : &at->second;
    }

  private:
    trace::Trace &trace_;
    std::map<std::uint32_t, Functions> found_;
};

std::uint64_t lost_at(const trace::Trace &trace, const Locations &locations) {
    std::uint64_t lost = 0;
    for (std::size_t i : locations) {
        const program::Counters &counters = trace.installed.locations[i]->counters;
        lost += counters.missed + counters.dropped;
    }
    return lost;
}

Rows rows_of(const trace::Trace &trace, const Locations &locations, std::span<const double> also = {}) {
    return {trace.installed.locations[locations[0]]->info, report::table_of(trace, locations, also),
            trace.output.symbolizer.get()};
}

Gathered gather(const trace::Trace &trace, const Claim &claim, const Measured &probe, const report::FunctionKey &key,
                const Locations &locations, Found &found) {
    const program::LocationInfo &info = trace.installed.locations[locations[0]]->info;
    Gathered gathered{
        expect::make_case(claim, info.symbol), rows_of(trace, locations), {}, {}, lost_at(trace, locations)};
    gathered.of.which = info.which;
    if (info.offset != 0 || info.symbol.empty()) gathered.of.symbol = output::function_text(info, false, false);
    gathered.of.module = info.module;
    gathered.of.is_of_calls = info.kind == 'r' || info.kind == 'j';
    const Locations *values = probe.values == 0 ? nullptr : found.of(probe.values, key);
    if (values) {
        gathered.values = rows_of(trace, *values, fractions_of(claim));
        gathered.lost = std::max(gathered.lost, lost_at(trace, *values));
    }
    for (std::uint32_t number : probe.truths) {
        gathered.truths.emplace_back();
        const Locations *there = found.of(number, key);
        if (!there) continue;
        gathered.truths.back() = truths_of(rows_of(trace, *there));
        gathered.lost = std::max(gathered.lost, lost_at(trace, *there));
    }
    return gathered;
}

/// Takes the hits of one function into those of all.
void add(Gathered &all, const Gathered &one) {
    for (std::size_t i = 0; i < one.truths.size(); i++) add(all.truths[i], one.truths[i]);
    all.lost += one.lost;
    all.of.is_of_calls = all.of.is_of_calls && one.of.is_of_calls;
}

/// The event of its first case that does not hold.
void add_event(std::vector<Case> &cases, const std::string &event) {
    auto broken =
        std::find_if(cases.begin(), cases.end(), [](const Case &each) { return each.end == Case::End::broken; });
    if (broken != cases.end()) broken->event = event;
}

Case case_of_probe(const trace::Trace &trace, const Claim &claim, std::uint32_t number, Case::End end,
                   std::string reason) {
    Case made = expect::make_case(claim, trace.registry.at(number).probe.spec.text);
    made.end = end;
    made.reason = std::move(reason);
    return made;
}

bool is_meant(const trace::Trace &trace, const Claim &claim, std::uint32_t number, std::string_view symbol) {
    return claim.whose.empty() || claim.whose == trace.registry.at(number).probe.spec.text || claim.whose == symbol;
}

} // namespace

std::vector<Case> cases_of(trace::Trace &trace, const Claim &claim, const std::vector<Measured> &probes,
                           const Events &events) {
    std::vector<Case> cases;
    Found found(trace);
    for (const Measured &probe : probes) {
        Functions functions = found.of(probe.counts);
        std::erase_if(functions,
                      [&](const auto &each) { return !is_meant(trace, claim, probe.probe, std::get<1>(each.first)); });
        if (functions.empty()) {
            cases.push_back(case_of_probe(trace, claim, probe.probe, Case::End::not_judged, "nothing was probed"));
            continue;
        }
        Locations shown;
        for (const auto &[key, locations] : functions) shown.push_back(locations[0]);
        report::tell_namesakes_apart(trace, shown);
        const std::size_t before = cases.size();
        for (const auto &[key, locations] : functions) {
            auto more = cases_of(claim, gather(trace, claim, probe, key, locations, found));
            if (auto event = events.find(key); event != events.end()) add_event(more, event->second);
            std::move(more.begin(), more.end(), std::back_inserter(cases));
        }
        if (cases.size() == before && claim.wants_values())
            cases.push_back(case_of_probe(trace, claim, probe.probe, Case::End::broken, "nothing was measured"));
    }
    return cases;
}

std::vector<Case> cases_of_all(trace::Trace &trace, const Claim &claim, const std::vector<Measured> &probes,
                               const Events &events) {
    Found found(trace);
    program::LocationInfo nowhere;
    Locations counted, valued;
    Gathered all{expect::make_case(claim, "all"), {nowhere, {}, nullptr}, {}, {}, 0};
    all.truths.resize(probes.empty() ? 0 : probes[0].truths.size());
    for (const Measured &probe : probes) {
        for (const auto &[key, locations] : found.of(probe.counts)) {
            counted.insert(counted.end(), locations.begin(), locations.end());
            add(all, gather(trace, claim, probe, key, locations, found));
            const Locations *values = probe.values == 0 ? nullptr : found.of(probe.values, key);
            if (values) valued.insert(valued.end(), values->begin(), values->end());
        }
    }
    program::Table counts;
    counts.rows.resize(1);
    for (std::size_t i : counted)
        for (const program::Row &row : trace.installed.locations[i]->state->aggregation.snapshot().rows)
            counts.rows[0].count += row.count;
    if (counts.rows[0].count == 0) counts.rows.clear();
    all.counts = {nowhere, std::move(counts), nullptr};
    if (!valued.empty()) all.values = {nowhere, report::sum_of(trace, valued, fractions_of(claim)), nullptr};
    std::vector<Case> cases = cases_of(claim, all);
    if (!events.empty()) add_event(cases, events.begin()->second);
    if (!cases.empty() || !claim.wants_values()) return cases;
    cases.push_back(expect::make_case(claim, "all"));
    cases[0].end = Case::End::broken;
    cases[0].reason = "nothing was measured";
    return cases;
}

std::vector<Case> cases_of_order(const Claim &claim, const expect::Order &order) {
    const auto breaks = order.breaks([](expect::Order::Thread thread) {
        const auto stat = os::read_task_stat(Pid{thread.first}, Tid{thread.second});
        return !stat || stat->state == 'Z' || stat->state == 'X';
    });
    Case made = expect::make_case(claim, claim.kind == Claim::Kind::before ? claim.second : claim.first);
    if (breaks.empty()) return {made};
    made.end = Case::End::broken;
    const expect::Order::Break &first = *std::min_element(
        breaks.begin(), breaks.end(), [](const auto &a, const auto &b) { return a.entry_ns < b.entry_ns; });
    made.seen = {{"unfit", {static_cast<double>(breaks.size()), 0, false}}};
    made.seen_text = fmt::format("it fail {} time{}, first in thread {}", breaks.size(), breaks.size() == 1 ? "" : "s",
                                 first.thread.second);
    return {made};
}

} // namespace ktrace::judging
