// Cases: the tables of a claim's probes become figures, and these are judged, function by function and row by row.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "expect/case.h"
#include "expect/judge.h"
#include "judging/measures.h"
#include "report/tables.h"
#include "trace/trace.h"

namespace ktrace::judging {

/// The first hit that does not fit, as text, of each function that has one.
using Events = std::map<report::FunctionKey, std::string>;

/// A case for each function that the probes have found; with --by for each row.
std::vector<expect::Case> cases_of(trace::Trace &trace, const expect::Claim &claim, const std::vector<Measured> &probes,
                                   const Events &events);

/// One case, of all hits of these probes together.
std::vector<expect::Case> cases_of_all(trace::Trace &trace, const expect::Claim &claim,
                                       const std::vector<Measured> &probes, const Events &events);

/// One case, of before and then.
std::vector<expect::Case> cases_of_order(const expect::Claim &claim, const expect::Order &order);

} // namespace ktrace::judging
