// csv (RFC 4180, with \n): numbers as they are, times in whole ns.
#include <string_view>

#include <fmt/format.h>

#include "export/sinks.h"
#include "output/table_lines.h"
#include "program/tables/aggregate.h"

namespace ktrace::exports {

namespace {

using output::TableLine;
using program::Row;
using program::Table;

void append_field(std::string &out, std::string_view field) {
    if (!out.empty() && out.back() != '\n') out += ',';
    if (field.find_first_of(",\"\n\r") == std::string_view::npos) {
        out += field;
        return;
    }
    out += '"';
    for (char letter : field) out += letter == '"' ? "\"\"" : std::string(1, letter);
    out += '"';
}

/// Lines of one table.
class Lines {
  public:
    Lines(const Table &table, bool has_interval, output::Symbolizer *symbolizer)
        : table_(table), has_interval_(has_interval), symbolizer_(symbolizer) {}

    std::string heading() const {
        std::string out;
        if (has_interval_) append_field(out, "interval");
        for (const char *name : {"total", "self", "count", "avg", "min", "p50", "p90", "p99", "max"}) {
            const std::string_view title = name;
            if (table_.kind == Table::Kind::stats && (title != "self" || table_.is_of_durations()))
                append_field(out, title);
        }
        if (table_.kind == Table::Kind::count) append_field(out, "count");
        append_field(out, "function");
        append_field(out, "module");
        for (const std::string &by : table_.by) append_field(out, by);
        if (table_.kind == Table::Kind::hist)
            for (const char *name : {"low", "high", "count"}) append_field(out, name);
        return out + '\n';
    }

    std::string of(const TableLine &line, std::uint64_t interval) const {
        const Row &row = *line.row;
        std::string front, out;
        if (has_interval_) append_field(front, std::to_string(interval));
        if (table_.kind == Table::Kind::count) append_field(front, std::to_string(row.count));
        if (table_.kind == Table::Kind::stats) append_stats(front, row.stats);
        append_names(front, line);
        if (table_.kind != Table::Kind::hist) return front + '\n';
        for (const program::Bucket &bucket : row.hist) out += range(front, bucket.low, bucket.high, bucket.count);
        return out;
    }

  private:
    std::string number(double value) const {
        return table_.is_of_durations() ? fmt::format("{:.0f}", value) : output::figure(value);
    }

    void append_stats(std::string &out, const program::Stats &stats) const {
        append_field(out, number(stats.total));
        if (table_.is_of_durations()) append_field(out, number(stats.self));
        append_field(out, std::to_string(stats.count));
        append_field(out, stats.count == 0 ? "" : number(stats.avg));
        append_field(out, stats.count == 0 ? "" : output::figure(stats.min));
        for (const program::Number *each : {&stats.p50, &stats.p90, &stats.p99})
            append_field(out, stats.has_percentiles ? output::figure(*each) : "");
        append_field(out, stats.count == 0 ? "" : output::figure(stats.max));
    }

    void append_names(std::string &out, const TableLine &line) const {
        append_field(out, output::function_text(*line.function->location, false, false));
        append_field(out, line.function->location->module);
        for (std::size_t i = 0; i < table_.by.size(); i++) append_field(out, output::key_text(line, i, symbolizer_));
    }

    static std::string range(const std::string &front, std::int64_t low, std::int64_t high, std::uint64_t count) {
        return front + fmt::format(",{},{},{}\n", low, high, count);
    }

    const Table &table_;
    const bool has_interval_;
    output::Symbolizer *symbolizer_;
};

class CsvSink final : public output::Sink {
  public:
    CsvSink(output::Writer &writer, output::Symbolizer *symbolizer) : writer_(writer), symbolizer_(symbolizer) {}

    void record(std::span<const std::byte>, const program::LocationInfo &) override {}
    void log(const program::RecordHeader &, std::uint32_t, std::string_view) override {}
    void summary(const program::LocationInfo &, const program::Counters &, const Table *) override {}

    void tables(const std::vector<output::FunctionTable> &functions, const output::TableLayout &layout,
                std::uint64_t interval) override {
        has_interval_ = has_interval_ || interval != 0;
        std::string &out = writer_.buffer();
        for (const auto &form : output::by_form(functions)) {
            const Lines lines(form[0]->table, has_interval_, symbolizer_);
            if (std::string heading = lines.heading(); heading != heading_) {
                out += (heading_.empty() ? "" : "\n") + heading;
                heading_ = std::move(heading);
            }
            std::size_t shown = 0;
            for (const TableLine &line : output::sorted_lines(form, layout.sort))
                if (!layout.top || shown++ < *layout.top) out += lines.of(line, interval);
        }
        writer_.appended();
    }

  private:
    output::Writer &writer_;
    output::Symbolizer *symbolizer_;
    bool has_interval_ = false;
    std::string heading_; // of the last table
};

} // namespace

std::unique_ptr<output::Sink> make_csv_sink(output::Writer &writer, output::Symbolizer *symbolizer) {
    return std::make_unique<CsvSink>(writer, symbolizer);
}

} // namespace ktrace::exports
