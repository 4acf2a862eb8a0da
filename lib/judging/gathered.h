// Gathered: what is known of one function, or of all together, at the end, and the cases that it makes. No trace here.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "expect/case.h"
#include "output/table.h"

namespace ktrace::judging {

/// One function's table, with its rows by the texts of their keys. Its info and symbolizer outlive it.
class Rows {
  public:
    Rows(const program::LocationInfo &info, program::Table table, output::Symbolizer *symbolizer)
        : function_{&info, std::move(table)}, symbolizer_(symbolizer) {}

    const program::Table &table() const { return function_.table; }
    /// Of the first `parts` EXPRs.
    std::string key(const program::Row &row, std::size_t parts) const;
    /// `tid=5 args.op=READ`
    std::string shown_key(const program::Row &row) const;
    std::string json_key(const program::Row &row) const;

  private:
    output::FunctionTable function_;
    output::Symbolizer *symbolizer_;
};

/// How often an EXPR held.
struct Truth {
    std::uint64_t holds = 0, other = 0; // other: it does not hold, or could not be read
    bool fits = true;                   // false: it is known at no hit
};
using Truths = std::map<std::string, Truth>; // by the key of the row

/// By a table with the EXPR's truth as the last part of its key.
Truths truths_of(const Rows &rows);
/// Adds all rows to the one without a key.
void add(Truths &to, const Truths &more);

struct Gathered {
    expect::Case of; // its names
    Rows counts;
    std::optional<Rows> values;
    std::vector<Truths> truths; // of Claim::counted, or the one EXPR of each, never
    std::uint64_t lost = 0;     // hits
};

/// A case for each row; of no hit one. Claims that have a figure that is not known are left out.
std::vector<expect::Case> cases_of(const expect::Claim &claim, const Gathered &gathered);

} // namespace ktrace::judging
