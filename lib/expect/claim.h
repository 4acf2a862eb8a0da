// Claim: the syntax of an expectation, as data.
//
//     EXPECTATION = [ WHOSE ": " ] CLAIM
//     CLAIM       = EXPR over figures | each(EXPR) | never(EXPR) | NAME before NAME | NAME then NAME
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "program/expr/expr.h"

namespace ktrace::expect {

struct Claim {
    enum class Kind : std::uint8_t { figures, each, never, before, then };
    Kind kind = Kind::figures;
    std::string given; // the whole expectation
    std::string whose; // a function, a SPEC, `all`; empty: there is none
    std::string text;  // without WHOSE
    // figures
    program::Tree tree;                // of count(EXPR) only a name of the same length
    std::vector<std::string> figures;  // that it is over, in their order: `p99`, `count(retval<0)`, `old.count`
    std::vector<std::string> stand_in; // the name in the tree of each of these
    std::vector<std::string> counted;  // the EXPRs of its count(EXPR)
    std::string of;                    // each, never: the EXPR
    std::string first, second;         // before, then

    bool is_of_order() const { return kind == Kind::before || kind == Kind::then; }
    bool is_of_all() const { return whose == "all"; }
    /// Some figure is of values, not a count.
    bool wants_values() const;
};

/// `old.` before a figure is another run's: of ktrace diff alone.
enum class Runs : std::uint8_t { one, two };

/// Errors: usage, pointing into `given`.
Result<Claim> parse_claim(std::string_view given, Runs runs);

/// `p99` of `p99` and of `old.p99`.
std::string_view base_of(std::string_view figure);

/// The number of a percentile's name, p1 to p99; 0: it is none.
int percentile_of(std::string_view figure);

} // namespace ktrace::expect
