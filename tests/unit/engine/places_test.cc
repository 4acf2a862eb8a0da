#include "engine/space/places.h"

#include <gtest/gtest.h>

namespace ktrace::engine {
namespace {

std::vector<std::size_t> visited(const Places &places) {
    std::vector<std::size_t> all;
    places.for_each([&](std::size_t place) { all.push_back(place); });
    return all;
}

TEST(Places, NoneAtFirst) {
    EXPECT_TRUE(Places().empty());
    EXPECT_TRUE(visited({}).empty());
}

TEST(Places, AnyNumberInTheirOrder) {
    const std::vector<std::size_t> added{0, 1, 31, 63, 64, 65, 127, 128, 4000};
    Places places;
    for (std::size_t place : added) places.add(place);
    EXPECT_FALSE(places.empty());
    EXPECT_EQ(visited(places), added);
}

TEST(Places, OneFarAway) {
    Places places;
    places.add(64);
    EXPECT_FALSE(places.empty());
    EXPECT_EQ(visited(places), std::vector<std::size_t>{64});
}

} // namespace
} // namespace ktrace::engine
