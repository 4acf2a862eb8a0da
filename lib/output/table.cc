#include "output/table.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <tuple>

#include <fmt/format.h>

#include "base/text.h"
#include "output/histogram.h"
#include "output/render.h"
#include "output/table_lines.h"
#include "output/time_text.h"

namespace ktrace::output {

namespace {

using program::LocationInfo;
using program::Number;
using program::Row;
using program::Stats;
using program::Table;
using program::Tag;

constexpr std::size_t number_width = 8, fewest_for_names = 24;

/// A column of numbers.
struct Column {
    std::string title;
    unsigned goes = 0; // where the width is short: 1 first; 0: it stays
    std::vector<std::string> cells;

    std::size_t width() const {
        std::size_t most = std::max(number_width, title.size());
        for (const std::string &cell : cells) most = std::max(most, cell.size());
        return most;
    }
};

/// One table of all lines that there are of one form.
class Grid {
  public:
    Grid(const std::vector<TableLine> &lines, const TableLayout &layout, Symbolizer *symbolizer)
        : lines_(lines), layout_(layout), symbolizer_(symbolizer), table_(lines[0].function->table) {
        apart_ = layout.top && *layout.top < lines.size() ? *layout.top : lines.size();
        std::set<std::string_view> modules;
        std::map<std::tuple<std::string_view, std::uint64_t, std::string_view>, char> kinds;
        for (const TableLine &line : lines) {
            const LocationInfo &at = *line.function->location;
            modules.insert(at.module);
            auto [known, is_new] = kinds.try_emplace({at.symbol, at.offset, at.which}, at.kind);
            with_kind_ = with_kind_ || known->second != at.kind;
        }
        with_module_ = modules.size() > 1;
        module_ = *modules.begin();
        for (const Row &row : table_.rows)
            for (const program::KeyPart &part : row.key) has_stacks_ = has_stacks_ || part.tag == Tag::stack;
    }

    void append(std::string &out) {
        if (table_.kind == Table::Kind::hist) return append_histograms(out, lines_, histogram_titles(), layout_);
        table_.kind == Table::Kind::count ? add_counts() : add_stats();
        has_stacks_ ? append_blocks(out) : append_names(out);
    }

  private:
    TimeStyle style() const { return table_style(layout_.exact_times); }
    bool has_rest() const { return apart_ < lines_.size(); }
    std::string name_of(std::size_t line) const {
        return function_text(*lines_[line].function->location, with_kind_, with_module_);
    }

    std::vector<std::string> histogram_titles() const {
        const bool one = std::all_of(lines_.begin(), lines_.end(),
                                     [&](const TableLine &line) { return line.function == lines_[0].function; });
        std::vector<std::string> titles;
        for (std::size_t i = 0; i < lines_.size(); i++) {
            std::string title = one && !table_.by.empty() ? "" : name_of(i);
            for (std::size_t k = 0; k < table_.by.size(); k++)
                title += (title.empty() ? "" : " ") + key_text(lines_[i], k, symbolizer_);
            titles.push_back(std::move(title));
        }
        return titles;
    }

    void add_counts() {
        Column &count = columns_.emplace_back(Column{"count", 0, {}});
        for (std::size_t i = 0; i < apart_; i++) count.cells.push_back(std::to_string(lines_[i].row->count));
        std::uint64_t rest = 0;
        for (std::size_t i = apart_; i < lines_.size(); i++) rest += lines_[i].row->count;
        if (has_rest()) count.cells.push_back(std::to_string(rest));
    }

    void add_stats() {
        const bool is_time = table_.is_of_durations();
        columns_ = {{"total", 0, {}}, {"self", 4, {}}, {"count", 0, {}}, {"avg", 0, {}}, {"min", 1, {}},
                    {"p50", 3, {}},   {"p90", 2, {}},  {"p99", 0, {}},   {"max", 0, {}}};
        for (std::size_t i = 0; i < apart_; i++)
            add_cells(is_time ? times_of(lines_[i].row->stats) : figures_of(lines_[i].row->stats));
        if (has_rest()) {
            Stats rest = sum_of_rest();
            auto cells = is_time ? times_of(rest) : figures_of(rest);
            for (std::size_t i = 4; i < cells.size(); i++) cells[i].clear();
            add_cells(cells);
        }
        if (!is_time) columns_.erase(columns_.begin() + 1);
    }

