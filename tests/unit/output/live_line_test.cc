#include "output/live_line.h"

#include <gtest/gtest.h>

namespace ktrace::output {
namespace {

TEST(LiveLine, TellsRateAndCostOfTheTimeBetween) {
    const Progress before{1'000'000'000, 500'000'000, 1000, 0};
    const Progress now{3'000'000'000, 900'000'000, 51'000, 0};
    EXPECT_EQ(progress_text(before, now), "51000 hits, 25000 a second, 8.0 us each, 20% of a processor");
}

TEST(LiveLine, WithoutHitsNoneHasACost) {
    const Progress before{1'000'000'000, 500'000'000, 7, 0};
    const Progress now{2'000'000'000, 500'000'000, 7, 0};
    EXPECT_EQ(progress_text(before, now), "7 hits, 0 a second, 0% of a processor");
}

TEST(LiveLine, TellsWhatWasDropped) {
    const Progress before{0, 0, 0, 0};
    const Progress now{1'000'000'000, 1'000'000'000, 100'000, 42};
    EXPECT_EQ(progress_text(before, now),
              "100000 hits, 100000 a second, 10.0 us each, 100% of a processor, 42 dropped");
}

TEST(LiveLine, TwoAnswersAtOneTimeAreNoDivisionByZero) {
    const Progress same{5, 5, 5, 0};
    EXPECT_EQ(progress_text(same, same), "5 hits, 0 a second, 0% of a processor");
}

} // namespace
} // namespace ktrace::output
