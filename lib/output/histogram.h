// Histogram: a table of --hist for people: a line for each range of values, a column for each row.
#pragma once

#include <string>
#include <vector>

#include "output/table_lines.h"

namespace ktrace::output {

/// One alone has a wide bar. Of more there are as many columns as the width has room for, or `TableLayout::top` says,
/// and one of the rest together.
void append_histograms(std::string &out, const std::vector<TableLine> &lines, const std::vector<std::string> &titles,
                       const TableLayout &layout);

} // namespace ktrace::output
