#include "compare/diff.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "base/text.h"
#include "output/notation.h"
#include "output/table_lines.h"
#include "output/time_text.h"

namespace ktrace::compare {

namespace {

using expect::Figure;

constexpr const char *weighed[] = {"total", "count"}; // the first one that a row has

/// The figure that rows are compared by; 0: the run does not have the row.
double weight_of(const RunRow *row, const char *name) {
    return row && row->figures.contains(name) ? row->figures.at(name).value : 0;
}

const char *weighed_by(const DiffRow &row) {
    const RunRow &some = row.now ? *row.now : *row.old;
    return some.has_values() ? weighed[0] : weighed[1];
}

double change_of(const DiffRow &row) {
    const char *name = weighed_by(row);
    return std::fabs(weight_of(row.now, name) - weight_of(row.old, name));
}

/// A share of the old; nothing where there is no such.
std::optional<double> share_of(const DiffRow &row) {
    const char *name = weighed_by(row);
    const double old = weight_of(row.old, name);
    if (!row.now || !row.old || old == 0) return std::nullopt;
    return (weight_of(row.now, name) - old) / old;
}

std::string change_text(const DiffRow &row) {
    if (!row.old) return "new";
    if (!row.now) return "gone";
    const auto share = share_of(row);
    return share ? fmt::format("{:+.0f}%", *share * 100) : "";
}

std::string figure_text(const RunRow *row, const char *name) {
    if (!row || !row->figures.contains(name)) return {};
    const Figure &figure = row->figures.at(name);
    if (!figure.is_time) return output::figure(figure.value);
    return output::measured_text({figure.value, figure.error, false}, output::table_style(false));
}

std::string name_of(const DiffRow &row, bool with_module) {
    std::string name = text::escape(row.key.symbol);
    if (with_module && !row.key.module.empty()) name += " [" + text::escape(row.key.module) + ']';
    return name;
}

std::string line_of(const std::vector<std::string> &cells) {
    std::string line;
    for (const std::string &cell : cells) line += fmt::format("{}{:>8}", line.empty() ? "" : " ", cell);
    return line;
}

/// The numbers of a row: of totals, or of counts alone.
std::vector<std::string> numbers_of(const DiffRow &row, bool with_values) {
    std::vector<std::string> cells;
    for (const char *name : {"total", "count", "p99"}) {
        if (!with_values && std::string_view(name) != "count") continue;
        cells.push_back(figure_text(row.now, name));
        cells.push_back(figure_text(row.old, name));
        if (cells.size() == 2) cells.push_back(change_text(row));
    }
    return cells;
}

void append_table(std::string &out, const std::vector<DiffRow> &rows, bool with_values) {
    std::vector<DiffRow> shown;
    for (const DiffRow &row : rows)
        if ((weighed_by(row) == weighed[0]) == with_values) shown.push_back(row);
    if (shown.empty()) return;
    auto differs = [&](auto part) {
        return std::any_of(shown.begin(), shown.end(),
                           [&](const DiffRow &row) { return part(row.key) != part(shown[0].key); });
    };
    const bool with_module = differs([](const RowKey &key) { return key.module; });
    const bool with_key =
        std::any_of(shown.begin(), shown.end(), [](const DiffRow &row) { return !row.key.key.empty(); });
    std::size_t width = std::string_view("function").size();
    for (const DiffRow &row : shown) width = std::max(width, name_of(row, with_module).size());
    if (!out.empty()) out += '\n';
    out += line_of(with_values ? std::vector<std::string>{"total", "old", "change", "count", "old", "p99", "old"}
                               : std::vector<std::string>{"count", "old", "change"});
    out += with_key ? fmt::format("  {:<{}}  key\n", "function", width) : "  function\n";
    for (const DiffRow &row : shown) {
        out += line_of(numbers_of(row, with_values)) + "  ";
        const std::string name = name_of(row, with_module);
        out += with_key ? fmt::format("{:<{}}  {}\n", name, width, text::escape(row.key.key)) : name + '\n';
    }
}

std::string plain(const RunRow *row, const char *name) {
    return row && row->figures.contains(name) ? fmt::format("{:.0f}", row->figures.at(name).value) : "";
}

std::string in_csv(const std::string &field) {
    if (field.find_first_of(",\"\n\r") == field.npos) return field;
    std::string out = "\"";
    for (char letter : field) out += letter == '"' ? "\"\"" : std::string(1, letter);
    return out + '"';
}

std::string json_figures(const RunRow &row) {
    std::string out;
    for (const auto &[name, figure] : row.figures) {
        out += out.empty() ? "{" : ",";
        output::append_json_string(out, name);
        out += ':';
        output::JsonNotation::floating(out, static_cast<long double>(figure.value), sizeof(double));
    }
    return out + '}';
}

} // namespace

std::vector<DiffRow> diff(const Run &old, const Run &now) {
    std::vector<DiffRow> rows;
    for (const auto &[key, row] : now.rows) {
        auto before = old.rows.find(key);
        rows.push_back({key, &row, before == old.rows.end() ? nullptr : &before->second});
    }
    for (const auto &[key, row] : old.rows)
        if (!now.rows.contains(key)) rows.push_back({key, nullptr, &row});
    std::stable_sort(rows.begin(), rows.end(),
                     [](const DiffRow &a, const DiffRow &b) { return change_of(a) > change_of(b); });
    return rows;
}

std::string text_of(const std::vector<DiffRow> &rows) {
    std::string out;
    append_table(out, rows, true);
    append_table(out, rows, false);
    return out;
}

std::string csv_of(const std::vector<DiffRow> &rows) {
    std::string out = "total,old_total,change,count,old_count,p99,old_p99,function,module,key\n";
    for (const DiffRow &row : rows)
        out += fmt::format("{},{},{},{},{},{},{},{},{},{}\n", plain(row.now, "total"), plain(row.old, "total"),
                           change_text(row), plain(row.now, "count"), plain(row.old, "count"), plain(row.now, "p99"),
                           plain(row.old, "p99"), in_csv(row.key.symbol), in_csv(row.key.module), in_csv(row.key.key));
    return out;
}

std::string json_of(const std::vector<DiffRow> &rows) {
    std::string out;
    for (const DiffRow &row : rows) {
        out += R"({"type":"diff","symbol":)";
        output::append_json_string(out, row.key.symbol);
        out += ",\"module\":";
        output::append_json_string(out, row.key.module);
        const RunRow &some = row.now ? *row.now : *row.old;
        if (!some.key_json.empty()) out += ",\"key\":" + some.key_json;
        if (const auto share = share_of(row)) out += fmt::format(",\"change\":{:.4f}", *share);
        if (row.now) out += ",\"new\":" + json_figures(*row.now);
        if (row.old) out += ",\"old\":" + json_figures(*row.old);
        out += "}\n";
    }
    return out;
}

Status check_claim(const expect::Claim &claim) {
    const auto wrong = [&](std::string message, std::string hint) {
        return fail(Error(Error::Kind::usage, std::move(message), std::move(hint), claim.given,
                          static_cast<int>(claim.given.find(claim.text)), static_cast<int>(claim.text.size())));
    };
    if (claim.kind != expect::Claim::Kind::figures)
        return wrong("two runs are compared by their figures alone", "for example p99 < 1.2 * old.p99");
    for (const std::string &figure : claim.figures) {
        const int percentile = expect::percentile_of(expect::base_of(figure));
        if (percentile != 0 && percentile != 50 && percentile != 90 && percentile != 99)
            return wrong("the files do not have " + figure, "they have p50, p90 and p99");
    }
    return {};
}

std::vector<expect::Case> judge(const std::vector<DiffRow> &rows, const Run &now,
                                const std::vector<expect::Claim> &claims) {
    std::vector<expect::Case> cases;
    for (const expect::Claim &claim : claims) {
        const std::size_t before = cases.size();
        const bool is_named = !claim.whose.empty() && !claim.is_of_all();
        for (const DiffRow &row : rows) {
            if (!row.now || !row.old || (is_named && row.key.symbol != claim.whose)) continue;
            expect::Figures figures = row.now->figures;
            for (const auto &[name, figure] : row.old->figures) figures["old." + name] = figure;
            expect::Case made = expect::make_case(claim, row.key.symbol, row.key.module);
            made.key = text::escape(row.key.key);
            made.key_json = row.now->key_json;
            made.hits = static_cast<std::uint64_t>(figures["count"].value);
            made.is_of_calls = row.key.kind == "r" || row.key.kind == "j";
            if (!expect::judge_case(made, claim, figures)) continue;
            auto lost = now.lost.find({row.key.module, row.key.symbol});
            if (lost != now.lost.end() && lost->second != 0) {
                made.end = expect::Case::End::broken;
                made.reason = fmt::format("{} {} missed", lost->second, lost->second == 1 ? "hit was" : "hits were");
            }
            cases.push_back(std::move(made));
        }
        if (cases.size() != before) continue;
        cases.push_back(expect::make_case(claim, is_named ? claim.whose : "all"));
        cases.back().end = expect::Case::End::broken;
        cases.back().reason = "no row of both runs has these figures";
    }
    return cases;
}

} // namespace ktrace::compare
