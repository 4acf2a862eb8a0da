// The text sink: one line an event, `HH:MM:SS.uuuuuu comm/tid payload`; the frames of a stack follow, indented
// and numbered as debuggers number them.
#include <algorithm>
#include <cstring>
#include <ctime>

#include <fmt/format.h>

#include "base/errno_names.h"
#include "base/text.h"
#include "output/fields.h"
#include "output/label.h"
#include "output/number.h"
#include "output/render.h"
#include "output/sink.h"
#include "output/table.h"
#include "output/time_text.h"

namespace ktrace::output {

namespace {

using program::Field;
using program::LocationInfo;
using program::Moment;
using program::Node;
using program::RecordHeader;

/// Local time of day; the zone is asked once a second.
class Clock {
  public:
    void append(std::string &out, std::uint64_t realtime_ns) {
        auto second = static_cast<std::time_t>(realtime_ns / 1'000'000'000U);
        if (second != second_ || text_[0] == 0) {
            second_ = second;
            std::tm local{};
            localtime_r(&second, &local);
            std::strftime(text_, sizeof text_, "%H:%M:%S", &local);
        }
        std::string micros = std::to_string(realtime_ns / 1000U % 1'000'000U);
        out += text_;
        out += '.';
        out.append(6 - micros.size(), '0');
        out += micros;
    }

  private:
    std::time_t second_ = 0;
    char text_[16] = {};
};

constexpr std::string_view bold = "\x1b[1m", faint = "\x1b[2m", usual = "\x1b[0m";

/// Each table begins with its heading, and ends at an empty line.
std::string with_bold_headings(std::string_view tables) {
    std::string out;
    for (bool is_heading = true; !tables.empty();) {
        const std::string_view line = tables.substr(0, tables.find('\n'));
        tables.remove_prefix(std::min(tables.size(), line.size() + 1));
        const bool is_marked = is_heading && !line.empty();
        if (is_marked) out += bold;
        out += line;
        if (is_marked) out += usual;
        out += '\n';
        is_heading = line.empty();
    }
    return out;
}

class TextSink final : public Sink {
  public:
    TextSink(Writer &writer, Symbolizer *symbolizer, TextStyle style)
        : writer_(writer), symbolizer_(symbolizer), style_(style) {}

    void record(std::span<const std::byte> record, const LocationInfo &location) override {
        auto header = program::read_header(record);
        if (!header) return;
        gather(record, *header, location);
        std::string &out = writer_.buffer();
        append_lead(out, *header);
        append_payload(out, *header, location);
        out += values_;
        out += '\n';
        out += stack_;
        writer_.appended();
    }

    void log(const RecordHeader &header, std::uint32_t, std::string_view text) override {
        std::string &out = writer_.buffer();
        append_lead(out, header);
        out += text::escape(text);
        out += '\n';
        writer_.appended();
    }

    void summary(const LocationInfo &, const program::Counters &, const program::Table *) override {}

    void tables(const std::vector<FunctionTable> &functions, const TableLayout &layout,
                std::uint64_t interval) override {
        constexpr std::size_t others = 4; // lines of the terminal: the heading, the rest, the live line, the cursor's
        TableLayout fitting = layout;
        const bool replaces = layout.in_place && layout.height > others;
        if (interval != 0 && replaces && !layout.top) fitting.top = layout.height - others;
        std::string text;
        append_tables(text, functions, fitting, symbolizer_);
        if (style_.coloured) text = with_bold_headings(text);
        std::string &out = writer_.buffer();
        if (table_lines_ != 0) out += replaces ? fmt::format("\x1b[{}A\x1b[J", table_lines_) : "\n";
        table_lines_ = interval == 0 ? 0 : static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
        out += text;
        writer_.appended();
    }

  private:
    void append_lead(std::string &out, const RecordHeader &header) {
        if (style_.coloured) out += faint;
        clock_.append(out, header.time_ns);
        out += ' ';
        out += text::escape(header.name());
        out += '/';
        out += std::to_string(header.tid);
        if (style_.coloured) out += usual;
        out += ' ';
    }

    void gather(std::span<const std::byte> record, const RecordHeader &header, const LocationInfo &location) {
        arguments_.clear();
        retval_.clear();
        values_.clear();
        before_.clear();
        now_.clear();
        at_.clear();
        stack_.clear();
        const bool is_of_call =
            header.moment == Moment::entry || header.moment == Moment::call || header.moment == Moment::ret;
        Context context{location.types, symbolizer_, header.pid};
        context.limits = location.full ? &ValueLimits::full : &ValueLimits::brief;
        for_each_field(record, location.fields[static_cast<std::size_t>(header.moment)],
                       [&](const Field &field, std::size_t number, const Node &node) {
                           context.lines = field.lines;
                           take(field, number, node, context, is_of_call);
                       });
    }

