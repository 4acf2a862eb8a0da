// Run: the rows of one run, from what it wrote with --format json.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>

#include "base/result.h"
#include "expect/judge.h"

namespace ktrace::compare {

/// Rows with the same key in two runs are compared.
struct RowKey {
    std::string module, symbol; // symbol: with its offset; of several of one name, which
    std::string kind;           // of the probe
    std::string key;            // of --by, as text; empty: none
    auto operator<=>(const RowKey &) const = default;
};

struct RunRow {
    expect::Figures figures; // count; of --stats total, self, avg, min, max, p50, p90, p99, too
    std::string key_json;    // empty: none
    bool has_values() const { return figures.contains("total"); }
};

struct Run {
    std::map<RowKey, RunRow> rows;
    std::map<std::pair<std::string, std::string>, std::uint64_t> lost; // hits, by module and symbol
};

/// `name`: of the file, for errors. Errors: refused: a line that is no JSON; there is no row.
Result<Run> parse_run(std::string_view text, const std::string &name);

/// Errors: not_found, denied, and as parse_run.
Result<Run> read_run(const std::string &path);

} // namespace ktrace::compare
