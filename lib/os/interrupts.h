// Interrupts: the signals that end or interrupt tracing, and the timer of --duration, as flags that the loop reads.
//
// Invariant: a signal that arrives between the loop's look and its wait is not lost: until the flag has been taken, a
// timer raises SIGALRM again and again, which ends the wait.
#pragma once

#include <cstdint>

#include <csignal>

namespace ktrace::os {

class Interrupts {
  public:
    /// Installs the handlers (SIGINT, SIGTERM, SIGHUP, SIGALRM) and ignores SIGPIPE, for this process.
    Interrupts();
    ~Interrupts();
    Interrupts(const Interrupts &) = delete;

    /// Blocks (unblocks) the signals in the calling thread: only the tracing thread takes them.
    static void block();
    static void unblock();

    /// Ends waits from now on when `ns` have passed; `time_is_up` is true from then on.
    void start_timer(std::uint64_t ns);
    bool time_is_up() const;

    /// The signal that came in, once; 0: none.
    int take();

  private:
    std::uint64_t deadline_ns_ = 0;
};

} // namespace ktrace::os
