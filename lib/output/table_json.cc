#include "output/table_json.h"

#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "output/label.h"
#include "output/notation.h"
#include "output/number.h"
#include "output/render.h"
#include "output/table_lines.h"

namespace ktrace::output {

namespace {

using program::KeyPart;
using program::LocationInfo;
using program::Number;
using program::Row;
using program::Stats;
using program::Table;

void append_double(std::string &out, double value) {
    JsonNotation::floating(out, static_cast<long double>(value), sizeof value);
}

void append_number_json(std::string &out, const Number &number) {
    if (number.kind == Number::Kind::floating)
        append_double(out, number.as_double());
    else
        out += figure(number);
}

/// The members of an object, one after the other.
class Members {
  public:
    explicit Members(std::string &out) : out_(out) { out_ += '{'; }
    std::string &operator[](const char *name) {
        JsonNotation::key(out_, name, is_first_);
        is_first_ = false;
        return out_;
    }
    void end() { out_ += '}'; }

  private:
    std::string &out_;
    bool is_first_ = true;
};

void append_errors_json(std::string &out, const Stats &stats) {
    const program::TimeErrors &of = stats.errors;
    const auto avg = program::round_error(of.avg);
    Members members(out);
    members["total"] += std::to_string(avg * stats.count);
    members["self"] += std::to_string(avg * stats.count);
    const std::pair<const char *, double> figures[] = {{"avg", of.avg},          {"min", stats.min_error},
                                                       {"max", stats.max_error}, {"p50", of.p50},
                                                       {"p90", of.p90},          {"p99", of.p99}};
    for (const auto &[name, error] : figures) members[name] += std::to_string(program::round_error(error));
    members.end();
}

void append_stats_json(std::string &out, const Table &table, const Stats &stats) {
    out += "\"stats\":";
    Members members(out);
    members["count"] += std::to_string(stats.count);
    if (stats.count == 0) return members.end();
    append_double(members["total"], stats.total);
    if (table.is_of_durations()) append_double(members["self"], stats.self);
    append_double(members["avg"], stats.avg);
    append_number_json(members["min"], stats.min);
    append_number_json(members["max"], stats.max);
    if (stats.has_percentiles) {
        append_number_json(members["p50"], stats.p50);
        append_number_json(members["p90"], stats.p90);
        append_number_json(members["p99"], stats.p99);
    }
    if (table.is_of_durations() && stats.errors.avg > 0) append_errors_json(members["error"], stats);
    members.end();
}

void append_histogram_json(std::string &out, const Row &row) {
    out += "\"hist\":[";
    const char *separator = "";
    auto add = [&](std::int64_t low, std::int64_t high, std::uint64_t count) {
        out += fmt::format("{}{{\"low\":{},\"high\":{},\"count\":{}}}", separator, low, high, count);
        separator = ",";
    };
    for (const program::Bucket &bucket : row.hist) add(bucket.low, bucket.high, bucket.count);
    out += ']';
}

void append_row_json(std::string &out, const Table &table, const Row &row) {
    switch (table.kind) {
    case Table::Kind::count: out += "\"count\":" + std::to_string(row.count); return;
    case Table::Kind::stats: return append_stats_json(out, table, row.stats);
    case Table::Kind::hist: return append_histogram_json(out, row);
    case Table::Kind::none: return;
    }
}

} // namespace

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

void append_table_json(std::string &out, const LocationInfo &location, const Table &table, Symbolizer *symbolizer) {
    if (table.kind == Table::Kind::none) return;
    out += ',';
    if (table.by.empty()) return append_row_json(out, table, table.rows.empty() ? Row{} : table.rows[0]);
    out += "\"by\":[";
    const FunctionTable function{&location, table};
    const char *separator = "{";
    for (const TableLine &line : sorted_lines({&function}, {})) {
        out += separator;
        append_key_json(out, location, table, *line.row, symbolizer);
        out += ',';
        append_row_json(out, table, *line.row);
        out += '}';
        separator = ",{";
    }
    out += ']';
}

void append_rows_json(std::string &out, const std::vector<FunctionTable> &functions, const std::string &column,
                      std::uint64_t interval, Symbolizer *symbolizer) {
    std::vector<TableLine> lines;
    for (const auto &form : by_form(functions)) {
        const std::vector<TableLine> more = sorted_lines(form, column);
        lines.insert(lines.end(), more.begin(), more.end());
    }
    for (const TableLine &line : lines) {
        const LocationInfo &location = *line.function->location;
        const Table &table = line.function->table;
        Members members(out);
        members["type"] += "\"row\"";
        if (interval != 0) members["interval"] += std::to_string(interval);
        members["probe"] += std::to_string(location.probe);
        append_json_string(members["kind"], {&location.kind, 1});
        append_location_json(out, location);
        append_which_json(out, location);
        out += ',';
        if (!table.by.empty()) {
            append_key_json(out, location, table, *line.row, symbolizer);
            out += ',';
        }
        append_row_json(out, table, *line.row);
        out += "}\n";
    }
}

} // namespace ktrace::output
