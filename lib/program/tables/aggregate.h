// Aggregate: the tables of --count, --stats and --hist: a row for each key, filled in the hit path and read by sinks.
//
// Invariants: memory is bounded: at most max_rows keys in a table, and at most TableMemory for all tables of a trace;
// hits of further keys are counted in one row `other`. A row is of a fixed size but for its buckets, which come with
// the first value of their magnitude (of --hist, with the first one of their sign). add() allocates only then.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "program/run/record.h"

namespace ktrace::program {

/// A number that --stats or --hist looks at.
struct Number {
    enum class Kind : std::uint8_t { sint, uint, floating } kind = Kind::sint;
    std::uint64_t bits = 0; // the integer, or a double's bits

    double as_double() const;
};

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
    double avg = 0;
    Number min, max;
    Number p50, p90, p99;         // within 1 % of the true ones
    bool has_percentiles = false; // false: there was no memory left to count all values (TableMemory), or no value
};

/// The number of values in [low, high], both ends included: powers of two, as bpftrace's hist().
struct Bucket {
    std::int64_t low = 0, high = 0;
    std::uint64_t count = 0;
};

struct Row {
    std::vector<KeyPart> key; // empty: without --by
    bool other = false;       // the keys beyond max_rows together
    std::int32_t pid = 0;     // of the first hit: whose address space names the stacks
    std::uint64_t count = 0;  // hits
    std::uint64_t unread = 0; // of these, hits whose value was a fault or optimized out: in neither stats nor hist
    std::uint64_t nans = 0;   // and hits whose value was NaN: so are they
    Stats stats;
    std::vector<Bucket> hist; // from the lowest to the highest that is not empty, without gaps
};

/// A table as the sinks see it, at one time.
struct Table {
    enum class Kind : std::uint8_t { none, count, stats, hist } kind = Kind::none;
    std::vector<std::string> by; // the texts of the EXPRs of --by
    std::string of;              // the text of the EXPR that is looked at, `duration` where none was given
    std::vector<Row> rows;       // by count (stats: by sum), smallest first; `other` last
};

/// The bound of all tables of a trace together, in bytes: their keys and values come from the target, which chooses
/// how many there are. Memory that is taken is never given back.
class TableMemory {
  public:
    static constexpr std::size_t usual_limit = std::size_t{1} << 30;

    explicit TableMemory(std::size_t limit = usual_limit) : left_(limit) {}
    /// False where so much is not left: nothing is taken then.
    bool take(std::size_t bytes);

  private:
    std::size_t left_;
};

/// Counts values in buckets whose width is 1/64 of their magnitude, so that any percentile is within 1 %.
class Distribution {
  public:
    /// A value for whose bucket no memory is left is counted in count() alone.
    void add(Number number, TableMemory &memory);
    /// All values are in a bucket.
    bool is_complete() const { return complete_; }
    /// The smallest value below or at which `fraction` of the values lie, as the middle of its bucket.
    double percentile(double fraction) const;
    std::uint64_t count() const { return count_; }

  private:
    using Octave = std::array<std::uint64_t, 64>;
    std::vector<std::pair<std::int32_t, std::unique_ptr<Octave>>> octaves_; // by sign and exponent, in order of value
    std::uint64_t count_ = 0;
    bool complete_ = true;
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
    /// equal values are equal bytes. `number`: nullptr where it could not be read.
    void add(std::span<const std::byte> key, std::int32_t pid, const Number *number);

    /// Adds as many hits to the one row of a table of counts without --by.
    void add_hits(std::uint64_t count, std::int32_t pid);

    Table::Kind kind() const { return kind_; }
    /// One of the same kind, without rows.
    Aggregation empty_copy() const { return Aggregation(kind_, by_, of_, memory_); }
    Table snapshot() const;
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

    Table::Kind kind_;
    std::vector<std::string> by_;
    std::string of_;
    std::shared_ptr<TableMemory> memory_;
    std::unordered_map<std::string, std::unique_ptr<Cell>, Hash, std::equal_to<>> cells_;
    std::unordered_set<std::int32_t> pids_; // of the first hits of those with a key
    Cell *whole_ = nullptr;                 // of cells_: the row without a key, the only one of a table without --by
    std::unique_ptr<Cell> other_;
};

} // namespace ktrace::program
