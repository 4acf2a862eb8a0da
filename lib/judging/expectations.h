// Expectations: from the claims of a command to its cases. Before the trace begins, probes of ktrace's own are
// registered beside the user's; when it has ended, their tables are judged.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "expect/case.h"
#include "judging/cases.h"
#include "judging/measures.h"
#include "trace/trace.h"

namespace ktrace::judging {

class Expectations {
  public:
    /// Registers what they need; the probes of the command are registered already. From then on it takes the records of
    /// its probes; it must outlive the trace's records. Errors: usage (no probe that a claim fits), and those of an
    /// EXPR or a NAME.
    static Result<std::unique_ptr<Expectations>> begin(trace::Trace &trace);

    /// All cases, with what was hit so far.
    std::vector<expect::Case> judge(trace::Trace &trace) const;

  private:
    struct Judged {
        expect::Claim claim;
        std::vector<Measured> probes;       // that the claim is of
        std::optional<expect::Order> order; // before, then
        Events events;                      // each, never
    };
    /// The purpose of the records of one of our probes.
    struct Use {
        Judged *judged = nullptr;
        std::optional<expect::Order::Name> name; // before, then
    };

    bool take(const trace::Trace &trace, std::span<const std::byte> record, const program::RecordHeader &header);
    Status prepare(trace::Trace &trace);
    Status prepare_order(trace::Trace &trace, Judged &judged);

    std::vector<std::unique_ptr<Judged>> all_;
    std::map<std::uint32_t, std::vector<Use>> uses_; // by number of our probe
};

/// The cases of a trace that never began.
std::vector<expect::Case> not_judged(const trace::Config &config, const std::string &reason);

} // namespace ktrace::judging
