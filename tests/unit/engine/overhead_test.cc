// Overhead: what stops have taken from each thread, in all and by location.
#include "engine/space/overhead.h"

#include <gtest/gtest.h>

namespace ktrace::engine {
namespace {

std::vector<std::uint32_t> locations(const std::vector<Overhead::Share> &shares) {
    std::vector<std::uint32_t> all;
    for (const Overhead::Share &each : shares) all.push_back(each.location);
    return all;
}

TEST(OverheadOfStops, CountsAStopForTwoLocationsOnceForItsThread) {
    Overhead overhead;
    constexpr std::uint64_t long_ns = 1'000'000'000'000; // beyond it the clock's part is nothing
    auto stop = [&](int tid, std::vector<std::uint32_t> at, std::uint64_t ns) {
        overhead.begin_stop();
        for (std::uint32_t location : at) overhead.charge(location);
        overhead.end_stop(Tid{tid}, 0, ns);
    };
    stop(7, {1, 2}, long_ns);
    stop(7, {2}, long_ns);
    stop(7, {}, long_ns); // for no location
    stop(8, {1}, long_ns);
    auto threads = overhead.take();
    ASSERT_EQ(threads.size(), 2U);
    const Overhead::Thread &thread = threads[threads[0].tid.value == 7 ? 0 : 1];
    EXPECT_EQ(thread.ns / long_ns, 2U);
    EXPECT_EQ(locations(thread.shares), (std::vector<std::uint32_t>{2, 1}));
    EXPECT_EQ(thread.shares[0].ns / long_ns, 2U);
    EXPECT_EQ(thread.shares[1].ns / long_ns, 1U);
    EXPECT_TRUE(overhead.take().empty());
}

TEST(OverheadOfStops, IsOfStopsThatEnd) {
    Overhead overhead;
    overhead.begin_stop();
    overhead.charge(1);
    overhead.begin_stop();
    overhead.end_stop(Tid{7}, 0, 1000);
    EXPECT_TRUE(overhead.take().empty());
}

TEST(OverheadOfStops, GoesDownByItsCostliestLocations) {
    const Overhead::Thread thread{Tid{7}, 100, {{3, 50}, {1, 30}, {2, 20}}};
    EXPECT_EQ(locations(costliest_beyond(thread, 100)), (std::vector<std::uint32_t>{}));
    EXPECT_EQ(locations(costliest_beyond(thread, 99)), (std::vector<std::uint32_t>{3}));
    EXPECT_EQ(locations(costliest_beyond(thread, 50)), (std::vector<std::uint32_t>{3}));
    EXPECT_EQ(locations(costliest_beyond(thread, 20)), (std::vector<std::uint32_t>{3, 1}));
    EXPECT_EQ(locations(costliest_beyond(thread, 0)), (std::vector<std::uint32_t>{3, 1, 2}));
}

} // namespace
} // namespace ktrace::engine
