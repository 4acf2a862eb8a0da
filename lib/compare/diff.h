// Diff: the rows of two runs beside each other, as text, csv and JSON, and expectations of them.
#pragma once

#include <string>
#include <vector>

#include "compare/run.h"
#include "expect/case.h"

namespace ktrace::compare {

struct DiffRow {
    RowKey key;
    const RunRow *now = nullptr, *old = nullptr; // at most one is nullptr
};

/// Rows of both, those first whose total, else count, changed most. Borrows the runs.
std::vector<DiffRow> diff(const Run &old, const Run &now);

/// A table, with its heading:
///
///        total      old   change    count      old      p99      old  function
///       61.2ms   51.8ms     +18%    15204    15204   35.1us   21.3us  getCommand
std::string text_of(const std::vector<DiffRow> &rows);
std::string csv_of(const std::vector<DiffRow> &rows);
/// A JSON object a line.
std::string json_of(const std::vector<DiffRow> &rows);

/// Errors: usage: a claim that is not over figures of the files.
Status check_claim(const expect::Claim &claim);

/// A case for each row of both runs that a claim is of.
std::vector<expect::Case> judge(const std::vector<DiffRow> &rows, const Run &now,
                                const std::vector<expect::Claim> &claims);

} // namespace ktrace::compare
