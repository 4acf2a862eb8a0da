// Aggregate: the tables of --count, --stats and --hist: a row for each key, filled in the hit path and read by sinks.
//
// Invariants: memory is bounded: at most max_rows keys in a table, and at most TableMemory for all tables of a trace;
// hits of further keys are counted in one row `other`. A row is of a fixed size but for its buckets, which come with
// the first value of their magnitude (of --hist, with the first one of their sign). add() allocates only then.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "program/run/duration.h"
#include "program/run/record.h"
#include "program/tables/distribution.h"

namespace ktrace::program {

/// One part of a row's key: one EXPR of --by.
struct KeyPart {
    Tag tag = Tag::na; // raw, sint, uint, hex, floating, boolean, string, fault, stack, na, unavailable
    std::uint64_t number = 0;
    double floating = 0;
    std::uint32_t type = 0;           // raw: index in the location's TypeTable
    std::string text;                 // string; raw: its bytes
    std::vector<std::uint64_t> stack; // innermost first
    bool operator==(const KeyPart &) const = default;
};

struct Stats {
    std::uint64_t count = 0;
    double total = 0; // of durations: without those of calls within another one of the same function
    double avg = 0;
    Number min, max;
    Number p50, p90, p99;         // within 1 % of the true ones
    std::vector<Number> also;     // other percentiles that were asked for
    bool has_percentiles = false; // false: there was no memory left to count all values (TableMemory), or no value
    // Of durations.
    double self = 0;                       // of the total, and of nested calls, outside of other return probes' calls
    double taken = 0, taken_of_totals = 0; // what was taken off all, and off those in the total
    TimeErrors errors;                     // of a call, on average; 0: not known
    double min_error = 0, max_error = 0;   // ns, of these two calls
};

/// The number of values in [low, high], both ends included.
struct Bucket {
    std::int64_t low = 0, high = 0;
    std::uint64_t count = 0;
    bool operator==(const Bucket &) const = default;
};

struct Row {
    std::vector<KeyPart> key; // empty: without --by
    bool other = false;       // the keys beyond max_rows together
    std::int32_t pid = 0;     // of the first hit: whose address space names the stacks
    std::uint64_t count = 0;  // hits
    std::uint64_t unread = 0; // of these, hits whose value was a fault or optimized out: in neither stats nor hist
    std::uint64_t nans = 0;   // and hits whose value was NaN: so are they
    Stats stats;
    std::vector<Bucket> hist; // those that are not empty; a duration below its error is in one from 0 to that
};

/// The EXPR whose values are times.
inline constexpr const char *duration_text = "duration";

/// A table as the sinks see it, at one time.
struct Table {
    enum class Kind : std::uint8_t { none, count, stats, hist } kind = Kind::none;
    std::vector<std::string> by; // the texts of the EXPRs of --by
    std::string of;              // the text of the EXPR that is looked at, `duration` where none was given
    std::vector<Row> rows;       // those with hits, in no order; `other` last

    bool is_of_durations() const { return of == duration_text; }
};

/// Hits of a table without --by that were counted elsewhere, in buckets. A number of them may be less than 0, modulo
/// 2^64: that many are taken back.
struct Gathered {
    std::uint64_t count = 0, unread = 0;
    std::uint64_t below = 0, error_ns = 0;                       // durations below their error; of a call
    std::vector<std::pair<std::size_t, std::uint64_t>> buckets;  // --hist: by time_bucket, or the width of integers
    std::vector<std::pair<std::uint64_t, std::uint64_t>> values; // --stats: integers, and how many are like each
    Number min, max;                                             // --stats: of all hits so far
    double sum = 0, total = 0, self = 0, taken = 0, taken_of_totals = 0; // --stats: see Stats
    TimeErrors errors;                                                   // the sum of all
};

/// The live form of a table.
class Aggregation {
  public:
    static constexpr std::size_t max_rows = 10000;

    /// `memory`: that of all tables of the trace.
    Aggregation(Table::Kind kind, std::vector<std::string> by, std::string of, std::shared_ptr<TableMemory> memory);
    ~Aggregation();
    Aggregation(const Aggregation &) = delete;

    /// Adds a hit. `key`: its nodes (record.h), without types: no raw, no pointee, strings with pointer 0, so that
    /// equal values are equal bytes. `number`: nullptr where it could not be read. `duration`: of the call that the
    /// hit ends, or nullptr.
    void add(std::span<const std::byte> key, std::int32_t pid, const Number *number,
             const Duration *duration = nullptr);

    /// Adds as many hits to the one row of a table of counts without --by; less than 0 takes back some that were added.
    void add_hits(std::int64_t count, std::int32_t pid);

    /// Adds hits that were counted elsewhere. Those of --stats come to no recent ones.
    void add_gathered(const Gathered &hits, std::int32_t pid);

    /// Adds the hits of another one of the same kind.
    void add_all(const Aggregation &other);
    /// The same where keys that `name` calls alike are one (callers, by address).
    using Name = std::function<std::string(const std::vector<KeyPart> &key, std::int32_t pid)>;
    void add_named(const Aggregation &other, const Name &name);

    /// From now on the hits since the last clear_recent() are kept apart, too.
    void keep_recent();
    bool keeps_recent() const { return recent_ != nullptr; }
    const Aggregation &recent_hits() const { return *recent_; }
    void clear_recent();

    Table::Kind kind() const { return kind_; }
    bool is_of_durations() const { return of_ == duration_text; }
    bool has_keys() const { return !by_.empty(); }
    /// One of the same kind, without rows, that keeps no recent hits.
    Aggregation empty_copy() const { return Aggregation(kind_, by_, of_, memory_); }
    /// `also`: fractions, of the percentiles in Stats::also.
    Table snapshot(std::span<const double> also = {}) const;
    /// Some row's key was first met in this process (Row::pid).
    bool has_rows_of(std::int32_t pid) const { return pids_.contains(pid); }

  private:
    struct Cell;
    struct Hash {
        using is_transparent = void;
        std::size_t operator()(std::string_view bytes) const { return std::hash<std::string_view>{}(bytes); }
    };
    Cell &cell(std::span<const std::byte> key, std::int32_t pid);
    bool has_room_for(std::span<const std::byte> key);
    void clear();

    Table::Kind kind_;
    std::vector<std::string> by_;
    std::string of_;
    std::shared_ptr<TableMemory> memory_;
    std::unordered_map<std::string, std::unique_ptr<Cell>, Hash, std::equal_to<>> cells_;
    std::unordered_set<std::int32_t> pids_; // of the first hits of those with a key
    Cell *whole_ = nullptr;                 // of cells_: the row without a key, the only one of a table without --by
    std::unique_ptr<Cell> other_;
    std::unique_ptr<Aggregation> recent_;
};

} // namespace ktrace::program
