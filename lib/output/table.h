// Tables: how what --count, --stats and --hist gathered (program/tables/aggregate.h) is written for people: one table
// of all functions that were hit, for each form and EXPR; their JSON is in table_json.h.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "output/symbolizer.h"
#include "program/run/record.h"
#include "program/tables/aggregate.h"

namespace ktrace::output {

/// The table of one function.
struct FunctionTable {
    const program::LocationInfo *location = nullptr;
    program::Table table;
};

/// How tables are laid out, by the options of the command.
struct TableLayout {
    std::size_t width = 0;          // of the terminal; 0: there is none, names and columns are whole
    std::size_t height = 0;         // of the terminal, in lines
    bool in_place = false;          // the terminal is ktrace's alone: tables may replace each other
    std::string sort;               // a column; empty: total, else count
    std::optional<std::size_t> top; // rows, and the rest as one
    bool exact_times = false;       // in whole ns
};

/// Columns by which tables can be sorted, but for the EXPRs of --by.
bool is_sort_column(std::string_view name);

/// Lines, each with its end. Nothing of functions without hits. `symbolizer` names the stacks among the keys (may be
/// nullptr).
void append_tables(std::string &out, const std::vector<FunctionTable> &functions, const TableLayout &layout,
                   Symbolizer *symbolizer);

} // namespace ktrace::output
