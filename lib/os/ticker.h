// Ticker: ends the waits of the thread that started it, again and again, for as long as it runs.
//
// Invariant: its signal reaches that thread alone.
#pragma once

#include <ctime>

#include "base/ids.h"

namespace ktrace::os {

class Ticker {
  public:
    Ticker() = default;
    ~Ticker();
    Ticker(const Ticker &) = delete;

    /// From now on a system call in which the calling thread waits ends with EINTR within a millisecond or so. False:
    /// the system has no timer to give.
    bool start();
    void stop();
    bool running() const { return running_; }

    /// While it runs: makes a call that the kernel would make again by itself after a signal. False: a tick came before
    /// it was done (or just when it was), and `result` is not set.
    static bool until_tick(int (*call)(Tid), Tid task, int &result);

  private:
    timer_t timer_{};
    bool made_ = false, running_ = false;
};

} // namespace ktrace::os
