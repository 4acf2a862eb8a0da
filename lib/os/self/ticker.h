// Ticker: ends the waits of the thread that started it, again and again, for as long as it runs.
//
// A timer of the kernel's does it. The kernel refuses one while signals that are queued for processes of the same user
// have used up RLIMIT_SIGPENDING; then a thread does it, by a signal that needs no place in a queue.
//
// Invariant: its signals reach that thread alone, and none comes after stop().
#pragma once

#include <ctime>
#include <memory>

#include "base/ids.h"

namespace ktrace::os {

class Ticker {
  public:
    Ticker();
    ~Ticker();
    Ticker(const Ticker &) = delete;

    /// From now on a system call in which the calling thread waits ends with EINTR within a millisecond or so. False:
    /// the system has neither a timer nor a thread to give.
    bool start();
    void stop();
    bool running() const { return running_; }

    /// While it runs: makes a call that the kernel would make again by itself after a signal. False: a tick came before
    /// it was done (or just when it was), and `result` is not set.
    static bool until_tick(int (*call)(Tid), Tid task, int &result);

  private:
    class Beat;
    bool make();

    timer_t timer_{};
    bool has_timer_ = false, running_ = false;
    std::unique_ptr<Beat> beat_; // where there is no timer
};

} // namespace ktrace::os
