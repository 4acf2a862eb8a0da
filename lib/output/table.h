// Tables: how what --count, --stats and --hist gathered (program/aggregate.h) is written.
#pragma once

#include <string>

#include "output/symbolizer.h"
#include "program/run/record.h"
#include "program/tables/aggregate.h"

namespace ktrace::output {

/// Lines for people, each with its end: columns for counts and statistics, bars for histograms. `location` is what the
/// table is of, `symbolizer` names the stacks among its keys (may be nullptr).
void append_table(std::string &out, const program::LocationInfo &location, const program::Table &table,
                  Symbolizer *symbolizer);

/// The members of a JSON object, with a comma before the first: `,"stats":{…}`, `,"hist":[{low, high, count}…]` (both
/// ends included), `,"count":N`, or `,"by":[{"key":…,…},…]`: one EXPR of --by gives its value as the key, several a
/// list.
void append_table_json(std::string &out, const program::LocationInfo &location, const program::Table &table,
                       Symbolizer *symbolizer);

} // namespace ktrace::output
