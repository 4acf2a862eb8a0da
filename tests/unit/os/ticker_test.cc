// A ticker ends waits, by a timer of the kernel's, and by its thread where no timer is to be had; ktrace's other
// signals are noted nevertheless.
#include <cerrno>
#include <csignal>
#include <ctime>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/fd.h"
#include "os/self/own_signals.h"
#include "os/self/ticker.h"

namespace ktrace::test {
namespace {

/// While it is there, no signal can be queued for this process, so that no timer can be made.
class NoQueue {
  public:
    NoQueue() {
        EXPECT_EQ(::getrlimit(RLIMIT_SIGPENDING, &before_), 0);
        rlimit none{0, before_.rlim_max};
        EXPECT_EQ(::setrlimit(RLIMIT_SIGPENDING, &none), 0);
    }
    ~NoQueue() { ::setrlimit(RLIMIT_SIGPENDING, &before_); }
    NoQueue(const NoQueue &) = delete;

  private:
    rlimit before_{};
};

int wait_for_ever(Tid) {
    while (true) ::pause();
}

int answer(Tid task) { return task.value; }

void expect_ends_waits() {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    Fd reader(ends[0]), writer(ends[1]);
    char byte = 0;
    int result = 0;
    os::Ticker ticker;
    for (int round = 0; round < 3; round++) {
        ASSERT_TRUE(ticker.start());
        EXPECT_TRUE(ticker.running());
        for (int i = 0; i < 3; i++) {
            EXPECT_EQ(::read(reader.get(), &byte, 1), -1);
            EXPECT_EQ(errno, EINTR);
        }
        EXPECT_FALSE(os::Ticker::until_tick(wait_for_ever, Tid{1}, result));
        while (!os::Ticker::until_tick(answer, Tid{7}, result)) continue;
        EXPECT_EQ(result, 7);
        ticker.stop();
        EXPECT_FALSE(ticker.running());
    }
    // None comes now.
    ASSERT_TRUE(os::Ticker::until_tick(answer, Tid{8}, result));
    EXPECT_EQ(result, 8);
}

TEST(Ticker, EndsWaits) { expect_ends_waits(); }

TEST(Ticker, EndsWaitsWhereNoTimerIsToBeHad) {
    NoQueue none;
    timer_t timer{};
    sigevent event{};
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = SIGUSR1;
    ASSERT_EQ(::timer_create(CLOCK_MONOTONIC, &event, &timer), -1);
    EXPECT_EQ(errno, EAGAIN);
    expect_ends_waits();
}

int let_in_all(Tid) {
    sigset_t all;
    sigfillset(&all);
    ::sigprocmask(SIG_UNBLOCK, &all, nullptr);
    return 0;
}

/// The two arrive at once where a busy processor lets the thread wait for longer than a tick takes.
TEST(Ticker, KeepsNoSignalFromBeingNoted) {
    os::OwnSignals own;
    os::Ticker ticker;
    ASSERT_TRUE(ticker.start());
    int result = 0;
    for (int round = 0; round < 3; round++) {
        sigset_t all, pending;
        sigfillset(&all);
        ::sigprocmask(SIG_BLOCK, &all, nullptr);
        ::raise(SIGTERM);
        do ::sigpending(&pending);
        while (!sigismember(&pending, SIGRTMIN + 4)); // a tick
        EXPECT_FALSE(os::Ticker::until_tick(let_in_all, Tid{1}, result));
        let_in_all(Tid{1});
        EXPECT_EQ(own.take(), SIGTERM);
    }
    ticker.stop();
    own.restore();
}

} // namespace
} // namespace ktrace::test
