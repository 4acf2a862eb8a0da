// Which tasks a Waiter asks next.
#include "os/tracee/wait_policy.h"

#include <string>

#include <gtest/gtest.h>

namespace ktrace::os {
namespace {

using Ask = WaitPolicy::Ask;
constexpr Tid busy{7}, other{8};

void hand_out(WaitPolicy &policy, Tid tid, unsigned times) {
    for (unsigned i = 0; i < times; i++) policy.hand_out(tid);
}

TEST(WaitPolicy, WhoseStopIsWaitedFor) {
    const struct {
        const char *what;
        unsigned in_a_row;
        std::size_t tasks;
        bool one_is_busy;
        Ask ask;
    } rows[] = {
        {"the first stops of a task among many", WaitPolicy::alone_after, WaitPolicy::many_tasks, true, Ask::all},
        {"it makes all of them", WaitPolicy::alone_after + 1, WaitPolicy::many_tasks, true, Ask::one},
        {"few tasks: a wait for all costs no more", WaitPolicy::alone_after + 1, WaitPolicy::many_tasks - 1, true,
         Ask::all},
        {"another one is busy, or its stop is known", WaitPolicy::alone_after + 1, WaitPolicy::many_tasks, false,
         Ask::all},
    };
    for (const auto &row : rows) {
        WaitPolicy policy;
        hand_out(policy, busy, row.in_a_row);
        EXPECT_EQ(policy.whom(row.tasks, row.one_is_busy), row.ask) << row.what;
    }
}

TEST(WaitPolicy, AStopOfAnotherTaskEndsTheWaitForOne) {
    WaitPolicy policy;
    hand_out(policy, busy, WaitPolicy::alone_after + 1);
    policy.hand_out(other);
    EXPECT_EQ(policy.whom(WaitPolicy::many_tasks, true), Ask::all);
}

TEST(WaitPolicy, WhileOneIsWaitedForTheOthersAreLookedAt) {
    WaitPolicy policy;
    hand_out(policy, busy, WaitPolicy::alone_after + 1);
    std::string asked;
    for (unsigned i = 0; i < 2 * WaitPolicy::look_at_all_every; i++)
        asked += policy.whom(WaitPolicy::many_tasks, true) == Ask::all_then_one ? 'A' : '.';
    EXPECT_EQ(asked, "...............A...............A");
}

TEST(WaitPolicy, AWaitForOneThatIsIdleEnds) {
    const struct {
        const char *what;
        unsigned ticks;
        bool at_tick;
        Ask ask;
    } rows[] = {
        {"one tick", 1, true, Ask::one},
        {"two ticks", 2, true, Ask::all},
        {"the task is gone", 1, false, Ask::all},
    };
    for (const auto &row : rows) {
        WaitPolicy policy;
        hand_out(policy, busy, WaitPolicy::alone_after + 1);
        for (unsigned i = 0; i < row.ticks; i++) policy.waited_for_one_in_vain(row.at_tick);
        EXPECT_EQ(policy.whom(WaitPolicy::many_tasks, true), row.ask) << row.what;
    }
    WaitPolicy policy; // a stop between two ticks: it is not idle
    hand_out(policy, busy, WaitPolicy::alone_after + 1);
    policy.waited_for_one_in_vain(true);
    policy.hand_out(busy);
    policy.waited_for_one_in_vain(true);
    EXPECT_EQ(policy.whom(WaitPolicy::many_tasks, true), Ask::one);
}

TEST(WaitPolicy, QuietTasksAreNotStarved) {
    WaitPolicy policy;
    std::string looks;
    for (unsigned i = 0; i < 2 * WaitPolicy::discover_every; i++) looks += policy.looks_at_quiet_one() ? 'L' : '.';
    EXPECT_EQ(looks, ".......L.......L");
}

TEST(WaitPolicy, EarlySweepsThatFindNothingBecomeFew) {
    WaitPolicy policy;
    for (unsigned i = 0; i < WaitPolicy::fruitless_limit; i++) {
        EXPECT_TRUE(policy.sweeps_early()) << i;
        policy.swept_early(false);
    }
    std::string sweeps;
    for (unsigned i = 0; i < 2 * WaitPolicy::sweep_early_every; i++) {
        policy.looks_at_quiet_one();
        sweeps += policy.sweeps_early() ? 'S' : '.';
    }
    EXPECT_EQ(sweeps, ".......S.......S");
    policy.swept_early(true); // there are others again
    policy.looks_at_quiet_one();
    EXPECT_TRUE(policy.sweeps_early());
}

TEST(WaitPolicy, TasksThatTakeTurnsAreWaitedForWithoutSweeps) {
    WaitPolicy policy;
    for (unsigned i = 0; i < WaitPolicy::single_limit; i++) {
        EXPECT_TRUE(policy.sweeps_before_wait(false)) << i;
        policy.swept_before_wait(1);
    }
    std::string sweeps;
    for (unsigned i = 0; i < WaitPolicy::sweep_every; i++) sweeps += policy.sweeps_before_wait(false) ? 'S' : '.';
    EXPECT_EQ(sweeps, "...............S");
    EXPECT_TRUE(policy.sweeps_before_wait(true)); // calls are timed: stops are to be seen when they happen
    policy.swept_before_wait(2);                  // two at a time
    EXPECT_TRUE(policy.sweeps_before_wait(false));
}

TEST(WaitPolicy, SpinsInVainEnd) {
    WaitPolicy policy;
    EXPECT_FALSE(policy.spins(true)); // not allowed
    policy.allow_spins(true);
    EXPECT_FALSE(policy.spins(false)); // none is busy, or several
    for (unsigned i = 0; i < WaitPolicy::vain_limit; i++) {
        EXPECT_TRUE(policy.spins(true)) << i;
        policy.spun(false);
    }
    EXPECT_FALSE(policy.spins(true));
    policy.allow_spins(true);
    for (unsigned i = 0; i < 2 * WaitPolicy::vain_limit; i++) {
        EXPECT_TRUE(policy.spins(true)) << i;
        policy.spun(i % 2 == 0);
    }
}

} // namespace
} // namespace ktrace::os
