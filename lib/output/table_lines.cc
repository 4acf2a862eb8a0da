#include "output/table_lines.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

#include "base/text.h"
#include "output/label.h"
#include "output/number.h"
#include "output/render.h"

namespace ktrace::output {

using program::KeyPart;
using program::LocationInfo;
using program::Number;
using program::Row;
using program::Stats;
using program::Table;
using program::Tag;

namespace {

/// The figure that lines are sorted by, as a double.
double weight_of(const TableLine &line, const std::string &column) {
    const Row &row = *line.row;
    const Stats &stats = row.stats;
    const bool is_stats = line.function->table.kind == Table::Kind::stats;
    if (!is_stats || column == "count") return static_cast<double>(row.count);
    if (column == "self") return stats.self;
    if (column == "avg") return stats.avg;
    if (column == "min") return stats.min.as_double();
    if (column == "max") return stats.max.as_double();
    if (column == "p50") return stats.p50.as_double();
    if (column == "p90") return stats.p90.as_double();
    if (column == "p99") return stats.p99.as_double();
    return stats.total;
}

/// For lines of one weight.
std::string order_of(const TableLine &line) {
    std::string text = line.function->location->symbol;
    for (const KeyPart &part : line.row->key) text += '\0' + part.text + '\0' + fmt::format("{:20}", part.number);
    return text;
}

} // namespace

bool is_sort_column(std::string_view name) {
    static constexpr std::string_view columns[] = {"total", "self", "count", "avg", "min",
                                                   "p50",   "p90",  "p99",   "max", "function"};
    return std::find(std::begin(columns), std::end(columns), name) != std::end(columns);
}

std::vector<std::vector<const FunctionTable *>> by_form(const std::vector<FunctionTable> &functions) {
    std::vector<std::vector<const FunctionTable *>> forms;
    for (const FunctionTable &each : functions) {
        if (each.table.kind == Table::Kind::none || each.table.rows.empty()) continue;
        auto known = std::find_if(forms.begin(), forms.end(), [&](const auto &form) {
            const Table &first = form[0]->table;
            return first.kind == each.table.kind && first.of == each.table.of && first.by == each.table.by;
        });
        if (known == forms.end()) known = forms.insert(known, std::vector<const FunctionTable *>());
        known->push_back(&each);
    }
    return forms;
}

std::vector<TableLine> sorted_lines(const std::vector<const FunctionTable *> &functions, const std::string &column) {
    struct Sorted {
        TableLine line;
        double weight;
        std::string order;
    };
    std::vector<Sorted> all;
    for (const FunctionTable *function : functions)
        for (const Row &row : function->table.rows) {
            TableLine line{function, &row};
            all.push_back({line, column == "function" ? 0 : weight_of(line, column), order_of(line)});
        }
    std::stable_sort(all.begin(), all.end(), [](const Sorted &a, const Sorted &b) {
        if (a.line.row->other != b.line.row->other) return b.line.row->other;
        return a.weight != b.weight ? a.weight > b.weight : a.order < b.order;
    });
    std::vector<TableLine> lines;
    for (const Sorted &each : all) lines.push_back(each.line);
    return lines;
}

std::string function_text(const LocationInfo &location, bool with_kind, bool with_module) {
    std::string out;
    if (location.offset != 0 && !location.symbol.empty())
        append_place(out, location);
    else
        append_function(out, location);
    if (location.which.starts_with(location.symbol) && !location.symbol.empty() && location.offset == 0)
        out = text::escape(location.which);
    else if (!location.which.empty())
        out += ' ' + text::escape(location.which);
    if (with_kind) out += fmt::format(" (-{})", location.kind);
    if (with_module && !location.module.empty()) out += " [" + text::escape(location.module) + ']';
    return out;
}

/// A key's part as the node that it was made of. The bytes of `stack` lie in the part.
program::Node node_of(const KeyPart &part) {
    program::Node node;
    node.tag = part.tag;
    node.number = part.number;
    node.floating = part.floating;
    node.type = part.type;
    if (part.tag == Tag::stack)
        node.bytes = std::as_bytes(std::span(part.stack));
    else
        node.bytes = std::as_bytes(std::span(part.text));
    return node;
}

std::string key_text(const TableLine &line, std::size_t part, Symbolizer *symbolizer) {
    if (line.row->other) return part == 0 ? "(others)" : "";
    if (part >= line.row->key.size()) return {};
    const KeyPart &key = line.row->key[part];
    if (key.tag == Tag::na) return "-";
    if (key.tag == Tag::string) return text::escape(key.text);
    std::string out;
    append_text(out, node_of(key), {line.function->location->types, symbolizer, line.row->pid});
    return out;
}

/// A statistic: whole numbers as such, others with as many digits as mean something.
std::string figure(double value) {
    if (value == std::floor(value) && std::fabs(value) < 1e15) return fmt::format("{:.0f}", value);
    if (std::fabs(value) >= 1000) return fmt::format("{:.0f}", value);
    return std::fabs(value) >= 1 ? fmt::format("{:.2f}", value) : fmt::format("{:.6g}", value);
}

std::string figure(const Number &number) {
    std::string out;
    switch (number.kind) {
    case Number::Kind::sint: append_decimal(out, Signed128{static_cast<std::int64_t>(number.bits)}); return out;
    case Number::Kind::uint: append_decimal(out, Unsigned128{number.bits}); return out;
    case Number::Kind::floating: break;
    }
    return figure(number.as_double());
}

std::string cut_in_the_middle(const std::string &text, std::size_t width) {
    constexpr std::string_view mark = "..";
    if (text.size() <= width || width <= mark.size()) return text;
    const std::size_t kept = width - mark.size(), front = (kept + 1) / 2;
    return text.substr(0, front) + std::string(mark) + text.substr(text.size() - (kept - front));
}

} // namespace ktrace::output
