// AgentThreads: the shared memory in which the agent of one address space (agent/layout.h) finds its threads and leaves
// records and calls. ktrace has it mapped, too.
//
// Invariants: a place belongs to one task, from when it was given until that task has ended and its records are read;
// two tasks that live with the same thread pointer have none; `head` is ktrace's alone: that of the place is only a
// copy for the thread. A place's calls are read and changed while its task stands, or when it has ended.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <sys/types.h>

#include "agent/layout.h"
#include "base/addr.h"
#include "base/fd.h"
#include "base/ids.h"
#include "base/result.h"

namespace ktrace::engine {

class AgentThreads {
  public:
    static const std::size_t size; // bytes
    /// Bytes of it that threads may touch before any has a place.
    static const std::size_t first_part;

    /// `file`: as it is mapped in the process at `address`. Errors: refused (it cannot be mapped here).
    static Result<std::shared_ptr<AgentThreads>> map(Fd file, VirtAddr address);
    ~AgentThreads();
    AgentThreads(const AgentThreads &) = delete;

    /// A table's row of the place's thread, and what was seen of it.
    struct Row {
        agent::Row *row = nullptr;               // nullptr: it has none yet
        bool is_refused = false;                 // nor will it have one
        agent::Row as{};                         // but for its sums, as it was given
        std::uint64_t records = 0;               // that were read instead, so far
        std::uint64_t least = ~std::uint64_t{0}; // of their values
        std::vector<std::uint32_t> counts;       // of its cells
        agent::Sums sums{};
    };
    struct Place {
        Pid pid;
        Tid tid;
        std::uint64_t thread_pointer = 0;
        std::uint64_t head = 0;                       // bytes that were read
        std::uint64_t cost_seen = 0, waited_seen = 0; // of agent::Thread::cost, waited
        std::uint64_t rang_at = 0;                    // of the stop at hand: the agent's Thread::rang_at
        agent::Thread *thread = nullptr;
        std::string name;                  // of the task, as it was last seen
        std::map<std::uint32_t, Row> rows; // by the probe's number in records
        std::size_t rows_size = 0;         // bytes
    };

    VirtAddr address() const { return address_; }
    /// nullptr: the task has none.
    Place *of(Tid tid);
    std::map<pid_t, Place> &all() { return places_; }
    /// A thread may be under calls that were not seen to begin (Thread::enclosed).
    void doubt_enclosures();

    /// Gives a task a place; its own stack lies in [stack_low, stack_high). False: there is none left, or the thread
    /// pointer is another one's, too.
    bool give(Pid pid, Tid tid, std::uint64_t thread_pointer, VirtAddr stack_low, VirtAddr stack_high);
    /// The task has this thread pointer from now on: it begins, and does not run yet. Another task that had it has
    /// ended, though that was perhaps not reported, or runs with the same one.
    void claim(Tid tid, std::uint64_t thread_pointer);
    /// The task has ended, and its records were read.
    void take_back(Tid tid);

    /// Gives a place's thread a row for a probe, as `as` is, with all cells 0. nullptr: there is no room.
    agent::Row *add_row(Place &place, std::uint32_t number, const agent::Row &as);
    /// As the process knows it.
    VirtAddr address_of(const agent::Row &row) const { return address_of(static_cast<const void *>(&row)); }

    /// The task's calls, the oldest first, and behind them one more entry, which no call has; empty: there are none.
    std::vector<agent::Call> calls_of(const Place &place) const;
    /// The oldest ones stay, so many.
    static void keep_calls(Place &place, std::size_t count);

    /// Calls that return to there are seen to, from now on or not any longer.
    void know_return(VirtAddr at);
    void forget_return(VirtAddr at);
    /// Calls that the agent has begun so far are not seen to return.
    void forget_all_calls();
    bool is_of_now(const agent::Call &call) const;

    /// A call that ktrace follows, with its return address at `place`, begins or ends.
    void add_place(VirtAddr place) { change_place(place, 1); }
    void drop_place(VirtAddr place) { change_place(place, ~std::uint32_t{0}); }

    /// See agent::Threads.
    void set_clock(const agent::ClockPoint &point, std::uint64_t ns_per_tick);
    /// ktrace is there, and hears bells.
    void show_alive();
    /// A thread whose ring is full waits for ktrace however long that does not run.
    void wait_for_ever() { longest_ns_ = ~std::uint64_t{0}; }
    void set_costs(std::uint64_t per_call, std::uint64_t per_hit);
    /// In ns, of a call, and of each hit and stop inside.
    void set_errors(std::uint64_t of_call, std::uint64_t of_hit, std::uint64_t of_stop);

    /// Memory that the agent may read: see agent::Ranges. `now`: of CLOCK_MONOTONIC.
    void show_readable(std::span<const agent::Range> ranges, std::uint64_t now_ns);
    /// As it was shown last.
    const std::vector<agent::Range> &readable() const { return readable_; }
    std::uint64_t listed_at_ns() const { return listed_at_ns_; }

  private:
    AgentThreads(Fd file, VirtAddr address, agent::Threads *shared);
    VirtAddr address_of(const void *shared) const;
    std::uint64_t room_for_row(std::size_t bytes);
    bool set_key(std::uint64_t thread_pointer, const agent::Thread &thread);
    void clear_key(std::uint64_t thread_pointer);
    void change_place(VirtAddr place, std::uint32_t by);

    Fd file_;
    VirtAddr address_;
    agent::Threads *shared_;
    std::map<pid_t, Place> places_;
    std::map<std::uint64_t, pid_t> contested_; // thread pointers, and the task that had each first
    std::vector<bool> used_;
    std::uint64_t rows_used_ = 0;                                 // bytes of agent::Threads::rows
    std::map<std::size_t, std::vector<std::uint64_t>> free_rows_; // in there, by their size
    std::vector<std::uint64_t> returns_; // as they are to be: the process may write to the shared ones
    std::vector<std::uint32_t> in_ktrace_;
    std::uint32_t generation_ = 0;
    std::vector<agent::Range> readable_;
    std::uint64_t listed_at_ns_ = 0;
    std::uint64_t longest_ns_; // agent::Threads::longest_ns
};

} // namespace ktrace::engine
