#include "output/histogram.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>

#include <fmt/format.h>

#include "output/time_text.h"

namespace ktrace::output {

namespace {

using program::Bucket;
using program::Row;

constexpr std::size_t label_width = 15, count_width = 8, bar_width = 12, wide_bar_width = 40;
constexpr std::size_t column_width = count_width + 1 + bar_width;

/// One column: counts by the ends of their ranges.
struct HistColumn {
    std::string title;
    std::map<std::pair<std::int64_t, std::int64_t>, std::uint64_t> counts;
    std::uint64_t most = 1;

    void add(const Row &row) {
        for (const Bucket &bucket : row.hist) counts[{bucket.low, bucket.high}] += bucket.count;
    }
    void find_most() {
        for (const auto &[range, count] : counts) most = std::max(most, count);
    }
};

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

/// [low, high) of a bucket, whose own bounds are both included; of times from 0: below their error.
std::string range_text(std::int64_t low, std::int64_t high, bool is_time, TimeStyle style) {
    auto text = [&](std::int64_t value) {
        return is_time ? short_time_text(static_cast<double>(value), style) : bound(value);
    };
    if (low == 0 && is_time) return '<' + text(high + 1);
    if (low == high && !is_time) return '[' + bound(low) + ']';
    return (low == INT64_MIN ? "(..." : '[' + text(low)) + ", " + (high == INT64_MAX ? "..." : text(high + 1)) + ')';
}

std::string bar_of(std::uint64_t count, std::uint64_t most, std::size_t width) {
    const double share = static_cast<double>(count) / static_cast<double>(most);
    const auto length = static_cast<std::size_t>(std::lround(share * static_cast<double>(width)));
    return count != 0 && length == 0 ? "." : std::string(length, '@');
}

/// A line for each range that some column has values in.
class HistGrid {
  public:
    HistGrid(std::string &out, const std::vector<HistColumn> &columns) : out_(out), columns_(columns) {}

    void append(bool is_time, TimeStyle style) {
        std::map<std::pair<std::int64_t, std::int64_t>, std::string> labels;
        for (const HistColumn &column : columns_)
            for (const auto &[range, count] : column.counts)
                labels.try_emplace(range, range_text(range.first, range.second, is_time, style));
        for (const auto &[range, label] : labels) label_ = std::max(label_, label.size() + 1);
        append_titles();
        for (const auto &[range, label] : labels)
            append_line(label, [&range_of = range](const HistColumn &column) {
                auto found = column.counts.find(range_of);
                return found == column.counts.end() ? 0 : found->second;
            });
    }

  private:
    void append_titles() {
        std::string line(label_ + 2, ' ');
        for (const HistColumn &column : columns_)
            line += fmt::format("{:<{}}", cut_in_the_middle(column.title, room_for_title()), column_width);
        end(std::move(line));
    }
    std::size_t room_for_title() const { return columns_.size() == 1 ? std::string::npos : column_width - 2; }

    template <class CountOf> void append_line(const std::string &label, CountOf count_of) {
        std::string line = fmt::format("{:<{}}", label, label_);
        for (const HistColumn &column : columns_) {
            const std::uint64_t count = count_of(column);
            if (columns_.size() == 1)
                line += fmt::format("{:>{}} |{:<{}}|", count, count_width, bar_of(count, column.most, wide_bar_width),
                                    wide_bar_width);
            else if (count == 0)
                line.append(column_width, ' ');
            else
                line +=
                    fmt::format("{:>{}} {:<{}}", count, count_width, bar_of(count, column.most, bar_width), bar_width);
        }
        end(std::move(line));
    }

    void end(std::string line) {
        line.erase(line.find_last_not_of(' ') + 1);
        out_ += line + '\n';
    }

    std::string &out_;
    const std::vector<HistColumn> &columns_;
    std::size_t label_ = label_width;
};

/// How many columns there are, the one of all others included; 0: as many as there are rows.
std::size_t room(const TableLayout &layout, std::size_t rows) {
    if (layout.top) return *layout.top < rows ? *layout.top + 1 : 0;
    if (layout.width == 0) return 0;
    const std::size_t columns = layout.width < label_width ? 0 : (layout.width - label_width) / column_width;
    return std::max<std::size_t>(columns, 2);
}

} // namespace

void append_histograms(std::string &out, const std::vector<TableLine> &lines, const std::vector<std::string> &titles,
                       const TableLayout &layout) {
    const std::size_t most = room(layout, lines.size());
    const std::size_t apart = most == 0 || lines.size() <= most ? lines.size() : most - 1;
    std::vector<HistColumn> columns;
    for (std::size_t i = 0; i < lines.size(); i++) {
        if (i <= apart) columns.emplace_back().title = titles[i];
        columns.back().add(*lines[i].row);
    }
    if (apart < lines.size()) columns.back().title = fmt::format("{} more", lines.size() - apart);
    for (HistColumn &column : columns) column.find_most();
    const bool is_time = !lines.empty() && lines[0].function->table.is_of_durations();
    HistGrid(out, columns).append(is_time, table_style(layout.exact_times));
}

} // namespace ktrace::output
