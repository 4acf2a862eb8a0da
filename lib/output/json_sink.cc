// The JSON sink: one object a line, with its keys in the order of the contract; written by hand, since there may be
// 100,000 of them a second.
#include <cstring>

#include "base/errno_names.h"
#include "output/fields.h"
#include "output/label.h"
#include "output/notation.h"
#include "output/number.h"
#include "output/render.h"
#include "output/sink.h"
#include "output/table_json.h"

namespace ktrace::output {

namespace {

using program::Field;
using program::LocationInfo;
using program::Moment;
using program::Node;
using program::RecordHeader;

const char *type_name(Moment moment) {
    switch (moment) {
    case Moment::pre: return "pre";
    case Moment::post: return "post";
    case Moment::entry:
    case Moment::call: return "entry";
    case Moment::ret: return "return";
    case Moment::watch: return "watch";
    case Moment::log: return "log";
    }
    return "pre";
}

void append_number(std::string &out, const char *key, std::uint64_t value) {
    out += key;
    append_decimal(out, Unsigned128{value});
}

class JsonSink final : public Sink {
  public:
    JsonSink(Writer &writer, Symbolizer *symbolizer) : writer_(writer), symbolizer_(symbolizer) {}

    void record(std::span<const std::byte> record, const LocationInfo &location) override {
        auto header = program::read_header(record);
        if (!header) return;
        gather(record, *header, location);
        std::string &out = writer_.buffer();
        append_header(out, *header);
        append_number(out, ",\"probe\":", location.probe);
        append_location_json(out, location);
        append_body(out, *header);
        out += "}\n";
        writer_.appended();
    }

    void log(const RecordHeader &header, std::uint32_t level, std::string_view text) override {
        std::string &out = writer_.buffer();
        append_header(out, header);
        append_number(out, ",\"level\":", level);
        out += ",\"message\":";
        append_json_string(out, text);
        out += "}\n";
        writer_.appended();
    }

    void summary(const LocationInfo &location, const program::Counters &counters,
                 const program::Table *table) override {
        std::string &out = writer_.buffer();
        append_number(out, "{\"type\":\"summary\",\"probe\":", location.probe);
        out += ",\"kind\":";
        append_json_string(out, {&location.kind, 1});
        append_location_json(out, location);
        append_which_json(out, location);
        append_number(out, ",\"hits\":", counters.hits);
        append_number(out, ",\"events\":", counters.events);
        append_number(out, ",\"filtered\":", counters.filtered);
        append_number(out, ",\"unselected\":", counters.unselected);
        append_number(out, ",\"missed\":", counters.missed);
        append_number(out, ",\"unreturned\":", counters.unreturned);
        append_number(out, ",\"dropped\":", counters.dropped);
        if (location.injects) append_number(out, ",\"injected\":", counters.injected);
        if (table) append_table_json(out, location, *table, symbolizer_);
        out += "}\n";
        writer_.appended();
    }

    void tables(const std::vector<FunctionTable> &functions, const TableLayout &layout,
                std::uint64_t interval) override {
        append_rows_json(writer_.buffer(), functions, layout.sort, interval, symbolizer_);
        writer_.appended();
    }

  private:
    void gather(std::span<const std::byte> record, const RecordHeader &header, const LocationInfo &location) {
        for (std::string *part :
             {&arguments_, &retval_, &error_, &values_, &regs_, &stack_, &injected_, &skipped_, &watch_})
            part->clear();
        Context context{location.types, symbolizer_, header.pid};
        for_each_field(record, location.fields[static_cast<std::size_t>(header.moment)],
                       [&](const Field &field, std::size_t number, const Node &node) {
                           context.lines = field.lines;
                           take(field, number, node, context);
                       });
    }

    void take(const Field &field, std::size_t number, const Node &node, const Context &context) {
        if (node.tag == program::Tag::not_known) return;
        switch (field.role) {
        case Field::Role::argument:
            JsonNotation::key(arguments_, field.name.empty() ? "arg" + std::to_string(number) : field.name,
                              arguments_.empty());
            return append_json(arguments_, node, context);
        case Field::Role::retval: return append_json(retval_, node, context);
        case Field::Role::error_number: error_ = errno_name(node.sint()); return;
        case Field::Role::print:
            JsonNotation::key(values_, field.name, values_.empty());
            return append_json(values_, node, context);
        case Field::Role::injected:
            JsonNotation::key(injected_, field.name, injected_.empty());
            return append_json(injected_, node, context);
        case Field::Role::skipped: return append_json(skipped_, node, context);
        case Field::Role::before:
        case Field::Role::now:
        case Field::Role::at: watch_ += ",\"" + field.name + "\":"; return append_json(watch_, node, context);
        case Field::Role::regs: return append_json(regs_, node, context);
        case Field::Role::stack: return append_json(stack_, node, context);
        }
    }

    static void append_header(std::string &out, const RecordHeader &header) {
        out += "{\"type\":\"";
        out += type_name(header.moment);
        append_number(out, "\",\"time_ns\":", header.time_ns);
        append_number(out, ",\"pid\":", static_cast<std::uint32_t>(header.pid));
        append_number(out, ",\"tid\":", static_cast<std::uint32_t>(header.tid));
        out += ",\"comm\":";
        append_json_string(out, header.name());
    }

    void append_body(std::string &out, const RecordHeader &header) const {
        bool returns = header.moment == Moment::ret;
        if (returns && !retval_.empty()) out += ",\"retval\":" + retval_;
        if (returns && !error_.empty()) (out += ",\"errno\":\"") += error_ + '"';
        if (returns) append_times(out, header);
        if ((returns || header.moment == Moment::entry) && values_.empty()) out += ",\"args\":{" + arguments_ + '}';
        out += watch_;
        if (!values_.empty()) out += ",\"values\":{" + values_ + '}';
        if (!regs_.empty()) out += ",\"regs\":" + regs_;
        if (!injected_.empty()) out += ",\"set\":{" + injected_ + '}';
        if (!skipped_.empty()) out += ",\"skipped\":" + skipped_;
        if (!stack_.empty()) out += ",\"stack\":" + stack_;
    }

    static void append_times(std::string &out, const RecordHeader &header) {
        append_number(out, ",\"entry_ns\":", header.entry_ns);
        append_number(out, ",\"duration_ns\":", header.duration_ns);
        if (header.error_ns != 0) append_number(out, ",\"error_ns\":", header.error_ns);
    }

    Writer &writer_;
    Symbolizer *symbolizer_;
    std::string arguments_, retval_, error_, values_, regs_, stack_, injected_, skipped_,
        watch_; // of the record at hand; kept for their memory
};

} // namespace

std::unique_ptr<Sink> make_json_sink(Writer &writer, Symbolizer *symbolizer) {
    return std::make_unique<JsonSink>(writer, symbolizer);
}

} // namespace ktrace::output
