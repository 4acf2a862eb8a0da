// tables: what was gathered at the locations of a trace, by function, on its way to the sink.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string_view>
#include <thread>
#include <tuple>
#include <vector>

#include "output/sink.h"
#include "trace/trace.h"

namespace ktrace::report {

/// A function, whatever probe has found it, by its module, name, offset, and vaddr (0: inlined instances).
using FunctionKey = std::tuple<const symbols::Module *, std::string_view, std::uint64_t, std::uint64_t>;
FunctionKey key_of(const trace::CountedLocation &location);
/// The functions that a probe has found, each with the indices of its locations.
std::map<FunctionKey, std::vector<std::size_t>> functions_of(const trace::Trace &trace, std::uint32_t number);

/// The table of one function: of its locations, with callers by name. `also`: as of Aggregation::snapshot.
program::Table table_of(const trace::Trace &trace, const std::vector<std::size_t> &locations,
                        std::span<const double> also = {});

/// One row of all hits at these locations, whatever their keys. Tables of other EXPRs than the first are left out.
program::Table sum_of(const trace::Trace &trace, const std::vector<std::size_t> &locations,
                      std::span<const double> also);

/// Hands the tables of all hits so far to `sink`. The width: that of the terminal that the output of the trace goes to,
/// if it does.
void report_tables(trace::Trace &trace, output::Sink &sink);

/// Wakes the tracing thread at the end of each --interval. Without one it does nothing.
class Intervals {
  public:
    explicit Intervals(trace::Trace &trace) : trace_{trace} {}
    ~Intervals();
    Intervals(const Intervals &) = delete;

    /// True once at the end of each interval. For the tracing thread, between stops.
    bool has_ended();
    /// Hands the tables of the hits since the last call to the sink of the trace.
    void report();

  private:
    void begin_to_wake();

    trace::Trace &trace_;
    std::uint64_t next_ns_ = 0; // 0: not begun
    std::uint64_t number_ = 0;
    std::thread waking_;
    std::mutex mutex_;
    std::condition_variable changed_;
    bool is_over_ = false; // by mutex_
};

} // namespace ktrace::report
