// Case: what became of one expectation at one function, or one row of --by, and how it is written: a line for people,
// JSON, JUnit, TAP.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "expect/judge.h"

namespace ktrace::expect {

struct Case {
    std::string given;    // the expectation
    std::string claim;    // without WHOSE
    std::string symbol;   // of the function, or the names that the claim is of
    std::string module;   // may be empty
    std::string which;    // one of several of this name; may be empty
    std::string key;      // of --by: `tid=5`; empty: none
    std::string key_json; // likewise
    enum class End : std::uint8_t { holds, broken, not_judged } end = End::holds;
    std::string reason; // why it does not hold, where that is not its figures; why it was not judged
    std::vector<std::pair<std::string, Figure>> seen;
    std::string seen_text; // of other claims than those over figures; empty: they are written from `seen`
    std::string event;     // of each and never: the first hit that does not fit, with the ends of its lines
    std::uint64_t hits = 0;
    bool is_of_calls = true; // else of hits
};

/// Of a claim, of what is named; it holds so far.
Case make_case(const Claim &claim, std::string symbol, std::string module = {});

/// The case of an expectation that could not be judged, and why.
Case not_judged(const std::string &given, std::string reason);

/// Sets `end`, `seen` and `hits` of a case by the figures. False: the claim is left out.
bool judge_case(Case &into, const Claim &claim, const Figures &figures);

/// `ktrace: do_work [worker]: expected p99 < 10ms, saw 12.34 ms in 1200 calls`, with its end, and the event behind it.
/// Nothing of a case that holds.
std::string line_of(const Case &judged, bool exact_times);

/// `ktrace: 2 of 3 expectations hold`, with its end. Nothing of none.
std::string count_text(const std::vector<Case> &cases);

bool all_hold(const std::vector<Case> &cases);

/// A JSON object, with the end of its line.
std::string json_of(const Case &judged);

/// Written to FILE.xml and FILE.tap. Times are as of time(3) and in ns.
struct ReportTime {
    std::int64_t began = 0;
    std::uint64_t took_ns = 0;
};
std::string junit_of(const std::vector<Case> &cases, ReportTime time);
std::string tap_of(const std::vector<Case> &cases);

/// True where the name ends in .xml or .tap.
bool is_report_name(std::string_view path);
/// Errors: denied, not_found, system.
Status write_report(const std::string &path, const std::vector<Case> &cases, ReportTime time);

} // namespace ktrace::expect