    /// `is_of_call`: values stand where the arguments would.
    void take(const Field &field, std::size_t number, const Node &node, const Context &context, bool is_of_call) {
        switch (field.role) {
        case Field::Role::argument:
        case Field::Role::print:
            if (!is_of_call) {
                values_ += ' ' + label_of(field, number) + '=';
                return append_value(values_, node, context);
            }
            arguments_ += number == 0 ? "" : ", ";
            arguments_ += label_of(field, number) + '=';
            return append_value(arguments_, node, context);
        case Field::Role::retval:
            append_value(retval_, node, context);
            if (may_be_negative(node)) retval_ += '|' + std::to_string(static_cast<std::int32_t>(node.sint()));
            return;
        case Field::Role::error_number:
            if (const std::string_view name = errno_name(node.sint()); !name.empty()) (retval_ += ' ') += name;
            return;
        case Field::Role::injected:
        case Field::Role::skipped:
            values_ += field.role == Field::Role::skipped ? " [skipped: " : " [set ";
            values_ += field.name + '=';
            append_text(values_, node, context);
            values_ += ']';
            return;
        case Field::Role::before: return append_value(before_, node, context);
        case Field::Role::now: return append_value(now_, node, context);
        case Field::Role::at: return append_text(at_, node, context);
        case Field::Role::regs: values_ += ' '; return append_text(values_, node, context);
        case Field::Role::stack: return append_frame_lines(stack_, node, context);
        }
    }

    /// True for a result of no known type that is a positive number of 64 bits, and a negative one of 32.
    static bool may_be_negative(const Node &node) { return node.tag == program::Tag::sint && node.number >> 31 == 1; }

    /// No value is wider than its limit.
    static void append_value(std::string &out, const Node &node, const Context &context) {
        const std::size_t before = out.size();
        append_text(out, node, context);
        if (out.size() - before <= context.limits->columns) return;
        std::size_t end = before, columns = 0;
        for (; end < out.size() && columns < context.limits->columns; columns++)
            end += std::max<std::size_t>(1, text::utf8_length(std::string_view(out).substr(end)));
        if (end >= out.size()) return;
        out.resize(end);
        out += "...";
    }

    /// `counter 5 -> 6 at work+0x12`
    void append_watch(std::string &out, const LocationInfo &location) const {
        append_function(out, location);
        if (!now_.empty()) out += before_ == now_ ? ' ' + now_ + " (unchanged)" : ' ' + before_ + " -> " + now_;
        if (!at_.empty()) out += " at " + at_;
    }

    void append_payload(std::string &out, const RecordHeader &header, const LocationInfo &location) {
        const std::size_t begin = out.size();
        append_event(out, header, location);
        if (!style_.coloured || header.moment == Moment::log) return;
        std::string name;
        append_function(name, location);
        out.insert(begin + name.size(), usual).insert(begin, bold);
    }

    void append_event(std::string &out, const RecordHeader &header, const LocationInfo &location) {
        switch (header.moment) {
        case Moment::log:
        case Moment::pre: return append_place(out, location);
        case Moment::watch: return append_watch(out, location);
        case Moment::post:
            append_place(out, location);
            out += " post";
            return;
        case Moment::entry:
        case Moment::call:
            append_function(out, location);
            out += '(' + arguments_ + ')';
            return;
        case Moment::ret:
            append_function(out, location);
            out += '(' + arguments_ + ") returned ";
            if (!retval_.empty()) out += retval_ + ' ';
            append_duration(out, header);
            return;
        }
    }

    void append_duration(std::string &out, const RecordHeader &header) const {
        const MeasuredTime took{static_cast<double>(header.duration_ns), static_cast<double>(header.error_ns),
                                header.taken_ns >= header.duration_ns};
        out += "and took " + measured_text(took, event_style(style_.exact_times));
    }

    Writer &writer_;
    Symbolizer *symbolizer_;
    TextStyle style_;
    std::size_t table_lines_ = 0; // of the last interval's tables
    Clock clock_;
    std::string arguments_, retval_, values_, stack_, before_, now_,
        at_; // of the record at hand; kept for their memory
};

} // namespace

std::unique_ptr<Sink> make_text_sink(Writer &writer, Symbolizer *symbolizer, TextStyle style) {
    return std::make_unique<TextSink>(writer, symbolizer, style);
}

} // namespace ktrace::output