    void add_cells(const std::vector<std::string> &cells) {
        for (std::size_t i = 0; i < columns_.size(); i++) columns_[i].cells.push_back(cells[i]);
    }

    static std::vector<std::string> figures_of(const Stats &stats) {
        if (stats.count == 0) return {"-", "", "0", "-", "-", "-", "-", "-", "-"};
        auto percentile = [&](const Number &number) { return stats.has_percentiles ? figure(number) : "-"; };
        return {figure(stats.total),
                "",
                std::to_string(stats.count),
                figure(stats.avg),
                figure(stats.min),
                percentile(stats.p50),
                percentile(stats.p90),
                percentile(stats.p99),
                figure(stats.max)};
    }

    std::vector<std::string> times_of(const Stats &stats) const {
        if (stats.count == 0) return {"-", "-", "0", "-", "-", "-", "-", "-", "-"};
        const auto count = static_cast<double>(stats.count);
        auto rounded = [](double ns) { return static_cast<double>(program::round_error(ns)); };
        const double error = rounded(stats.errors.avg);
        auto sum = [&](double ns, double taken) { return measured_text({ns, error * count, taken >= ns}, style()); };
        auto of_one = [&](const Number &number, double error_ns) {
            return measured_text({number.as_double(), rounded(error_ns), false}, style());
        };
        auto percentile = [&](const Number &number, double error_ns) {
            return stats.has_percentiles ? of_one(number, error_ns) : "-";
        };
        return {sum(stats.total, stats.taken_of_totals),
                sum(stats.self, stats.taken),
                std::to_string(stats.count),
                measured_text({stats.avg, error, stats.taken >= stats.avg * count}, style()),
                of_one(stats.min, stats.min_error),
                percentile(stats.p50, stats.errors.p50),
                percentile(stats.p90, stats.errors.p90),
                percentile(stats.p99, stats.errors.p99),
                of_one(stats.max, stats.max_error)};
    }

    Stats sum_of_rest() const {
        Stats rest;
        double sum = 0;
        for (std::size_t i = apart_; i < lines_.size(); i++) {
            const Stats &stats = lines_[i].row->stats;
            const auto count = static_cast<double>(stats.count);
            rest.count += stats.count;
            sum += stats.avg * count;
            rest.total += stats.total;
            rest.self += stats.self;
            rest.taken += stats.taken;
            rest.taken_of_totals += stats.taken_of_totals;
            rest.errors += stats.errors * count;
        }
        if (rest.count == 0) return rest;
        rest.avg = sum / static_cast<double>(rest.count);
        rest.errors = rest.errors / static_cast<double>(rest.count);
        return rest;
    }

    /// Leaves columns out until the names have room, or none can go. Returns the room for names; 0: as much as they
    /// take.
    std::size_t fit(std::size_t longest_name) {
        if (layout_.width == 0) return 0;
        for (unsigned next = 1;; next++) {
            std::size_t numbers = columns_.size() + 1;
            for (const Column &column : columns_) numbers += column.width();
            const std::size_t left = layout_.width > numbers ? layout_.width - numbers : 0;
            if (left >= std::min(longest_name, fewest_for_names) || next > 4) return std::max<std::size_t>(left, 8);
            std::erase_if(columns_, [next](const Column &column) { return column.goes == next; });
        }
    }

    std::string numbers_of(std::size_t line) const {
        std::string out;
        for (const Column &column : columns_)
            out += fmt::format("{}{:>{}}", out.empty() ? "" : " ", column.cells[line], column.width());
        return out + "  ";
    }
    std::string titles() const {
        std::string out;
        for (const Column &column : columns_)
            out += fmt::format("{}{:>{}}", out.empty() ? "" : " ", column.title, column.width());
        return out + "  ";
    }

    /// The heading of the functions' names.
    std::string function_title() const {
        std::string title = "function";
        if (!with_module_ && table_.by.empty() && !module_.empty()) title += " [" + text::escape(module_) + ']';
        if (table_.kind == Table::Kind::stats && !table_.is_of_durations()) title += "  (" + table_.of + ')';
        return title;
    }

