#include "judging/gathered.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "output/table_json.h"
#include "output/table_lines.h"

namespace ktrace::judging {

using expect::Case;
using expect::Claim;
using expect::Figures;
using program::Row;
using program::Table;

std::string Rows::key(const Row &row, std::size_t parts) const {
    std::string key;
    for (std::size_t i = 0; i < parts; i++) key += output::key_text({&function_, &row}, i, symbolizer_) + '\n';
    return key;
}

std::string Rows::shown_key(const Row &row) const {
    std::string shown;
    for (std::size_t i = 0; i < function_.table.by.size(); i++)
        shown += (i == 0 ? "" : " ") + text::escape(function_.table.by[i]) + '=' +
                 output::key_text({&function_, &row}, i, symbolizer_);
    return shown;
}

std::string Rows::json_key(const Row &row) const {
    std::string json;
    output::append_key_json(json, *function_.location, function_.table, row, symbolizer_);
    return json.substr(json.find(':') + 1);
}

namespace {

bool is_true(const Row &row) {
    if (row.other || row.key.empty()) return false;
    const program::KeyPart &part = row.key.back();
    using program::Tag;
    const bool is_number =
        part.tag == Tag::sint || part.tag == Tag::uint || part.tag == Tag::hex || part.tag == Tag::boolean;
    return is_number ? part.number != 0
                     : part.tag == Tag::raw && part.text.find_first_not_of('\0') != std::string::npos;
}

} // namespace

Truths truths_of(const Rows &rows) {
    Truths truths;
    for (const Row &row : rows.table().rows) {
        const bool fits = !row.key.empty() && row.key.back().tag != program::Tag::na;
        auto [at, is_first] = truths.try_emplace(rows.key(row, rows.table().by.size() - 1));
        Truth &truth = at->second;
        truth.fits = fits || (!is_first && truth.fits);
        (is_true(row) ? truth.holds : truth.other) += row.count;
    }
    return truths;
}

void add(Truths &to, const Truths &more) {
    for (const auto &[key, truth] : more) {
        auto [at, is_first] = to.try_emplace(std::string(), Truth{0, 0, false});
        at->second.holds += truth.holds;
        at->second.other += truth.other;
        at->second.fits = at->second.fits || truth.fits;
    }
}

namespace {

/// The figures of the values of one row.
void add_values(Figures &figures, const Claim &claim, const Table &table, const Row &row) {
    const program::Stats &stats = row.stats;
    if (stats.count == 0) return;
    const program::TimeErrors &errors = stats.errors;
    const bool is_time = table.is_of_durations();
    auto add = [&](const std::string &name, double value, double error) {
        figures[name] = {value, is_time ? static_cast<double>(program::round_error(error)) : 0.0, is_time};
    };
    add("avg", stats.avg, errors.avg);
    add("min", stats.min.as_double(), errors.p50);
    add("max", stats.max.as_double(), errors.p99);
    const double of_all = static_cast<double>(program::round_error(errors.avg) * stats.count);
    figures["total"] = {stats.total, is_time ? of_all : 0.0, is_time};
    if (is_time) figures["self"] = {stats.self, of_all, is_time};
    auto also = stats.also.begin();
    for (const std::string &name : claim.figures) {
        const int percentile = expect::percentile_of(name);
        if (percentile == 0 || also == stats.also.end()) continue;
        add(name, (also++)->as_double(), percentile <= 50 ? errors.p50 : percentile <= 90 ? errors.p90 : errors.p99);
    }
}

class Judging {
  public:
    Judging(const Claim &claim, const Gathered &gathered) : claim_(claim), gathered_(gathered) {
        if (!gathered.values) return;
        const Rows &values = *gathered.values;
        for (const Row &row : values.table().rows) values_[values.key(row, values.table().by.size())] = &row;
    }

    std::vector<Case> cases() const {
        std::vector<Case> cases;
        const Rows &counts = gathered_.counts;
        for (const Row &row : counts.table().rows) {
            Case made = gathered_.of;
            made.hits = row.count;
            if (!counts.table().by.empty()) {
                made.key = counts.shown_key(row);
                made.key_json = counts.json_key(row);
            }
            if (judge(made, counts.key(row, counts.table().by.size()))) cases.push_back(std::move(made));
        }
        if (!counts.table().rows.empty()) return cases;
        Case made = gathered_.of;
        if (judge(made, {})) cases.push_back(std::move(made));
        return cases;
    }

  private:
    /// False: the claim is left out.
    bool judge(Case &made, const std::string &key) const {
        if (!(claim_.of.empty() ? judge_figures(made, key) : judge_values(made, key))) return false;
        const std::uint64_t lost = gathered_.lost;
        if (lost == 0) return true;
        made.end = Case::End::broken;
        made.reason = fmt::format("{} {} missed", lost, lost == 1 ? "hit was" : "hits were");
        return true;
    }

    Truth truth(std::size_t number, const std::string &key) const {
        const Truths &truths = gathered_.truths.at(number);
        auto at = truths.find(key);
        return at == truths.end() ? Truth{} : at->second;
    }

    bool judge_figures(Case &made, const std::string &key) const {
        Figures figures{{"count", {static_cast<double>(made.hits), 0, false}}};
        if (made.hits == 0) figures["total"] = {0, 0, true};
        for (std::size_t i = 0; i < claim_.counted.size(); i++) {
            const Truth held = truth(i, key);
            if (!held.fits) return false;
            figures["count(" + claim_.counted[i] + ")"] = {static_cast<double>(held.holds), 0, false};
        }
        if (auto row = values_.find(key); row != values_.end())
            add_values(figures, claim_, gathered_.values->table(), *row->second);
        return expect::judge_case(made, claim_, figures);
    }

    bool judge_values(Case &made, const std::string &key) const {
        const Truth held = truth(0, key);
        if (!held.fits) return false;
        const bool is_each = claim_.kind == Claim::Kind::each;
        const std::uint64_t unfit = is_each ? held.other : held.holds;
        made.end = unfit == 0 ? Case::End::holds : Case::End::broken;
        made.seen = {{"count", {static_cast<double>(made.hits), 0, false}},
                     {"unfit", {static_cast<double>(unfit), 0, false}}};
        made.seen_text = fmt::format("it {} in {} of {} {}{}", is_each ? "fail" : "hold", unfit, made.hits,
                                     made.is_of_calls ? "call" : "hit", made.hits == 1 ? "" : "s");
        return true;
    }

    const Claim &claim_;
    const Gathered &gathered_;
    std::map<std::string, const Row *> values_;
};

} // namespace

std::vector<Case> cases_of(const Claim &claim, const Gathered &gathered) { return Judging(claim, gathered).cases(); }

} // namespace ktrace::judging
