// How long a call took: by which clock, and what is subtracted.
#include "engine/calls/timing.h"

#include <gtest/gtest.h>

#include "engine/eval/hit_handler.h"
#include "engine/space/engine.h"
#include "engine/space/returns.h"

namespace ktrace::engine {
namespace {

/// A consumer that asks how long calls take.
class Asks : public HitHandler {
    bool pre(HandlerHit &) override { return false; }
    bool has_post() const override { return false; }
    void post(HandlerHit &) override {}
    void entry(HandlerHit &) override {}
    std::optional<std::uint64_t> call(HandlerHit &, VirtAddr) override { return {}; }
    void missed() override {}
    void ret(HandlerHit &, std::uint64_t, std::uint64_t) override {}
    void dropped(std::uint64_t) override {}
    bool has_fault() const override { return false; }
    bool fault(HandlerHit &, int) override { return false; }
};

/// A call that began at 10,000 by ktrace's clock, was stopped twice inside, once for a single step, and has ended.
class Duration : public testing::Test {
  protected:
    Duration() {
        engine.waiter.look_often(true);
        engine.corrections.by_switches.together = {100, 10, 1, 1};
        engine.corrections.by_stops.together = {200, 20, 2, 1};
        attachment.kind = Attachment::Kind::ret;
        attachment.handler = &asks;
        task.tid = call.owner = Tid{7};
        call.attachment = &attachment;
        call.start_ns = 10'000;
        call.is_recorded = true;
        call.marks = {40, 4, 500, 6000, 3};
        task.clock.now = {43, 5, 1500, 6300, 3}; // 1000 ns stopped; 300 ns between the stops before the last
        task.clock.at_hand.came_ns = 20'000;
        task.clock.at_hand.left_ns = 20'400;
    }
    std::uint64_t took(std::uint64_t seen_ns = 13'000) { return duration(engine, task, call, seen_ns).ns; }
    static constexpr std::uint64_t by_switches = 700 - 100 - 2 * 10 - 1, by_stops = 2000 - 200 - 2 * 20 - 2;

    Engine engine;
    Asks asks;
    Attachment attachment;
    Task task;
    Instance call;
};

TEST_F(Duration, IsWhatTheThreadRanBetweenStops) {
    EXPECT_EQ(took(), by_switches);
    EXPECT_EQ(engine.timed.by_switches.together, 1U);
    EXPECT_EQ(engine.timed.by_stops.all(), 0U);
}

TEST_F(Duration, IsByKtracesClockWhereTheCallBeganUnrecorded) {
    call.is_recorded = false;
    EXPECT_EQ(took(), by_stops);
    EXPECT_EQ(engine.timed.by_stops.together, 1U);
}

TEST_F(Duration, IsByKtracesClockWhereRecordsAreMissing) {
    task.clock.now.unknown++;
    EXPECT_EQ(took(), by_stops);
}

TEST_F(Duration, IsByKtracesClockWhereTheLastRecordsAreMissing) {
    task.clock.at_hand.lost = true;
    EXPECT_EQ(took(), by_stops);
    task.clock.at_hand = {};
    EXPECT_EQ(took(), by_stops);
}

TEST_F(Duration, KnowsNoStopsOfACallThatAnotherThreadEnds) {
    call.owner = Tid{8};
    EXPECT_EQ(took(), 3000U - 200);
}

TEST_F(Duration, IsNeverBelowZero) {
    engine.corrections.by_switches.together.per_call_ns = 1'000'000;
    EXPECT_EQ(took(), 0U);
    call.is_recorded = false;
    EXPECT_EQ(took(9000), 0U);
}

TEST_F(Duration, HasConstantsForAnotherProcessor) {
    engine.corrections.by_switches.apart = {300, 10, 1, 1};
    engine.corrections.is_apart = true;
    EXPECT_EQ(took(), by_switches - 200);
    EXPECT_EQ(engine.timed.by_switches.apart, 1U);
    EXPECT_EQ(engine.timed.by_switches.together, 0U);
}

TEST_F(Duration, IsNotLookedAtWhereNobodyAsks) {
    attachment.handler = nullptr;
    EXPECT_EQ(took(), 0U);
    EXPECT_EQ(engine.timed.by_switches.all() + engine.timed.by_stops.all(), 0U);
}

TEST_F(Duration, HasAnErrorThatGrowsWithStopsInside) {
    engine.corrections.by_switches.together.of_call = {50, 40, 150, 900};
    engine.corrections.by_switches.together.of_stop = {10, 0, 30, 100};
    const program::Duration took = duration(engine, task, call, 13'000);
    EXPECT_EQ(took.taken_ns, 100U + 2 * 10 + 1);
    EXPECT_EQ(took.errors.avg, 70);
    EXPECT_EQ(took.errors.p50, 40);
    EXPECT_EQ(took.errors.p99, 1100);
    EXPECT_EQ(took.error_ns(), 500U); // 210, of 1, 2 or 5 times a power of ten
    EXPECT_FALSE(took.is_half_taken());
    EXPECT_EQ(took.since_ns, 3000U);
}

/// Calls of one thread, each made inside the one before.
class Calls : public testing::Test {
  protected:
    Instance &call(Attachment &attachment, std::uint64_t hit, std::uint64_t sp) {
        Instance &made = returns.begin(task, {VirtAddr{sp}, VirtAddr{0x1000}});
        made.attachment = &attachment;
        made.hit = hit;
        attachment.active++;
        return made;
    }
    Returns returns;
    Task task;
    Attachment outer, inner, twin;
};

TEST_F(Calls, AreSpentInsideTheirCaller) {
    Instance &caller = call(outer, 1, 0x900), &callee = call(inner, 2, 0x800);
    add_to_caller(callee, 70);
    add_to_caller(callee, 30);
    EXPECT_EQ(caller.inner_ns, 100U);
    add_to_caller(caller, 500); // nothing is around it
}

TEST_F(Calls, AreAddedOnceWhereTwoProbesSeeThem) {
    Instance &caller = call(outer, 1, 0x900), &beside = call(twin, 1, 0x900);
    Instance &callee = call(inner, 2, 0x800), &again = call(twin, 2, 0x800);
    add_to_caller(again, 70);
    add_to_caller(callee, 60);
    EXPECT_EQ(caller.inner_ns, 60U);
    EXPECT_EQ(beside.inner_ns, 60U);
}

TEST_F(Calls, OfAnotherStackAreNotInside) {
    Instance &caller = call(outer, 1, 0x900), &fiber = call(inner, 2, 0x5000);
    add_to_caller(fiber, 70);
    EXPECT_EQ(caller.inner_ns, 0U);
}

TEST_F(Calls, PassThoseThatOnlyEnclose) {
    Instance &caller = call(outer, 1, 0x900);
    twin.encloses = 1;
    Instance &enclosing = call(twin, 2, 0x880);
    Instance &callee = call(inner, 3, 0x800);
    add_to_caller(callee, 70);
    EXPECT_EQ(caller.inner_ns, 70U);
    EXPECT_EQ(enclosing.inner_ns, 0U);
}

TEST_F(Duration, OfANestedCallIsKnownAsSuch) {
    Returns returns;
    auto begin = [&](Attachment &of, std::uint64_t hit) -> Instance & {
        Instance &made = returns.begin(task, {VirtAddr{0x900 - hit}, VirtAddr{0x1000}});
        made.attachment = &of;
        made.hit = hit;
        of.active++;
        return made;
    };
    Attachment other = attachment;
    Instance &first = begin(attachment, 1);
    begin(other, 2);
    Instance &nested = begin(attachment, 3);
    EXPECT_TRUE(duration(engine, task, nested, 13'000).is_nested);
    EXPECT_FALSE(duration(engine, task, first, 13'000).is_nested);
}

} // namespace
} // namespace ktrace::engine
