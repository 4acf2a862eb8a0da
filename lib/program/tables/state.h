// ProbeState: what a location of a probe keeps while it is traced: which hits are selected (shared by all locations of
// the probe), and its table.
//
// Invariants: one tracing thread uses it, without locks. The selection counts only hits that passed the filters, over
// all threads and locations, and for a given seed is the same in every run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "program/run/program.h"
#include "program/tables/aggregate.h"

namespace ktrace::program {

/// --every, --chance, --seed, --first.
struct Selection {
    std::uint64_t every = 1; // 0 counts as 1
    double chance = 1.0;
    std::uint64_t seed = 0;
    std::optional<std::uint64_t> first = {};

    bool selects_all() const { return every <= 1 && chance >= 1.0 && !first; }
};

/// Decides for one hit after the other, in this order: each Nth of all; of these by chance; of these the first N.
class Selector {
  public:
    explicit Selector(const Selection &selection);
    bool next();
    /// True when no further hit will ever be selected (--first is used up).
    bool exhausted() const { return selection_.first && selected_ >= *selection_.first; }

  private:
    std::uint64_t random();

    Selection selection_;
    std::uint64_t seen_ = 0, selected_ = 0;
    std::uint64_t random_state_;
};

struct ProbeState {
    /// `memory`: that of all tables of the trace.
    ProbeState(const Selection &selection, Table::Kind kind, std::vector<std::string> by, std::string of,
               std::shared_ptr<TableMemory> memory)
        : selector(std::make_shared<Selector>(selection)),
          aggregation(kind, std::move(by), std::move(of), std::move(memory)) {}
    /// That of another location of the same probe: selects with it, and has a table of its own.
    explicit ProbeState(const ProbeState &of_probe)
        : selector(of_probe.selector), aggregation(of_probe.aggregation.empty_copy()), is_ours(of_probe.is_ours) {
        if (of_probe.aggregation.keeps_recent()) aggregation.keep_recent();
    }

    std::shared_ptr<Selector> selector; // the probe's: its hits are counted over all threads and locations
    Aggregation aggregation;            // the location's
    bool is_ours = false;               // of no probe of the user's: its hits are no events of --max-events
};

using ProbeStatePointer = std::unique_ptr<ProbeState, ProbeStateDeleter>;

} // namespace ktrace::program
