// Registry: the probes of a trace by number: the SPEC, whether it is on, and the options that it shares with the others
// of its command. Arming them is the business of arming/.
//
// Invariants: numbers count from 1 in the order in which the SPECs were given, without those of ours, which have a
// range of their own; a number that was shown is never given to another probe; a removed probe stays known,
// since its counts are shown at the end.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "probe/probe.h"
#include "program/tables/state.h"

namespace ktrace::probe {

/// The probes of one command line: its options apply to all of them that have none of their own.
struct ProbeSet {
    Actions actions;
    bool allow_missing = false;
    bool hidden = false;   // ours, beside another set's: neither listed nor counted
    bool encloses = false; // of these, one that follows the calls of another set's `inside`
    bool compiled = false; // an EXPR that fits none of its probes would have been refused by now
};

/// A probe of the trace, with what became of it.
struct ProbeEntry {
    Probe probe;
    std::shared_ptr<ProbeSet> set;
    program::ProbeStatePointer state;
    bool ready = false;       // registered whole; before that, and after it was removed, none of its hits is seen
    bool removed = false;     // or never registered whole
    bool placed = false;      // found in some process, at some time
    bool expected = false;    // it can be placed in some process, or waits for its module there
    std::uint32_t beside = 0; // of a hidden one: number of the probe that it measures for, and is on with; 0: of none
    std::uint32_t inside = 0; // number of the probe that follows the calls of Actions::inside; 0: there is none
    std::string why_nowhere;  // where it was looked for last and not found, which its set allows: why

    const Actions &actions() const { return probe.own ? probe.own->actions : set->actions; }
};

class Registry {
  public:
    /// Numbers the probes of a set. They are not ready yet.
    std::vector<std::uint32_t> enter(const std::shared_ptr<ProbeSet> &set, const std::vector<Probe> &probes);
    /// They could not be registered. Their numbers are free again where no later ones have been given out.
    void take_back(const std::vector<std::uint32_t> &numbers);

    ProbeEntry &at(std::uint32_t number) { return *entry(number); }
    const ProbeEntry &at(std::uint32_t number) const { return *entry(number); }

    /// Numbers of those that are registered or about to be, ours last.
    std::vector<std::uint32_t> present() const;
    /// Of these, those that users know of.
    std::vector<std::uint32_t> shown() const;
    /// The highest number of a user's so far.
    std::uint32_t last() const { return static_cast<std::uint32_t>(all_.size()); }

    /// The probes that `name` means: a number, or a SPEC as it was given (all of that text). Errors: not_found.
    Result<std::vector<std::uint32_t>> named(std::string_view name) const;

    /// These, and ours that measure for them.
    std::vector<std::uint32_t> with_those_beside(std::vector<std::uint32_t> numbers) const;

    /// True where the probe's hits are to be seen.
    bool is_on(std::uint32_t number) const;
    /// The switch in front of all of them (ctl on, ctl off). It changes none of their own.
    void switch_all(bool on) { all_on_ = on; }
    bool all_on() const { return all_on_; }
    /// Tables of the probes to come keep their recent hits apart.
    void keep_recent() { keeps_recent_ = true; }

  private:
    static constexpr std::uint32_t first_of_ours = std::uint32_t{1} << 31;
    const std::unique_ptr<ProbeEntry> &entry(std::uint32_t number) const {
        return number >= first_of_ours ? ours_.at(number - first_of_ours) : all_.at(number - 1);
    }

    std::vector<std::unique_ptr<ProbeEntry>> all_;  // [number - 1]
    std::vector<std::unique_ptr<ProbeEntry>> ours_; // of hidden sets, [number - first_of_ours]
    bool all_on_ = true, keeps_recent_ = false;
    std::shared_ptr<program::TableMemory> table_memory_ = std::make_shared<program::TableMemory>();
};

} // namespace ktrace::probe