    void append_names(std::string &out) {
        std::vector<std::vector<std::string>> cells{{function_title()}};
        for (const std::string &by : table_.by) cells[0].push_back(by);
        for (std::size_t i = 0; i < apart_; i++) {
            cells.push_back({name_of(i)});
            for (std::size_t k = 0; k < table_.by.size(); k++)
                cells.back().push_back(key_text(lines_[i], k, symbolizer_));
        }
        if (has_rest()) cells.push_back({fmt::format("{} more", lines_.size() - apart_)});
        std::vector<std::size_t> widths(table_.by.size() + 1);
        for (const auto &line : cells)
            for (std::size_t k = 0; k < line.size(); k++) widths[k] = std::max(widths[k], line[k].size());
        if (const std::size_t names = fit(widths[0]); names != 0) widths[0] = std::min(widths[0], names);
        if (cells[0][0].size() > widths[0]) cells[0][0] = "function";
        for (std::size_t i = 0; i < cells.size(); i++) {
            std::string line = i == 0 ? titles() : numbers_of(i - 1);
            line += fmt::format("{:<{}}", cut_in_the_middle(cells[i][0], widths[0]), widths[0]);
            for (std::size_t k = 1; k < cells[i].size(); k++) line += fmt::format("  {:<{}}", cells[i][k], widths[k]);
            end(out, std::move(line));
        }
    }

    /// A stack is a block: its frames stand below each other, with the numbers before the innermost.
    void append_blocks(std::string &out) {
        fit(0);
        if (columns_.size() > 1) end(out, titles() + "stack");
        for (std::size_t i = 0; i < apart_; i++) append_block(out, i);
        if (has_rest()) end(out, numbers_of(apart_) + fmt::format("{} more", lines_.size() - apart_));
    }

    void append_block(std::string &out, std::size_t i) {
        std::string lead = numbers_of(i), keys;
        std::vector<NamedFrame> frames;
        for (std::size_t k = 0; k < table_.by.size(); k++) {
            const bool is_stack = k < lines_[i].row->key.size() && lines_[i].row->key[k].tag == Tag::stack;
            if (is_stack && frames.empty())
                frames = name_frames(node_of(lines_[i].row->key[k]), {nullptr, symbolizer_, lines_[i].row->pid});
            else
                keys += key_text(lines_[i], k, symbolizer_) + "  ";
        }
        if (frames.empty()) return end(out, lead + keys);
        std::string before = lead + keys;
        for (const NamedFrame &frame : frames) {
            append_frame_text(before, frame);
            end(out, std::move(before));
            before.assign(lead.size() + keys.size(), ' ');
        }
    }

    static void end(std::string &out, std::string line) {
        line.erase(line.find_last_not_of(' ') + 1);
        out += line + '\n';
    }

    const std::vector<TableLine> &lines_;
    const TableLayout &layout_;
    Symbolizer *symbolizer_;
    const Table &table_; // of the first line: whose form is that of all
    std::size_t apart_ = 0;
    bool with_kind_ = false, with_module_ = false, has_stacks_ = false;
    std::string_view module_;
    std::vector<Column> columns_;
};

/// How many hits are in none of the rows' figures, by cause.
void append_left_out(std::string &out, const std::vector<TableLine> &lines) {
    std::uint64_t unread = 0, nans = 0, without_percentiles = 0;
    for (const TableLine &line : lines) {
        without_percentiles += line.row->stats.count != 0 && !line.row->stats.has_percentiles ? 1 : 0;
        unread += line.row->unread;
        nans += line.row->nans;
    }
    if (unread != 0) out += fmt::format("  {} more could not be read\n", unread);
    if (nans != 0) out += fmt::format("  {} more {} NaN\n", nans, nans == 1 ? "was" : "were");
    if (without_percentiles != 0)
        out += fmt::format("  percentiles are not known of {} row{}: all tables together have used up their memory\n",
                           without_percentiles, without_percentiles == 1 ? "" : "s");
}

} // namespace

void append_tables(std::string &out, const std::vector<FunctionTable> &functions, const TableLayout &layout,
                   Symbolizer *symbolizer) {
    const auto forms = by_form(functions);
    for (std::size_t i = 0; i < forms.size(); i++) {
        const std::vector<TableLine> lines = sorted_lines(forms[i], layout.sort);
        if (i != 0) out += '\n';
        Grid(lines, layout, symbolizer).append(out);
        append_left_out(out, lines);
    }
}

} // namespace ktrace::output
