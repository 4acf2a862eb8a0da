#include "judging/measures.h"

#include <algorithm>

#include "arming/registry.h"
#include "program/expr/expr.h"

namespace ktrace::judging {

namespace {

using probe::Actions;
using Aggregate = Actions::Aggregate;

/// The filters of a probe, and nothing else.
Actions filters_of(const probe::ProbeEntry &entry) {
    Actions filters;
    filters.condition = entry.actions().condition;
    filters.inside = entry.actions().inside;
    filters.maxactive = entry.actions().maxactive;
    return filters;
}

bool has_table(const Actions &actions) { return actions.aggregate != Aggregate::none || !actions.by.empty(); }

} // namespace

bool decides_late(const probe::ProbeEntry &entry) {
    if (entry.probe.kind != probe::Kind::ret || entry.actions().condition.empty()) return false;
    auto tree = program::parse_expr(entry.actions().condition);
    return tree && std::any_of(tree->nodes.begin(), tree->nodes.end(), [](const program::Expr &node) {
               using Kind = program::Expr::Kind;
               return node.kind == Kind::retval || node.kind == Kind::duration || node.kind == Kind::error_number;
           });
}

bool Measures::fits(const trace::Trace &trace, const expect::Claim &claim, std::uint32_t probe) {
    const probe::ProbeEntry &entry = trace.registry.at(probe);
    return !claim.wants_values() || entry.probe.kind == probe::Kind::ret ||
           entry.actions().aggregate == Aggregate::stats;
}

void Measures::want(const expect::Claim &claim, std::uint32_t number, Measured &into) {
    const probe::ProbeEntry &entry = trace_.registry.at(number);
    const Actions &actions = entry.actions();
    into.probe = into.counts = number;
    Actions own = filters_of(entry);
    own.by = actions.by;
    if (!has_table(actions)) {
        own.aggregate = Aggregate::count;
        add("counts", true, number, beside(number, own, claim.given), into.counts);
    }
    if (claim.wants_values()) {
        into.values = number;
        own.aggregate = Aggregate::stats;
        if (actions.aggregate != Aggregate::stats)
            add("durations", true, number, beside(number, own, claim.given), into.values);
    }
    const bool is_of_values = !claim.of.empty();
    into.truths.resize(is_of_values ? 1 : claim.counted.size());
    for (std::size_t i = 0; i < claim.counted.size(); i++) want_truth(claim, number, claim.counted[i], into.truths[i]);
    if (!is_of_values) return;
    want_truth(claim, number, claim.of, into.truths[0]);
    want_event(claim, number, into.event);
}

void Measures::want_truth(const expect::Claim &claim, std::uint32_t number, const std::string &expression,
                          std::uint32_t &into) {
    const probe::ProbeEntry &entry = trace_.registry.at(number);
    Actions actions = filters_of(entry);
    actions.aggregate = Aggregate::count;
    actions.by = entry.actions().by;
    actions.by.push_back(probe::truth_of(expression));
    add("truth " + expression, false, number, beside(number, actions, claim.given), into);
}

void Measures::want_event(const expect::Claim &claim, std::uint32_t number, std::uint32_t &into) {
    const probe::ProbeEntry &entry = trace_.registry.at(number);
    Actions actions = filters_of(entry);
    const std::string unfit = (claim.kind == expect::Claim::Kind::each ? "!(" : "(") + claim.of + ')';
    actions.condition = actions.condition.empty() ? unfit : '(' + actions.condition + ") && " + unfit;
    if (!has_table(entry.actions())) {
        actions.print = entry.actions().print;
        actions.no_args = entry.actions().no_args;
        actions.full = entry.actions().full;
        actions.stack = entry.actions().stack;
    }
    add("event " + claim.given, true, number, beside(number, actions, claim.given), into);
}

void Measures::want_entries(const expect::Claim &claim, std::uint32_t number, probe::Spec spec, std::uint32_t &into) {
    const probe::ProbeEntry &entry = trace_.registry.at(number);
    Actions actions = filters_of(entry);
    actions.no_args = true;
    probe::Probe probe = beside(number, actions, claim.given);
    if (entry.probe.kind == probe::Kind::ret && !decides_late(entry)) probe.kind = probe::Kind::entry;
    probe.spec = std::move(spec);
    add("entries", true, number, std::move(probe), into);
}

probe::Probe Measures::beside(std::uint32_t number, Actions actions, const std::string &quoted) const {
    const probe::ProbeEntry &entry = trace_.registry.at(number);
    probe::Probe probe{0, entry.probe.kind, entry.probe.spec};
    probe.own = std::make_shared<const probe::OwnOptions>(probe::OwnOptions{std::move(actions), quoted, 0});
    return probe;
}

void Measures::add(const std::string &set, bool is_checked, std::uint32_t number, probe::Probe probe,
                   std::uint32_t &into) {
    Set &there = sets_[set];
    there.is_checked = is_checked;
    const std::string at = std::to_string(number) + ' ' + probe.spec.text;
    Wanted &wanted = there.probes.try_emplace(at, Wanted{std::move(probe), number, {}}).first->second;
    wanted.into.push_back(&into);
}

Status Measures::register_all() {
    for (auto &[name, wanted] : sets_) {
        auto set = std::make_shared<probe::ProbeSet>();
        set->hidden = true;
        set->compiled = wanted.is_checked;
        set->allow_missing = trace_.config.allow_missing;
        std::vector<probe::Probe> probes;
        for (const auto &[at, each] : wanted.probes) probes.push_back(each.probe);
        auto numbers = arming::register_probes(trace_, set, probes, nullptr);
        if (!numbers) return fail(numbers.error());
        auto number = numbers->begin();
        for (const auto &[at, each] : wanted.probes) {
            trace_.registry.at(*number).beside = each.beside;
            for (std::uint32_t *into : each.into) *into = *number;
            ++number;
        }
    }
    return {};
}

} // namespace ktrace::judging
