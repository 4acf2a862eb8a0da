// OwnSignals: the signals that end or interrupt tracing, and the timer of --duration, as flags that the loop reads.
//
// Invariants: a signal that arrives between the loop's look and its wait is not lost: until the flag has been taken, a
// timer raises SIGALRM again and again, which ends the wait. The actions of signals before that are remembered: a
// program that is started inherits that, and nothing of ours.
#pragma once

#include <csignal>
#include <cstdint>
#include <functional>

namespace ktrace::os {

class OwnSignals {
  public:
    /// Installs the handlers (SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGALRM, and of what would kill the process otherwise,
    /// `leaving`) and ignores SIGPIPE, for this process.
    OwnSignals();
    ~OwnSignals();
    OwnSignals(const OwnSignals &) = delete;

    /// Blocks (unblocks) the signals in the calling thread: only one thread takes them.
    static void block();
    static void unblock();

    /// A user that starts ktrace with this signal ignored wants it to be (nohup(1)). Not so SIGINT and SIGTERM: shells
    /// without job control start each background job with SIGINT ignored, and `kill -INT $!` is how a script ends a
    /// trace.
    static bool stays_ignored(int signal);

    /// From now on the death of the parent process is one of these signals, `abandoned`. Call it in the thread that
    /// lives longest. The signal kills a process without OwnSignals.
    static void on_death_of_parent();
    static constexpr int abandoned = 39; // a real-time signal that neither glibc nor Ticker uses
    /// It has come.
    bool is_abandoned() const;

    /// A function that ends the waits of the calling thread; any thread may call it.
    static std::function<void()> waker();

    /// Everything as it was when ktrace was started, in a forked child that is to become a program. Only makes system
    /// calls.
    void restore() const;

    /// Ends waits from now on when `ns` have passed; `time_is_up` is true from then on.
    void start_timer(std::uint64_t ns);
    void stop_timer();
    /// Also where a signal has come that is meant for ktrace alone, and would kill it: the limit of its processor time,
    /// say. The target is let go of first.
    bool time_is_up() const;

    /// The signal that came in, once; 0: none.
    int take();
    /// True where one has come in that has not been taken yet.
    static bool are_pending();

  private:
    static constexpr int changed[] = {SIGINT,  SIGTERM, SIGHUP,  SIGQUIT, SIGALRM, SIGPIPE,   SIGCHLD,
                                      SIGXCPU, SIGUSR1, SIGUSR2, SIGPROF, SIGPWR,  SIGVTALRM, abandoned};
    static constexpr std::size_t changed_count = sizeof changed / sizeof changed[0];

    struct sigaction before_[changed_count];
    sigset_t mask_before_;
    std::uint64_t deadline_ns_ = 0;
};

} // namespace ktrace::os
