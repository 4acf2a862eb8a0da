// chrome: Chrome's trace events, a JSON list, for chrome://tracing and Perfetto. A call is a complete event (X), other
// events are instants (i); each thread has a track and its name.
//
// Invariant: calls of a thread are within each other or apart, never overlapping in part.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "export/sinks.h"
#include "output/fields.h"
#include "output/label.h"
#include "output/notation.h"
#include "output/render.h"
#include "program/run/record.h"

namespace ktrace::exports {

namespace {

using output::JsonNotation;
using program::Field;
using program::LocationInfo;
using program::Moment;
using program::RecordHeader;

/// The calls of one thread that have ended, apart from each other: their beginnings and ends. A caller that ends later
/// begins before those inside of it, whatever the clock's grain.
class Track {
  public:
    /// When the call began.
    std::uint64_t add(std::uint64_t begin, std::uint64_t end) {
        while (!ended_.empty() && ended_.back().second > begin) {
            begin = std::min(begin, ended_.back().first);
            ended_.pop_back();
        }
        if (ended_.size() == most) ended_.erase(ended_.begin(), ended_.begin() + most / 2);
        ended_.emplace_back(begin, end);
        return begin;
    }

  private:
    static constexpr std::size_t most = 4096;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> ended_;
};

class ChromeSink final : public output::Sink {
  public:
    ChromeSink(output::Writer &writer, output::Symbolizer *symbolizer, std::uint64_t began_ns)
        : writer_(writer), symbolizer_(symbolizer), began_ns_(began_ns) {}

    void record(std::span<const std::byte> record, const LocationInfo &location) override {
        auto header = program::read_header(record);
        if (!header) return;
        std::string name;
        if (location.kind == 'k')
            output::append_place(name, location);
        else
            output::append_function(name, location);
        std::string arguments = arguments_of(record, *header, location);
        if (header->moment == Moment::ret)
            add_call(*header, name, std::move(arguments));
        else
            add_instant(*header, name + (header->moment == Moment::post ? " post" : ""), arguments);
    }

    void log(const RecordHeader &header, std::uint32_t, std::string_view text) override {
        add_instant(header, std::string(text), {});
    }

    void summary(const LocationInfo &, const program::Counters &, const program::Table *) override {}
    void tables(const std::vector<output::FunctionTable> &, const output::TableLayout &, std::uint64_t) override {}

    void end() override { writer_.write(is_begun_ ? "\n]\n" : "[]\n"); }

  private:
    using Thread = std::pair<std::int32_t, std::int32_t>;

    std::string arguments_of(std::span<const std::byte> record, const RecordHeader &header,
                             const LocationInfo &location) const {
        std::string out;
        output::Context context{location.types, symbolizer_, header.pid};
        output::for_each_field(
            record, location.fields[static_cast<std::size_t>(header.moment)],
            [&](const Field &field, std::size_t number, const program::Node &node) {
                if (field.role == Field::Role::error_number && node.sint() == 0) return; // the call has not failed
                context.lines = field.lines;
                const std::string name = field.name.empty() ? "arg" + std::to_string(number) : field.name;
                JsonNotation::key(out, field.role == Field::Role::skipped ? "skipped" : name, out.empty());
                output::append_json(out, node, context);
            });
        return out;
    }

    /// `phase`: its letter, and what belongs to that.
    void add(const RecordHeader &header, const std::string &name, const std::string &phase, std::uint64_t time_ns,
             const std::string &arguments) {
        name_thread(header);
        std::string &out = begin_event();
        out += "{\"name\":";
        output::append_json_string(out, name);
        out +=
            fmt::format(",\"ph\":{},\"ts\":{},\"pid\":{},\"tid\":{},\"args\":{{{}}}}}", phase,
                        microseconds(time_ns > began_ns_ ? time_ns - began_ns_ : 0), header.pid, header.tid, arguments);
        writer_.appended();
    }

    void add_call(const RecordHeader &header, const std::string &name, std::string arguments) {
        const std::uint64_t begin = tracks_[{header.pid, header.tid}].add(header.entry_ns, header.time_ns);
        arguments += fmt::format("{}\"duration_ns\":{}", arguments.empty() ? "" : ",", header.duration_ns);
        if (header.error_ns != 0) arguments += fmt::format(",\"error_ns\":{}", header.error_ns);
        add(header, name, fmt::format("\"X\",\"dur\":{}", microseconds(header.time_ns - begin)), begin, arguments);
    }

    void add_instant(const RecordHeader &header, const std::string &name, const std::string &arguments) {
        add(header, name, R"("i","s":"t")", header.time_ns, arguments);
    }

    void name_thread(const RecordHeader &header) {
        if (!named_.insert({header.pid, header.tid}).second) return;
        std::string &out = begin_event();
        out += fmt::format(R"({{"name":"thread_name","ph":"M","pid":{},"tid":{},"args":{{"name":)", header.pid,
                           header.tid);
        output::append_json_string(out, header.name());
        out += "}}";
    }

    std::string &begin_event() {
        std::string &out = writer_.buffer();
        out += std::exchange(is_begun_, true) ? ",\n" : "[\n";
        return out;
    }

    static std::string microseconds(std::uint64_t ns) { return fmt::format("{}.{:03}", ns / 1000, ns % 1000); }

    output::Writer &writer_;
    output::Symbolizer *symbolizer_;
    const std::uint64_t began_ns_;
    bool is_begun_ = false;
    std::set<Thread> named_;
    std::map<Thread, Track> tracks_;
};

} // namespace

std::unique_ptr<output::Sink> make_chrome_sink(output::Writer &writer, output::Symbolizer *symbolizer,
                                               std::uint64_t began_ns) {
    return std::make_unique<ChromeSink>(writer, symbolizer, began_ns);
}

} // namespace ktrace::exports
