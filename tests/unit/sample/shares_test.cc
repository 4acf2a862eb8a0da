// A thread's time between looks, given to the stacks that it was seen in.
#include "sample/shares.h"

#include <gtest/gtest.h>

namespace ktrace::sample {
namespace {

constexpr std::uint64_t period = 100;

struct Seeing {
    Shares shares;
    Sample work, tidy, asleep;

    void see(Sample &sample, bool is_on, std::uint64_t at, std::uint64_t ran, std::uint64_t stood = 0) {
        shares.see(sample, {is_on, at, {ran, 1}, stood}, period);
    }
};

TEST(Shares, TheFirstLookCountsForAPeriod) {
    Seeing one;
    one.see(one.work, true, 1000, 500);
    EXPECT_EQ(one.work.on.ns, 100U);
    Seeing other;
    other.see(other.asleep, false, 1000, 500);
    EXPECT_EQ(other.asleep.off.ns, 100U);
}

TEST(Shares, ALateLookCountsAsTheKernelSays) {
    Seeing it;
    it.see(it.work, true, 1000, 500);
    it.see(it.asleep, false, 1400, 800); // 300 more on the processor
    EXPECT_EQ(it.work.on.ns, 100U + 300U);
    EXPECT_EQ(it.asleep.off.ns, 100U);
}

TEST(Shares, TheTimeStoppedForALookCountsAsRun) {
    Seeing it;
    it.see(it.asleep, false, 1000, 500);
    it.see(it.work, true, 1100, 530, 20);
    EXPECT_EQ(it.work.on.ns, 50U);
    EXPECT_EQ(it.asleep.off.ns, 100U + 50U);
}

TEST(Shares, EachHalfGoesToTheNearerLook) {
    Seeing it;
    it.see(it.work, true, 1000, 500);
    it.see(it.tidy, true, 1100, 600);
    EXPECT_EQ(it.work.on.ns, 100U + 50U);
    EXPECT_EQ(it.tidy.on.ns, 50U);
}

TEST(Shares, WhatWasNeverSeenHasNothing) {
    Seeing it;
    it.see(it.work, true, 1000, 500);
    it.see(it.work, true, 1100, 560); // 40 of waiting, seen by no look
    EXPECT_EQ(it.work.on.ns, 200U);
    EXPECT_EQ(it.work.off.ns, 0U);
}

TEST(Shares, MoreThanAllIsAll) {
    Seeing it;
    it.see(it.asleep, false, 1000, 500);
    it.see(it.work, true, 1100, 590, 50);
    EXPECT_EQ(it.work.on.ns, 100U);
    EXPECT_EQ(it.asleep.off.ns, 100U);
}

} // namespace
} // namespace ktrace::sample
