// Sink: where records and tables go, as text or JSON lines. Knows records and locations' names; never a tracee.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "output/symbolizer.h"
#include "output/table.h"
#include "output/writer.h"
#include "program/run/record.h"
#include "program/tables/aggregate.h"

namespace ktrace::output {

class Sink {
  public:
    virtual ~Sink() = default;
    /// A record as eval wrote it, and its location.
    virtual void record(std::span<const std::byte> record, const program::LocationInfo &location) = 0;
    /// A line of a plugin's log; `level` as syslog's.
    virtual void log(const program::RecordHeader &header, std::uint32_t level, std::string_view text) = 0;
    /// A location's counts at the end, with its table (nullptr: it has none). JSON: an object with both; text: nothing,
    /// since the counts go to standard error (summary.h).
    virtual void summary(const program::LocationInfo &location, const program::Counters &counters,
                         const program::Table *table) = 0;
    /// The tables of all functions; `interval`: the number of the part of the trace that they are of, 0: all of it.
    virtual void tables(const std::vector<FunctionTable> &functions, const TableLayout &layout,
                        std::uint64_t interval) = 0;
    /// Nothing more comes.
    virtual void end() {}
};

struct TextStyle {
    bool exact_times = false; // durations are in whole ns
    bool coloured = false;    // for a terminal: what stands in front of the event is faint, names and headings are bold
};

/// A line an event; the lines are put into `writer`, which must outlive the sink. `symbolizer` may be nullptr.
std::unique_ptr<Sink> make_text_sink(Writer &writer, Symbolizer *symbolizer, TextStyle style);
/// A JSON object a line.
std::unique_ptr<Sink> make_json_sink(Writer &writer, Symbolizer *symbolizer);

} // namespace ktrace::output
