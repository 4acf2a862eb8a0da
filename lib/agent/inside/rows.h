// Rows: what a hit adds to its thread's row of a table, where it has one.
#pragma once

#include "agent/inside/hit.h"

namespace ktrace::agent {

/// A call that has returned, in ns; of another hit: of no time.
struct Timed {
    std::uint64_t ns = 0, inner_ns = 0, taken_ns = 0;
    std::uint64_t hits = 0, stops = 0; // inside
    bool is_nested = false;
};

/// The thread's row of a probe; nullptr: it has none, or this hit is for a record.
Row *row_of(const Hit &hit, std::uint32_t number);

/// One was filtered.
void add_filtered(Thread &thread, Row &row, Left &left);

/// Adds a hit with this value, of the moment's EXPR. False: the value has no place in the row, so nothing is added.
bool add_value(const Hit &hit, Row &row, const program::Slot &value, const Timed &timed, Left &left);

/// The same where the row is of durations, or a count: no program runs.
bool add_duration(const Hit &hit, Row &row, const Timed &timed, Left &left);

} // namespace ktrace::agent
