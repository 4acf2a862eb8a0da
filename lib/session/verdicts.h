// Verdicts: what becomes of the expectations of a trace: lines, JSON, a report, the exit status.
#pragma once

#include <memory>
#include <vector>

#include "expect/case.h"
#include "judging/expectations.h"
#include "trace/trace.h"

namespace ktrace::session {

class Verdicts {
  public:
    explicit Verdicts(const trace::Config &config);

    /// Before the trace touches anything, behind the user's probes. Errors: as judging::Expectations::begin.
    Status begin(trace::Trace &trace);
    /// The trace has ended: judges, and writes the JSON objects where that is the format.
    void judge(trace::Trace &trace);
    /// Behind the summary: the lines and the report. False: some expectation does not hold. A report that cannot be
    /// written is complained of, and is trouble of the trace's.
    bool conclude(trace::Trace &trace);
    /// The trace never began, or did not come to its end: the report says so, where it can be written.
    void give_up(const trace::Voice &voice);

  private:
    Status write_report() const;

    const trace::Config &config_;
    std::int64_t began_;                                  // time(3)
    std::uint64_t began_ns_;                              // CLOCK_MONOTONIC
    std::unique_ptr<judging::Expectations> expectations_; // nullptr: there are none
    std::vector<expect::Case> cases_;
};

} // namespace ktrace::session
