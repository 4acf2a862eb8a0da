// The table of calls in flight, and how calls with one frame are distinguished.
#include "engine/space/returns.h"

#include <gtest/gtest.h>

namespace ktrace::engine {
namespace {

constexpr VirtAddr sp{0x7ffe1000}, back{0x401234}, elsewhere{0x409999};

class Collide : public testing::Test {
  protected:
    Collide() {
        f.at = VirtAddr{0x401000};
        g.at = VirtAddr{0x402000};
        older.site = &f;
        older.frame = {sp, back};
        older.hit = 7;
    }
    Collision judge(const Site &site, std::uint64_t hit, VirtAddr target, bool unwound,
                    VirtAddr return_address = back) {
        return judge_collision(older, site, hit, return_address, target, unwound);
    }
    Site f, g;
    Instance older;
};

TEST_F(Collide, TwoProbesOfOneHitShareACall) { EXPECT_EQ(judge(f, 7, f.at, false), Collision::same_call); }

TEST_F(Collide, AnotherReturnAddressMeansThatTheFrameIsGone) {
    EXPECT_EQ(judge(g, 8, g.at, false, elsewhere), Collision::abandoned);
}

TEST_F(Collide, AJumpToAnotherFunctionIsATailCall) { EXPECT_EQ(judge(g, 8, f.at, false), Collision::tail_call); }

TEST_F(Collide, TheSameFunctionAgainByItsOwnCallWasLeft) { EXPECT_EQ(judge(f, 8, f.at, false), Collision::abandoned); }

TEST_F(Collide, TheSameFunctionAgainByAnIndirectCallIsATailCallIfNothingWasThrown) {
    EXPECT_EQ(judge(f, 8, VirtAddr{}, false), Collision::tail_call);
}

TEST_F(Collide, AfterAThrowTheFunctionThatIsCalledAgainWasLeft) {
    EXPECT_EQ(judge(f, 8, VirtAddr{}, true), Collision::abandoned);
    EXPECT_EQ(judge(g, 8, g.at, true), Collision::abandoned);
}

TEST_F(Collide, AfterAThrowThatWasCaughtInsideATailCallIsStillOne) {
    EXPECT_EQ(judge(g, 8, f.at, true), Collision::tail_call);
}

TEST_F(Collide, ACallWhoseTrappedCallInstructionWasNotPassedAgainIsThereStill) {
    older.doubtful_at = &g;
    EXPECT_EQ(judge(f, 8, VirtAddr{}, true), Collision::tail_call);
    EXPECT_EQ(judge(g, 8, VirtAddr{}, true), Collision::tail_call);
    EXPECT_EQ(judge(f, 8, VirtAddr{}, true, elsewhere), Collision::abandoned);
}

TEST(Returns, KeepsChainsAndOwnersInOrder) {
    Returns returns;
    Task task;
    task.tid = Tid{5};
    Instance &outer = returns.begin(task, {sp + 64, back});
    Instance &first = returns.begin(task, {sp, back});
    Instance &second = returns.begin(task, {sp, back});
    EXPECT_EQ(returns.at(sp), &second);
    EXPECT_EQ(task.calls.youngest, &second);
    EXPECT_EQ(returns.in_flight(), 3U);
    returns.end(first, &task);
    EXPECT_EQ(returns.at(sp), &second);
    EXPECT_EQ(second.older_in_chain, nullptr);
    EXPECT_EQ(second.older_call, &outer);
    returns.end(second, &task);
    EXPECT_EQ(returns.at(sp), nullptr);
    EXPECT_EQ(task.calls.youngest, &outer);
    returns.end(outer, &task);
    EXPECT_EQ(task.calls.youngest, nullptr);
    EXPECT_EQ(returns.in_flight(), 0U);
}

TEST(Returns, MoveWithTheirStack) {
    Returns returns;
    Task task;
    Instance &below = returns.begin(task, {sp - 8, back});
    Instance &older = returns.begin(task, {sp, back});
    Instance &younger = returns.begin(task, {sp, back});
    Instance &top = returns.begin(task, {sp + 64, back});
    EXPECT_EQ(returns.within(sp, sp + 64), (std::vector<Instance *>{&younger, &older}));
    returns.shift(sp, sp + 64, 0x100000);
    EXPECT_EQ(returns.at(sp), nullptr);
    EXPECT_EQ(returns.at(sp - 8), &below);
    EXPECT_EQ(returns.at(sp + 64), &top);
    EXPECT_EQ(returns.at(sp + 0x100000), &younger);
    EXPECT_EQ(younger.older_in_chain, &older);
    returns.end(older, &task);
    returns.end(younger, &task);
    EXPECT_EQ(returns.at(sp + 0x100000), nullptr);
    EXPECT_EQ(returns.in_flight(), 2U);
}

} // namespace
} // namespace ktrace::engine
