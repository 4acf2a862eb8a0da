#include "output/table.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <tuple>

#include <fmt/format.h>

#include "base/text.h"
#include "output/label.h"
#include "output/notation.h"
#include "output/number.h"
#include "output/render.h"

namespace ktrace::output {

namespace {

using program::Bucket;
using program::KeyPart;
using program::LocationInfo;
using program::Number;
using program::Row;
using program::Stats;
using program::Table;
using program::Tag;

constexpr std::size_t bar_width = 52;

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

// Text.

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

std::vector<std::string> figures(const Stats &stats) {
    if (stats.count == 0) return {"0", "-", "-", "-", "-", "-", "-"};
    std::vector<std::string> all = {std::to_string(stats.count), figure(stats.avg), figure(stats.min),
                                    figure(stats.max)};
    for (const Number *percentile : {&stats.p50, &stats.p90, &stats.p99})
        all.push_back(stats.has_percentiles ? figure(*percentile) : "-");
    return all;
}

/// The cells of a row's key; text stands without the quotes that it has in an event.
std::vector<std::string> keys_of(const LocationInfo &location, const Table &table, const Row &row,
                                 Symbolizer *symbolizer) {
    std::vector<std::string> keys;
    for (const KeyPart &part : row.key) {
        std::string &cell = keys.emplace_back();
        if (part.tag == Tag::string)
            cell = text::escape(part.text);
        else
            append_text(cell, node_of(part), {location.types, symbolizer, row.pid});
    }
    keys.resize(table.by.size());
    if (row.other && !keys.empty()) keys[0] = "(others)";
    return keys;
}

/// Lines of cells, each column as wide as its widest cell; the first `left` columns are set to the left.
void append_columns(std::string &out, const std::vector<std::vector<std::string>> &lines, std::size_t left) {
    std::vector<std::size_t> widths;
    for (const auto &cells : lines)
        for (std::size_t i = 0; i < cells.size(); i++) {
            if (i == widths.size()) widths.push_back(0);
            widths[i] = std::max(widths[i], cells[i].size());
        }
    for (const auto &cells : lines) {
        std::string line = " ";
        for (std::size_t i = 0; i < cells.size(); i++) {
            std::string padding(widths[i] - cells[i].size(), ' ');
            line += ' ' + (i < left ? cells[i] + padding : padding + cells[i]);
        }
        line.erase(line.find_last_not_of(' ') + 1);
        out += line + '\n';
    }
}

std::vector<std::string> titles(const Table &table) {
    if (table.kind == Table::Kind::count) return {"count"};
    return {"count", "avg", "min", "max", "p50", "p90", "p99"};
}

void append_rows(std::string &out, const LocationInfo &location, const Table &table, Symbolizer *symbolizer) {
    std::vector<std::vector<std::string>> lines(1);
    for (const std::string &by : table.by) lines[0].push_back(label_of({program::Field::Role::print, by}, 0));
    for (std::string &title : titles(table)) lines[0].push_back(std::move(title));
    for (const Row &row : table.rows) {
        auto cells = keys_of(location, table, row, symbolizer);
        if (table.kind == Table::Kind::count)
            cells.push_back(std::to_string(row.count));
        else
            for (std::string &each : figures(row.stats)) cells.push_back(std::move(each));
        lines.push_back(std::move(cells));
    }
    append_columns(out, lines, table.by.size());
}

/// 1024 as 1K, 3072 as 3K, 1536 as 1536: bounds are powers of two, which these units write exactly.
std::string bound(std::int64_t value) {
    static constexpr std::string_view units = "KMGTPE";
    std::string unit;
    for (std::size_t i = 0; i < units.size() && value != 0 && value % 1024 == 0; i++) {
        value /= 1024;
        unit = units[i];
    }
    return std::to_string(value) + unit;
}

/// [low, high) of a bucket, whose own bounds are both included.
std::string range(const Bucket &bucket) {
    if (bucket.low == bucket.high) return '[' + bound(bucket.low) + ']';
    std::string low = bucket.low == INT64_MIN ? "(..." : '[' + bound(bucket.low);
    return low + ", " + (bucket.high == INT64_MAX ? "..." : bound(bucket.high + 1)) + ')';
}

void append_histogram(std::string &out, const std::vector<Bucket> &histogram) {
    std::uint64_t most = 1;
    for (const Bucket &bucket : histogram) most = std::max(most, bucket.count);
    for (const Bucket &bucket : histogram) {
        auto length = static_cast<std::size_t>(static_cast<double>(bucket.count) / static_cast<double>(most) *
                                               static_cast<double>(bar_width));
        out +=
            fmt::format("{:<16} {:>10} |{:<{}}|\n", range(bucket), bucket.count, std::string(length, '@'), bar_width);
    }
}

void append_histograms(std::string &out, const LocationInfo &location, const Table &table, Symbolizer *symbolizer) {
    for (const Row &row : table.rows) {
        std::string title;
        auto keys = keys_of(location, table, row, symbolizer);
        for (std::size_t i = 0; i < keys.size(); i++)
            title += (i == 0 ? "" : " ") + label_of({program::Field::Role::print, table.by[i]}, 0) + '=' + keys[i];
        if (!title.empty()) out += title + '\n';
        append_histogram(out, row.hist);
    }
}

/// How many hits are in none of the rows' figures, by cause.
void append_left_out(std::string &out, const Table &table) {
    std::uint64_t unread = 0, nans = 0, without_percentiles = 0;
    for (const Row &row : table.rows) {
        without_percentiles += row.stats.count != 0 && !row.stats.has_percentiles ? 1 : 0;
        unread += row.unread;
        nans += row.nans;
    }
    if (unread != 0) out += fmt::format("  {} more could not be read\n", unread);
    if (nans != 0) out += fmt::format("  {} more {} NaN\n", nans, nans == 1 ? "was" : "were");
    if (without_percentiles != 0)
        out += fmt::format("  percentiles are not known of {} row{}: all tables together have used up their memory\n",
                           without_percentiles, without_percentiles == 1 ? "" : "s");
}

std::string heading(const LocationInfo &location, const Table &table) {
    std::string out = place_with_module(location) + ' ' + location.kind + ": ";
    if (table.kind == Table::Kind::count)
        out += "count";
    else
        out += table.of == "duration" ? "duration in ns" : table.of;
    const char *lead = " by ";
    for (const std::string &by : table.by) {
        out += lead + by;
        lead = ", ";
    }
    append_which(out, location);
    return out + '\n';
}

// JSON.

void append_double(std::string &out, double value) {
    JsonNotation::floating(out, static_cast<long double>(value), sizeof value);
}

void append_number_json(std::string &out, const Number &number) {
    if (number.kind == Number::Kind::floating)
        append_double(out, number.as_double());
    else
        out += figure(number);
}

void append_stats_json(std::string &out, const Stats &stats) {
    out += "\"stats\":{\"count\":" + std::to_string(stats.count) + ",\"avg\":";
    if (stats.count == 0) {
        out += "null,\"min\":null,\"max\":null,\"p50\":null,\"p90\":null,\"p99\":null}";
        return;
    }
    append_double(out, stats.avg);
    const std::tuple<const char *, const Number &, bool> members[] = {{"min", stats.min, true},
                                                                      {"max", stats.max, true},
                                                                      {"p50", stats.p50, stats.has_percentiles},
                                                                      {"p90", stats.p90, stats.has_percentiles},
                                                                      {"p99", stats.p99, stats.has_percentiles}};
    for (const auto &[name, number, is_known] : members) {
        JsonNotation::key(out, name, false);
        if (is_known)
            append_number_json(out, number);
        else
            out += "null";
    }
    out += '}';
}

void append_histogram_json(std::string &out, const std::vector<Bucket> &histogram) {
    out += "\"hist\":[";
    for (const Bucket &bucket : histogram)
        out += fmt::format("{}{{\"low\":{},\"high\":{},\"count\":{}}}", &bucket == histogram.data() ? "" : ",",
                           bucket.low, bucket.high, bucket.count);
    out += ']';
}

void append_row_json(std::string &out, const Table &table, const Row &row) {
    switch (table.kind) {
    case Table::Kind::count: out += "\"count\":" + std::to_string(row.count); return;
    case Table::Kind::stats: return append_stats_json(out, row.stats);
    case Table::Kind::hist: return append_histogram_json(out, row.hist);
    case Table::Kind::none: return;
    }
}

/// One value of --by stands for itself, several are a list; the row of all further keys has null.
void append_key_json(std::string &out, const LocationInfo &location, const Table &table, const Row &row,
                     Symbolizer *symbolizer) {
    out += "\"key\":";
    if (row.other || row.key.empty()) {
        out += "null";
        return;
    }
    bool list = table.by.size() > 1;
    const char *separator = list ? "[" : "";
    for (const KeyPart &part : row.key) {
        out += separator;
        append_json(out, node_of(part), {location.types, symbolizer, row.pid});
        separator = ",";
    }
    if (list) out += ']';
}

} // namespace

void append_table(std::string &out, const LocationInfo &location, const Table &table, Symbolizer *symbolizer) {
    if (table.kind == Table::Kind::none) return;
    if (table.kind == Table::Kind::count && table.by.empty()) {
        std::uint64_t count = table.rows.empty() ? 0 : table.rows[0].count;
        out += fmt::format("{:>12} {} {}", count, place_with_module(location), location.kind);
        append_which(out, location);
        out += '\n';
        return;
    }
    out += heading(location, table);
    if (table.rows.empty())
        out += "  nothing was measured\n";
    else if (table.kind == Table::Kind::hist)
        append_histograms(out, location, table, symbolizer);
    else
        append_rows(out, location, table, symbolizer);
    append_left_out(out, table);
}

void append_table_json(std::string &out, const LocationInfo &location, const Table &table, Symbolizer *symbolizer) {
    if (table.kind == Table::Kind::none) return;
    out += ',';
    if (table.by.empty()) return append_row_json(out, table, table.rows.empty() ? Row{} : table.rows[0]);
    out += "\"by\":[";
    for (const Row &row : table.rows) {
        out += &row == table.rows.data() ? "{" : ",{";
        append_key_json(out, location, table, row, symbolizer);
        out += ',';
        append_row_json(out, table, row);
        out += '}';
    }
    out += ']';
}

} // namespace ktrace::output
