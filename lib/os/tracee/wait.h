// The one door for waiting. A Waiter finds out which task has stopped or ended, and answers in the order in which it
// saw them, so that no task is starved by others that hit more often.
//
// Invariants: (1) a signal-delivery stop is only peeked at (WNOWAIT), never consumed: the kernel forgets a task's
// pending trap when its stop is consumed, and a tracer killed between that and the new pc would leave the task in the
// middle of an instruction; (2) exits are consumed at once (an exec of another thread waits for them), event stops too
// (they hold nothing that could be lost); (3) a stop that was handed out is not looked at again before the task was
// resumed: the caller says `resumed`; (4) while one of very many tasks is waited for by name (a wait for all walks
// all), a ticker ends the wait, so that no other one waits for long.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/ids.h"
#include "os/self/ticker.h"
#include "os/tracee/syscall_user_dispatch.h"
#include "os/tracee/wait_policy.h"

namespace ktrace::os {

/// A status word, decoded.
struct Stop {
    enum class Kind : std::uint8_t {
        signal,  // signal-delivery stop: `signal`; our traps and steps are SIGTRAPs
        syscall, // entry or exit of a system call
        group,   // group stop (job control): `signal`
        started, // a new task's first stop, or the answer to an interrupt
        clone,
        fork,
        vfork,
        exec,   // events of the parent (exec: of the new leader)
        exited, // `status`: exit code
        killed, // `status`: signal
    };
    Tid tid;
    Kind kind = Kind::signal;
    int signal = 0;
    int status = 0;
    std::uint64_t seen_ns = 0; // CLOCK_MONOTONIC, when the stop was first seen; 0 unless look_often
};

/// Decodes what waitid says of a tracee. Pure.
Stop decode_stop(Tid tid, int code, int status);

class Waiter {
  public:
    enum class Block : std::uint8_t { no, yes, briefly };

    /// The next stop or end of any tracee. With Block::yes waits for one, with Block::briefly a millisecond at most;
    /// returns nothing when a signal of our own came
    /// in, or no tracee is left (`none_left`).
    std::optional<Stop> next(Block block);
    bool none_left() const { return none_left_; }

    /// Waits for this one task alone (which was resumed or interrupted): for the short dialogues of injection. Nothing
    /// where the task is gone: without a trace, or as a leader whose end is reported only after that of its threads.
    /// That is found out, and ends of other tasks are taken meanwhile (an exec, or the end of the process, may wait for
    /// them), again and again. With Block::briefly a signal ends the wait (errno: EINTR), a Ticker's say; with
    /// Block::no there is none. `at_tick` is called every millisecond or so of a wait with Block::yes, and may
    /// interrupt the task.
    std::optional<Stop> next_of(Tid tid, Block block = Block::yes, const std::function<void()> &at_tick = {});

    /// True where the task stands at a stop already, or has ended, whether that was handed out or not: an interrupt now
    /// would make it stop once more after that.
    bool has_news_of(Tid tid);

    /// Takes the ends, and queues the stops, of all tasks but one, which a task in the kernel may be waiting for.
    void look_at_others(Tid but);

    /// Hands back a stop that was not the one waited for: the next one that `next` answers.
    void put_back(const Stop &stop) { queue_.push_front(stop); }

    /// The task has been resumed: its next stop is news.
    void resumed(Tid tid);
    /// A task that is traced from now on; `forget` when it has ended, or was let go.
    void watch(Tid tid);
    void forget(Tid tid);

    /// With `often`, tasks that stopped recently are looked at between any two stops, so that seen_ns is close to the
    /// truth even when others are served first (return probes measure durations by it).
    void look_often(bool often) { often_ = often; }
    bool looks_often() const { return often_; }

    /// With `spin`, `next` asks again and again for a moment before it blocks, where one task alone is busy: for one
    /// that runs on another processor, to be woken takes longer than what it does between two stops. It stops asking so
    /// where that was in vain a few times, until it is asked again.
    void spin(bool spin) { policy_.allow_spins(spin); }

    /// The observer that is called when a task that is stopped is to make its system calls in another way than it
    /// wants. nullptr: there is none.
    void set_dispatch_keeper(DispatchKeeper *keeper) { dispatch_keeper_ = keeper; }
    DispatchKeeper *dispatch_keeper() const { return dispatch_keeper_; }

    /// True when a stop is known that was not handed out yet.
    bool pending() const { return !queue_.empty(); }

  private:
    struct Known {
        Tid tid;
        bool held = false;   // its stop was seen, and it has not been resumed
        bool recent = false; // in recent_
        unsigned quiet = 0;  // sweeps since its last stop
    };
    std::optional<Stop> poll(int id_type, pid_t id, bool block);
    Known &known(Tid tid);
    void note(Known &task, const Stop &stop);
    void sweep();
    void sweep_early();
    void sweep_if_worthwhile();
    void ask_one_more();
    void ask_for_a_moment();
    Known *only_busy_one() const;
    Known *waited_for_alone();

    DispatchKeeper *dispatch_keeper_ = nullptr;
    std::deque<Stop> queue_; // seen, not handed out
    std::unordered_map<pid_t, std::unique_ptr<Known>> known_;
    std::vector<Known *> order_;  // all known ones
    std::vector<Known *> recent_; // those that stopped lately
    Known *last_ = nullptr;       // the one looked up last: often the next one, too
    std::size_t cursor_ = 0;      // in order_: whom to ask next while the busy ones never pause
    bool often_ = false;
    bool none_left_ = false;
    WaitPolicy policy_;
    Ticker ticker_;
};

} // namespace ktrace::os
