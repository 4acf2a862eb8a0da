// Tables as JSON: the members of a location's summary, and an object for each row of a table of all functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "output/table.h"

namespace ktrace::output {

/// The members of a JSON object, with a comma before the first: `,"stats":{…}`, `,"hist":[{low, high, count}…]` (both
/// ends included), `,"count":N`, or `,"by":[{"key":…,…},…]`: one EXPR of --by gives its value as the key, several a
/// list. Figures that are not known, or of no hit, are left out.
void append_table_json(std::string &out, const program::LocationInfo &location, const program::Table &table,
                       Symbolizer *symbolizer);

/// `"key":…` of a row, without a comma.
void append_key_json(std::string &out, const program::LocationInfo &location, const program::Table &table,
                     const program::Row &row, Symbolizer *symbolizer);

/// `{"type":"row",…}`, a line for each row, sorted by `column` (empty: total, else count). `interval`: its number; 0:
/// the whole trace.
void append_rows_json(std::string &out, const std::vector<FunctionTable> &functions, const std::string &column,
                      std::uint64_t interval, Symbolizer *symbolizer);

} // namespace ktrace::output
