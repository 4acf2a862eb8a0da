// A thread that takes no signal: those that are sent to the process are for the threads that wait for them.
#pragma once

#include <csignal>
#include <thread>
#include <utility>

#include <pthread.h>

namespace ktrace {

/// Starts `run` in a thread with all signals blocked. Errors: std::system_error, where none is to be had.
template <typename Run> std::thread start_quiet_thread(Run run) {
    class Blocked {
      public:
        Blocked() {
            sigset_t all;
            sigfillset(&all);
            ::pthread_sigmask(SIG_SETMASK, &all, &before_); // a new thread has its maker's mask
        }
        ~Blocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
        Blocked(const Blocked &) = delete;

      private:
        sigset_t before_;
    };
    Blocked blocked;
    return std::thread(std::move(run));
}

} // namespace ktrace
