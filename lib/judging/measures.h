// Measures: which probes of ktrace's own a claim needs beside each probe that it is of, and which tables of the user's
// own serve.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "expect/claim.h"
#include "probe/probe.h"
#include "trace/trace.h"

namespace ktrace::judging {

/// A probe of the user's that a claim is of, and the numbers of the probes whose tables it is judged by.
struct Measured {
    std::uint32_t probe = 0;
    std::uint32_t counts = 0;          // its rows, and their counts
    std::uint32_t values = 0;          // 0: no figure is of values
    std::vector<std::uint32_t> truths; // by one more key: does the EXPR hold? Of count(EXPR), each, never
    std::uint32_t event = 0;           // each, never: fires where the hit does not fit
};

/// Collects what is needed, and registers it: probes that need the same EXPR in one set, so that one that fits none of
/// them is an error.
class Measures {
  public:
    explicit Measures(trace::Trace &trace) : trace_(trace) {}

    /// True where the claim can be judged at this probe.
    static bool fits(const trace::Trace &trace, const expect::Claim &claim, std::uint32_t probe);

    /// The numbers are written when all is registered; `into` stays where it is until then.
    void want(const expect::Claim &claim, std::uint32_t probe, Measured &into);

    /// A probe that fires at the entry of hits of `probe`, for before and then. `spec`: at which of its places.
    void want_entries(const expect::Claim &claim, std::uint32_t probe, probe::Spec spec, std::uint32_t &into);

    /// Errors: as arming::register_probes.
    Status register_all();

  private:
    struct Wanted {
        probe::Probe probe;
        std::uint32_t beside = 0;          // the user's probe
        std::vector<std::uint32_t *> into; // its number goes there
    };
    struct Set {
        bool is_checked = false; // its EXPRs were, with the user's own probe
        std::map<std::string, Wanted> probes;
    };

    void add(const std::string &set, bool is_checked, std::uint32_t number, probe::Probe probe, std::uint32_t &into);
    probe::Probe beside(std::uint32_t number, probe::Actions actions, const std::string &quoted) const;
    void want_truth(const expect::Claim &claim, std::uint32_t probe, const std::string &expression,
                    std::uint32_t &into);
    void want_event(const expect::Claim &claim, std::uint32_t probe, std::uint32_t &into);

    trace::Trace &trace_;
    std::map<std::string, Set> sets_;
};

/// True where the filter of a probe is decided at the return.
bool decides_late(const probe::ProbeEntry &entry);

} // namespace ktrace::judging
