// Clocks: they measure how long a call of a return probe took, without the time that ktrace took from its thread.
//
// There are two. The kernel's records show when the thread came on a processor and left it (os/facts/sched_records.h).
// By them a call takes the time from the thread's return from one stop to its leaving for the next: sleep and other
// threads' turns in there are the program's own. The time in which the thread was stopped, seen or not yet, or waited
// for a processor after its resume is ktrace's, and not in it. Where there are no records, ktrace's own clock runs from
// the moment before a resume to the first sight of the next stop; on a busy machine those waits are in it.
//
// Invariant: a call is timed by one clock from its entry to its return.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "os/facts/sched_records.h"
#include "program/run/duration.h"

namespace ktrace::engine {

enum class Clock : std::uint8_t {
    switches, // the kernel's records
    stops,    // ktrace's own
};

/// A task's clocks so far. `Marks` of a call's entry and of its return are compared.
struct Marks {
    std::uint64_t stops = 0;      // seen so far
    std::uint64_t steps = 0;      // resumes by a single step so far
    std::uint64_t stopped_ns = 0; // spent stopped so far, while calls are in flight
    std::uint64_t ran_ns = 0;     // by the records: spent between stops
    std::uint64_t unknown = 0;    // times between stops without records
};

/// A task's clocks.
struct TaskClock {
    Marks now;
    os::Presence at_hand;                       // since its last resume
    std::unique_ptr<os::SchedRecords> switches; // nullptr: not recorded
    bool was_refused = false;                   // by the kernel: it is not asked again
};

/// A call's time before the correction is subtracted from it.
struct CallTime {
    std::uint64_t stops_ns = 0;                // by ktrace's own clock
    std::optional<std::uint64_t> switches_ns;  // by the kernel's records, where all are there
    std::uint64_t stops_inside = 0, steps = 0; // the resume at its entry is none of them
};

/// The times that are subtracted from durations besides the stops that are seen, measured at start.
struct Correction {
    std::uint64_t per_call_ns = 0;    // from the resume at the entry to the return's stop
    std::uint64_t per_stop_ns = 0;    // for each stop in between: on the way into it and out of it
    std::uint64_t per_step_ns = 0;    // for each of them that a single step ended, besides
    std::uint64_t resolution_ns = 0;  // the measured difference between calls that take the same time
    std::uint64_t rare_ns = 0;        // one in a hundred was measured longer by more than so much
    program::TimeErrors of_call = {}; // how long calls of an empty function seem to take after the correction
    program::TimeErrors of_stop = {}; // and how much longer with a stop inside
};

/// The same of calls that the agent follows (lib/agent), measured at start.
struct AgentCosts {
    std::uint64_t per_call = 0, per_hit = 0; // ticks of the processor's counter: see agent::Threads
    program::TimeErrors of_call = {}, of_hit = {};
    bool is_known() const { return per_call != 0; }
};

/// By clock, and by where the task runs: a task on another processor than the tracing thread is waited for, and woken,
/// in other ways.
struct Corrections {
    struct Pair {
        Correction together, apart;
    };
    Pair by_switches, by_stops;
    bool is_apart = false; // the task that stops

    const Pair &of(Clock clock) const { return clock == Clock::switches ? by_switches : by_stops; }
    const Correction &present(Clock clock) const { return is_apart ? of(clock).apart : of(clock).together; }
    /// Nothing was measured yet.
    bool is_empty() const { return by_stops.together.per_stop_ns == 0; }
};

/// The durations so far, and the calls that they are of.
struct Timed {
    /// By where they returned, as Corrections has it.
    struct Calls {
        std::uint64_t together = 0, apart = 0;
        std::uint64_t all() const { return together + apart; }
    };
    Calls by_switches, by_stops;
    CallTime last; // of the call that ended last
};

} // namespace ktrace::engine
