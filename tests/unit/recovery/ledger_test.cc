#include "recovery/ledger.h"

#include <gtest/gtest.h>

using namespace ktrace;
using recovery::Ledger;
using recovery::SavedState;

namespace {

SavedState saved(pid_t pid, pid_t tid, std::uint64_t mask, int held = 0) {
    SavedState made{};
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
    EXPECT_TRUE(ledger.saved(Pid{1}).empty());
    ledger.save(saved(1, 10, 5, SIGALRM));
    ledger.save(saved(2, 20, 6));
    ledger.save(saved(1, 11, 7, SIGINT));
    auto first = ledger.saved(Pid{1});
    ASSERT_EQ(first.size(), 2U);
    EXPECT_EQ(first[0].tid, Tid{10});
    EXPECT_EQ(first[0].held.si_signo, SIGALRM);
    EXPECT_EQ(first[1].held.si_signo, SIGINT);
    ASSERT_EQ(ledger.saved(Pid{2}).size(), 1U);
    EXPECT_EQ(ledger.saved(Pid{2})[0].mask, 6U);
}

TEST(Ledger, TheLastWordOnATaskCounts) {
    Ledger ledger;
    ledger.save(saved(1, 10, 5, SIGALRM));
    ledger.save(saved(1, 10, 5));
    ASSERT_EQ(ledger.saved(Pid{1}).size(), 1U);
    EXPECT_FALSE(ledger.saved(Pid{1})[0].has_signal);
    ledger.forget(Tid{10});
    EXPECT_TRUE(ledger.saved(Pid{1}).empty());
    ledger.forget(Tid{11}); // of whom nothing was said
}

TEST(Ledger, APlaceIsUsedAgain) {
    Ledger ledger;
    for (pid_t tid = 1; tid <= 100'000; tid++) {
        ledger.save(saved(1, tid, 0));
        ledger.forget(Tid{tid});
    }
    ledger.save(saved(1, 7, 3));
    ASSERT_EQ(ledger.saved(Pid{1}).size(), 1U);
    EXPECT_EQ(ledger.saved(Pid{1})[0].mask, 3U);
}

TEST(Ledger, NothingIsOwedToAProcessThatHasEnded) {
    Ledger ledger;
    ledger.save(saved(1, 10, 0));
    ledger.save(saved(2, 20, 0, {}));
    ledger.drop(Pid{1});
    EXPECT_TRUE(ledger.saved(Pid{1}).empty());
    EXPECT_EQ(ledger.saved(Pid{2}).size(), 1U);
    ledger.clear();
    EXPECT_TRUE(ledger.saved(Pid{2}).empty());
}

} // namespace
