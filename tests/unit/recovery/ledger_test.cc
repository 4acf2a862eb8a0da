#include "recovery/ledger.h"

#include <gtest/gtest.h>

using namespace ktrace;
using recovery::Ledger;
using recovery::Owed;

namespace {

Owed owed(pid_t pid, pid_t tid, std::uint64_t mask, int held = 0) {
    Owed made{};
    made.pid = Pid{pid};
    made.tid = Tid{tid};
    made.has_mask = true;
    made.mask = mask;
    made.has_signal = held != 0;
    made.held.si_signo = held;
    return made;
}

TEST(Ledger, TellsWhatTheTasksOfAProcessAreOwed) {
    Ledger ledger;
    EXPECT_TRUE(ledger.owed(Pid{1}).empty());
    ledger.owe(owed(1, 10, 5, SIGALRM));
    ledger.owe(owed(2, 20, 6));
    ledger.owe(owed(1, 11, 7, SIGINT));
    auto first = ledger.owed(Pid{1});
    ASSERT_EQ(first.size(), 2U);
    EXPECT_EQ(first[0].tid, Tid{10});
    EXPECT_EQ(first[0].held.si_signo, SIGALRM);
    EXPECT_EQ(first[1].held.si_signo, SIGINT);
    ASSERT_EQ(ledger.owed(Pid{2}).size(), 1U);
    EXPECT_EQ(ledger.owed(Pid{2})[0].mask, 6U);
}

TEST(Ledger, TheLastWordOnATaskCounts) {
    Ledger ledger;
    ledger.owe(owed(1, 10, 5, SIGALRM));
    ledger.owe(owed(1, 10, 5));
    ASSERT_EQ(ledger.owed(Pid{1}).size(), 1U);
    EXPECT_FALSE(ledger.owed(Pid{1})[0].has_signal);
    ledger.settle(Tid{10});
    EXPECT_TRUE(ledger.owed(Pid{1}).empty());
    ledger.settle(Tid{11}); // of whom nothing was said
}

TEST(Ledger, APlaceIsUsedAgain) {
    Ledger ledger;
    for (pid_t tid = 1; tid <= 100'000; tid++) {
        ledger.owe(owed(1, tid, 0));
        ledger.settle(Tid{tid});
    }
    ledger.owe(owed(1, 7, 3));
    ASSERT_EQ(ledger.owed(Pid{1}).size(), 1U);
    EXPECT_EQ(ledger.owed(Pid{1})[0].mask, 3U);
}

TEST(Ledger, NothingIsOwedToAProcessThatHasEnded) {
    Ledger ledger;
    ledger.owe(owed(1, 10, 0));
    ledger.owe(owed(2, 20, 0, {}));
    ledger.drop(Pid{1});
    EXPECT_TRUE(ledger.owed(Pid{1}).empty());
    EXPECT_EQ(ledger.owed(Pid{2}).size(), 1U);
    ledger.clear();
    EXPECT_TRUE(ledger.owed(Pid{2}).empty());
}

} // namespace
