// The texts of a case that lines and reports share.
#pragma once

#include <string>

#include "expect/case.h"

namespace ktrace::expect {

/// `do_work`, `shop::Till::add(int)`.
std::string function_of(const Case &judged);

/// `p99 < 10ms`, of a row of --by `p99 < 10ms (tid=5)`.
std::string claim_of(const Case &judged);

/// `expected p99 < 10ms, saw 12.34 ms in 1200 calls`.
std::string judged_text(const Case &judged, bool exact_times);

} // namespace ktrace::expect
