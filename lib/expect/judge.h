// Judge: does a claim hold, by the figures of one function? And the order of hits in each thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "expect/claim.h"

namespace ktrace::expect {

struct Figure {
    double value = 0;
    double error = 0; // of a time; 0: not known
    bool is_time = false;
    double judged() const { return value > error ? value : error; }
};

/// By their names in Claim::figures.
using Figures = std::map<std::string, Figure>;

enum class Verdict : std::uint8_t { holds, broken, left_out }; // left_out: a figure is not known

/// Numbers are computed with their fractions, times are ns.
Verdict judge(const Claim &claim, const Figures &figures);

/// Follows `first before second` and `first then second`, by threads.
class Order {
  public:
    /// `is_sorted`: the hits of a thread come in the order of their entries. Then what fits is not kept.
    Order(Claim::Kind kind, bool is_sorted) : kind_(kind), is_sorted_(is_sorted) {}

    enum class Name : std::uint8_t { first, second };
    using Thread = std::pair<std::int32_t, std::int32_t>; // process and thread

    /// A hit whose entry was at `entry_ns`.
    void add(Thread thread, std::uint64_t entry_ns, Name name);

    struct Break {
        Thread thread;
        std::uint64_t entry_ns = 0; // of the hit that does not fit
    };
    /// The hits that do not fit, all of them. `has_ended`: of a thread.
    template <class HasEnded> std::vector<Break> breaks(HasEnded has_ended) const {
        std::vector<Break> found;
        for (const auto &[thread, hits] : hits_) find(found, thread, hits, has_ended(thread));
        return found;
    }

  private:
    using Hits = std::vector<std::pair<std::uint64_t, Name>>;
    void find(std::vector<Break> &found, Thread thread, Hits hits, bool has_ended) const;

    Claim::Kind kind_;
    bool is_sorted_;
    std::map<Thread, Hits> hits_;
};

} // namespace ktrace::expect
