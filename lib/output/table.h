// Table: what --count, --stats and --hist gathered at a location, as data, and how it is written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "output/symbolizer.h"
#include "program/record.h"

namespace ktrace::output {

struct Stats {
    std::uint64_t count = 0;
    double avg = 0, min = 0, max = 0, p50 = 0, p90 = 0, p99 = 0;
};

/// Values in [low, high).
struct Bucket {
    std::int64_t low = 0, high = 0;
    std::uint64_t count = 0;
};

struct Table {
    enum class Kind : std::uint8_t { count, stats, hist };

    /// What was gathered for one value of --by; without --by there is one row with an empty key.
    struct Row {
        std::int32_t pid = 0;       // where the key was seen, for the names of stacks
        std::vector<std::byte> key; // nodes as in a record (program/record.h), one for each of `by`
        std::uint64_t count = 0;
        Stats stats;                   // Kind::stats
        std::vector<Bucket> histogram; // Kind::hist: by `low`, without gaps between the first and the last
    };

    Kind kind = Kind::count;
    std::string of;              // the EXPR of --stats and --hist: `duration`
    std::vector<std::string> by; // the EXPRs of --by
    std::vector<Row> rows;       // in the order in which they are to be shown
};

/// Lines for people, each with its end: columns for counts and statistics, bars for histograms.
void append_table(std::string &out, const program::LocationInfo &location, const Table &table, Symbolizer *symbolizer);

/// The members of a JSON object, with a comma before the first: `,"stats":{…}`, `,"hist":[…]`, `,"count":N`, or
/// `,"by":[{"key":…,…},…]`.
void append_table_json(std::string &out, const program::LocationInfo &location, const Table &table,
                       Symbolizer *symbolizer);

} // namespace ktrace::output
