// Table lines: the rows of all functions of a table, sorted, and the texts of their parts. Both forms of tables are
// made of them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "output/table.h"
#include "program/tables/record_reader.h"

namespace ktrace::output {

/// A row of one function's.
struct TableLine {
    const FunctionTable *function = nullptr;
    const program::Row *row = nullptr;
};

/// Those that have rows, by the form of their tables and its EXPRs.
std::vector<std::vector<const FunctionTable *>> by_form(const std::vector<FunctionTable> &functions);

/// The lines of functions whose tables are of one form, by `column` (empty: total, else count), largest first; rows of
/// all further keys last.
std::vector<TableLine> sorted_lines(const std::vector<const FunctionTable *> &functions, const std::string &column);

/// `getCommand`, `shop::Till::add(int)`, `do_work+0x4`. `with_kind`: and ` (-k)`, `with_module`: and ` [module]`.
std::string function_text(const program::LocationInfo &location, bool with_kind, bool with_module);

/// A part of a key as the node that it was made of. The bytes of a stack lie in the part.
program::Node node_of(const program::KeyPart &part);

/// A part of a key; a text stands without the quotes that it has in an event, `-` for one that does not fit.
std::string key_text(const TableLine &line, std::size_t part, Symbolizer *symbolizer);

/// A statistic: whole numbers as such, others with as many digits as mean something.
std::string figure(double value);
std::string figure(const program::Number &number);

/// `text`, where it is longer than `width` with its middle left out: `geosearch..Command`.
std::string cut_in_the_middle(const std::string &text, std::size_t width);

} // namespace ktrace::output
