// earlier: real-time signals that a task got too early. They came in the middle of a step, behind another one, and were
// sent again, to the end of their queue. Each of a number comes in its order (signal(7)), so at the stops of those that
// came meanwhile they are told first.
#pragma once

#include <csignal>
#include <vector>

namespace ktrace::engine {

/// Pure but for the number of this process, which stands in signals that it sends. Invariant: as many of a number wait
/// to be told as are in the queue in their place, and those that find no room there.
class Earlier {
  public:
    bool is_empty() const { return waiting_.empty(); }

    /// They come before all that are known and all that are queued.
    void add(const std::vector<siginfo_t> &signals);

    /// Those in whose place nothing is in the queue.
    std::vector<siginfo_t> missing() const;

    /// Something is in the queue in the place of one of them: its copy, or a signal with our name on it.
    void queued(const siginfo_t &copy) { queued_.push_back({copy, false}); }
    void queued_stand_in(int signal);

    /// What is told at the stop of a real-time signal.
    siginfo_t instead_of(const siginfo_t &arrived);

  private:
    struct Queued {
        siginfo_t info;
        bool stands_in;
    };

    bool take_from_queue(const siginfo_t &arrived);

    std::vector<siginfo_t> waiting_; // the first of a number is told first
    std::vector<Queued> queued_;
};

} // namespace ktrace::engine
