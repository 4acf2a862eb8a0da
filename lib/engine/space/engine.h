// Engine: all that the tracing thread holds: the Waiter, processes, tasks, and the records that are not yet printed.
// Passive; dispatch changes it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "engine/space/address_space_state.h"
#include "engine/space/clocks.h"
#include "engine/space/overhead.h"
#include "engine/space/task.h"
#include "engine/space/verdict_ring.h"
#include "os/self/processor_clock.h"
#include "os/tracee/wait.h"
#include "program/run/changes.h"
#include "program/run/record.h"
#include "recovery/ledger.h"
#include "symbols/unwind/unwind.h"
#include "target/process.h"

namespace ktrace::engine {

struct Process {
    target::Process target;
    std::shared_ptr<AddressSpaceState> space;
    bool silent = false;      // only kept clean (a vfork child that is not followed): its hits are not counted
    bool borrowed = false;    // runs in its parent's memory until it calls exec (vfork)
    bool had_threads = false; // it may end by one while another is in the middle of a call
    bool uses_sigtrap = true; // it catches, ignores or blocks SIGTRAP: one that is sent to it is not its end
    bool action_lost = false; // ktrace's action for SIGTRAP was reset by a trap in a task that blocks it
    std::uint64_t looked_at_signals = 0; // when (by count of stops) that was found out; it may change
};

/// Records, one behind the other, as eval wrote them.
class RecordQueue {
  public:
    /// Room for one more record; `commit` keeps it.
    std::span<std::byte> reserve();
    void commit(std::size_t size) { used_ += size; }
    std::span<const std::byte> bytes() const { return std::span(buffer_).first(used_); }
    std::size_t size() const { return used_; }
    void clear() { used_ = 0; }

  private:
    std::vector<std::byte> buffer_;
    std::size_t used_ = 0;
};

struct Engine {
    os::Waiter waiter;
    std::unordered_map<pid_t, std::unique_ptr<Process>> processes;
    std::unordered_map<pid_t, Task> tasks;
    RecordQueue records;
    symbols::Unwinder unwinder;
    os::Names names;
    bool watches = false; // somewhere there are watchpoints
    Tid unwatched;        // a task whose debug registers could not be set
    // Of the evaluation at hand: the registers that it sees (all where its program needs them, else the pc), and its
    // changes.
    arch::Host::Registers registers{};
    program::Changes changes;
    VerdictRing verdicts;
    Corrections corrections; // of durations
    Timed timed;
    recovery::Ledger *ledger = nullptr; // written before anything is planted; nullptr: this trace has no guardian
    std::unique_ptr<Overhead> overhead; // nullptr: the cost of probes is not measured
    std::vector<std::shared_ptr<Jumps>> jumps; // of all address spaces, until their counts are taken
    os::ProcessorClock processor_clock;        // of the agents' records
    AgentCosts agent_costs;
    std::map<program::Counters *, std::uint64_t> lost_calls; // of agents, in flight, as they were last counted
    std::uint64_t stops = 0;                                 // dispatched so far: the clock of retired slots and hits
    std::uint64_t events = 0;                                // records so far
    std::uint64_t max_events = ~std::uint64_t{0};
    bool mending = false; // remains of a killed ktrace are taken out: its single steps are dropped
    bool closing = false; // hits are no longer counted: the traps are being taken out

    Process *process_of(const Task &task) {
        auto found = processes.find(task.pid.value);
        return found == processes.end() ? nullptr : found->second.get();
    }
};

} // namespace ktrace::engine
