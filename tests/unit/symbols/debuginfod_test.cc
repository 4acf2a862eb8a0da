// How long a server is waited for.
#include <gtest/gtest.h>

#include "symbols/debugfile/debuginfod.h"

namespace ktrace::symbols {
namespace {

constexpr std::uint64_t second = 1'000'000'000;

TEST(Patience, EndsWhereNothingComes) {
    Patience patience(100 * second);
    for (std::uint64_t i = 0; i < 15; i++) EXPECT_TRUE(patience.lasts((100 + i) * second, 0)) << i;
    EXPECT_FALSE(patience.lasts(115 * second, 0));
}

TEST(Patience, CountsOfLooksAreNoProgress) {
    Patience patience(0);
    for (std::uint64_t i = 0; i < 15; i++) EXPECT_TRUE(patience.lasts(i * second, i));
    EXPECT_FALSE(patience.lasts(15 * second, 15));
}

TEST(Patience, ASlowDownloadGoesOnButNotForEver) {
    Patience patience(0);
    for (std::uint64_t i = 0; i < 300; i++) EXPECT_TRUE(patience.lasts(i * second, i * 1000)) << i;
    EXPECT_FALSE(patience.lasts(300 * second, 300'000));
}

TEST(Patience, ADripIsNotWaitedFor) {
    Patience patience(0);
    EXPECT_TRUE(patience.lasts(1 * second, 5000));
    EXPECT_TRUE(patience.lasts(15 * second, 5014));
    EXPECT_FALSE(patience.lasts(16 * second, 5015));
}

TEST(Patience, AnotherServerBeginsAgain) {
    Patience patience(0);
    EXPECT_TRUE(patience.lasts(1 * second, 100'000));
    EXPECT_TRUE(patience.lasts(14 * second, 0));
    EXPECT_TRUE(patience.lasts(15 * second, 5000));
    EXPECT_TRUE(patience.lasts(29 * second, 5000));
    EXPECT_FALSE(patience.lasts(30 * second, 5000));
}

} // namespace
} // namespace ktrace::symbols
