// SchedRecords: when one task came on a processor and when it left it, by the kernel's own records
// (perf_event_open(2)).
//
// A tracer's view of a stop, and its end of one, are a wait in a run queue away from when the task left its
// processor and came on one again. The records have that to the nanosecond, by CLOCK_MONOTONIC, however busy the
// machine is. Neither root nor a hardware counter is needed, but kernel.perf_event_paranoid of at most 2.
//
// Invariants: (1) nothing is held open but the mapping of the ring, which keeps the event; (2) reading is done in
// memory, without a system call; (3) a record that is not there is reported as `lost`, never guessed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/ids.h"

namespace ktrace::os {

/// A stretch of time by the records.
struct Presence {
    std::uint64_t came_ns = 0; // when the task first came on a processor; 0: it did not
    std::uint64_t left_ns = 0; // when it last left one; 0: it did not, or is on one
    bool lost = false;         // records are missing
    bool is_known() const { return came_ns != 0 && left_ns >= came_ns && !lost; }
};

/// Adds the records at [from, to) of a ring to `presence`. Positions count all bytes ever written; the ring's size is a
/// power of two. A record of loss before the task came speaks of an earlier stretch. Pure.
void read_switches(std::span<const std::byte> ring, std::uint64_t from, std::uint64_t to, Presence &presence);

class SchedRecords {
  public:
    static constexpr std::size_t most =
        256; // tasks at once: the memory of rings is locked, and a user has little of it

    static bool has_room();
    /// Records a task from now on; nullptr: the kernel refuses, or there is no room.
    static std::unique_ptr<SchedRecords> open(Tid tid);
    ~SchedRecords();
    SchedRecords(const SchedRecords &) = delete;

    /// Adds what was recorded since the last look. Complete up to a stop of the task's once a ptrace request has been
    /// answered in that stop: the kernel answers none before the task has left its processor.
    void take(Presence &presence);
    /// Passes over what was recorded since the last look.
    void skip();

  private:
    explicit SchedRecords(void *mapping);

    void *mapping_;
    std::uint64_t read_ = 0;
};

} // namespace ktrace::os
