// Which places landings get: by the bytes of the distance, the free ranges, and the landings before.
#include <gtest/gtest.h>
#include <set>

#include "jump/landings.h"
#include "jump/words.h"

namespace ktrace::test {

namespace {

using arch::ByteSet;
using arch::LandingRule;
using jump::Free;
using jump::Landings;
using Rank = jump::Free::Rank;

constexpr std::size_t jump_size = 5;
constexpr std::uint64_t mib = 1 << 20, gib = 1 << 30, jump_at = 64 * gib;

/// Bytes of the distance by position: -1 is any, others only themselves.
LandingRule rule_of(std::array<int, 4> bytes, std::uint64_t at = jump_at) {
    LandingRule rule;
    rule.from = VirtAddr{at};
    for (std::size_t i = 0; i < 4; ++i) {
        if (bytes[i] < 0) rule.distance[i].set();
        if (bytes[i] >= 0) rule.distance[i].set(static_cast<std::size_t>(bytes[i]));
    }
    return rule;
}

Free range(std::uint64_t start, std::uint64_t end, Rank rank = Rank::apart) {
    return {VirtAddr{start}, VirtAddr{end}, rank};
}

bool obeys(const LandingRule &rule, VirtAddr landing) {
    const std::int64_t distance = landing - rule.from;
    if (distance != static_cast<std::int32_t>(distance)) return false;
    for (std::size_t i = 0; i < 4; ++i)
        if (!rule.distance[i][static_cast<std::size_t>(distance >> 8 * i & 0xff)]) return false;
    return true;
}

TEST(Landings, ObeyTheirRule) {
    constexpr std::array<int, 4> rows[] = {{-1, -1, -1, -1},  {0xcc, -1, -1, -1},     {-1, -1, -1, 0xcc},
                                           {0xcc, -1, -1, 6}, {-1, -1, 0xcc, 0xcc},   {0xcc, 0xcc, 0xcc, -1},
                                           {-1, 0xcc, 6, 6},  {0xcc, 0x66, 0x44, 0x7}};
    for (const auto &bytes : rows) {
        Landings landings({range(0x10000, 200 * gib)}, jump_size, 1000);
        std::set<VirtAddr> taken;
        for (std::uint64_t site = 0; site < 200; ++site) {
            const LandingRule rule = rule_of(bytes, jump_at + 37 * site);
            const auto landing = landings.take(rule);
            if (!landing) continue; // it would cross a page, or lie on another
            EXPECT_TRUE(obeys(rule, *landing)) << site;
            EXPECT_LE(landing->value % jump::page_size, jump::page_size - jump_size);
            const auto next = taken.lower_bound(*landing);
            EXPECT_TRUE(next == taken.end() || *next - *landing >= static_cast<std::int64_t>(jump_size));
            EXPECT_TRUE(next == taken.begin() || *landing - *std::prev(next) >= static_cast<std::int64_t>(jump_size));
            taken.insert(*landing);
        }
        EXPECT_GE(taken.size(), 195u);
    }
}

TEST(Landings, AreTheOnlyPlaceThereIs) {
    // All four bytes are given: cccccccc is -0x33333334.
    Landings landings({range(0x10000, 200 * gib)}, jump_size, 10);
    EXPECT_EQ(landings.take(rule_of({0xcc, 0xcc, 0xcc, 0xcc})), VirtAddr{jump_at - 0x33333334});
    EXPECT_EQ(landings.take(rule_of({0xcc, 0xcc, 0xcc, 0xcc})), std::nullopt);
    EXPECT_EQ(landings.take(rule_of({0xcc, 0xcc, 0xcc, 0xcc}, jump_at + 4)), std::nullopt); // overlaps
    EXPECT_EQ(landings.take(rule_of({0xcc, 0xcc, 0xcc, 0xcc}, jump_at + 5)), VirtAddr{jump_at - 0x3333332f});
    landings.give_back(VirtAddr{jump_at - 0x33333334});
    EXPECT_EQ(landings.take(rule_of({0xcc, 0xcc, 0xcc, 0xcc})), VirtAddr{jump_at - 0x33333334});
    // One that would cross the end of its page.
    EXPECT_EQ(landings.take(rule_of({0xcc, 0xcc, 0xcc, 0xcc}, jump_at + 0x1331)), std::nullopt);
}

TEST(Landings, LieInFreeRangesOnly) {
    const LandingRule rule = rule_of({-1, -1, -1, 6}); // from +96 MiB up to +112
    auto take = [&](const Free &free) { return Landings({free}, jump_size, 10).take(rule); };
    EXPECT_EQ(take(range(0x10000, jump_at + 96 * mib)), std::nullopt);
    EXPECT_EQ(take(range(jump_at + 112 * mib, 200 * gib)), std::nullopt);
    EXPECT_EQ(take(range(jump_at + 96 * mib, jump_at + 96 * mib + 0x1000)), VirtAddr{jump_at + 96 * mib});
    EXPECT_EQ(take(range(jump_at + 112 * mib - 0x1000, jump_at + 112 * mib)), VirtAddr{jump_at + 112 * mib - 0x1000});
    EXPECT_EQ(take(range(jump_at + 100 * mib, jump_at + 100 * mib)), std::nullopt);
}

TEST(Landings, LieInNoRangeThatIsExcluded) {
    const LandingRule rule = rule_of({-1, -1, -1, -1});
    const VirtAddr start{jump_at - mib}, end{jump_at + mib};
    for (const auto &[low, high] : {std::pair{start, end}, std::pair{start - 4096, end + 4096}}) {
        Landings landings({range(start.value, end.value)}, jump_size, 10);
        landings.exclude(low, high);
        EXPECT_FALSE(landings.take(rule));
    }
    Landings landings({range(start.value, end.value)}, jump_size, 10);
    landings.exclude(start + 8192, end);
    landings.exclude(start, start + 4096);
    const auto landing = landings.take(rule);
    ASSERT_TRUE(landing);
    EXPECT_EQ(landing->value & ~(jump::page_size - 1), (start + 4096).value);
}

TEST(Landings, StayOffThoseThatAreKept) {
    const LandingRule rule = rule_of({0x10, 0x20, 0, 0});
    Landings landings({range(0x10000, 200 * gib)}, jump_size, 10);
    const auto first = Landings({range(0x10000, 200 * gib)}, jump_size, 10).take(rule);
    ASSERT_TRUE(first);
    landings.keep(*first);
    EXPECT_FALSE(landings.take(rule));
}

TEST(Landings, AreNotBelowZero) {
    Landings landings({range(0x10000, 200 * gib)}, jump_size, 10);
    EXPECT_EQ(landings.take(rule_of({-1, -1, -1, 0xcc}, 0x401000)), std::nullopt);
    EXPECT_TRUE(landings.take(rule_of({-1, -1, -1, 6}, 0x401000)));
}

TEST(Landings, TakeTheBestRange) {
    const std::vector<Free> free = {range(jump_at - gib, jump_at - 900 * mib, Rank::above_heap),
                                    range(jump_at - 800 * mib, jump_at - mib, Rank::between),
                                    range(jump_at + gib, jump_at + 1100 * mib, Rank::apart)};
    Landings landings(free, jump_size, 10);
    EXPECT_GE(landings.take(rule_of({-1, -1, -1, -1}))->value, jump_at + gib);
    Landings others({free[0], free[1]}, jump_size, 10);
    EXPECT_GE(others.take(rule_of({-1, -1, -1, -1}))->value, jump_at - 800 * mib);
}

TEST(Landings, ShareTheirPages) {
    Landings landings({range(0x10000, 200 * gib)}, jump_size, 1000);
    for (std::uint64_t site = 0; site < 4000; ++site)
        ASSERT_TRUE(landings.take(rule_of({-1, -1, -1, 0xcc}, jump_at + 16 * site)));
    EXPECT_EQ(landings.pages().size(), (4000 + 818) / 819); // 819 of five bytes in a page
    EXPECT_EQ(landings.mappings(), 1u);
}

TEST(Landings, FillWhatAFixedLowByteLeaves) {
    Landings landings({range(0x10000, 200 * gib)}, jump_size, 1000);
    for (std::uint64_t site = 0; site < 1000; ++site)
        ASSERT_TRUE(landings.take(rule_of({0xcc, -1, -1, 0xcc}, jump_at + 16 * site)));
    EXPECT_LE(landings.pages().size(), 5u);
    EXPECT_EQ(landings.mappings(), 1u);
}

TEST(Landings, TakeNoMoreMappingsThanAllowed) {
    Landings landings({range(0x10000, 200 * gib)}, jump_size, 2);
    EXPECT_TRUE(landings.take(rule_of({-1, -1, 0, 0x10})));
    EXPECT_TRUE(landings.take(rule_of({-1, -1, 0, 0x11})));
    EXPECT_EQ(landings.mappings(), 2u);
    EXPECT_EQ(landings.take(rule_of({-1, -1, 0, 0x12})), std::nullopt);
    EXPECT_TRUE(landings.take(rule_of({-1, -1, 0, 0x11}))); // in a page that is there
    while (landings.pages().size() < 6) ASSERT_TRUE(landings.take(rule_of({-1, -1, 0, 0x11})));
    EXPECT_EQ(landings.mappings(), 2u); // pages beside it need no more
}

TEST(Landings, CountTheMappingsThatGrowTogether) {
    Landings landings({range(jump_at + 96 * mib, jump_at + 96 * mib + 0x3000)}, jump_size, 10);
    // A byte of the distance for each page: 0x00, 0x20, then the one between.
    EXPECT_TRUE(landings.take(rule_of({-1, 0x00, 0, 6})));
    EXPECT_TRUE(landings.take(rule_of({-1, 0x20, 0, 6})));
    EXPECT_EQ(landings.mappings(), 2u);
    EXPECT_TRUE(landings.take(rule_of({-1, 0x10, 0, 6})));
    EXPECT_EQ(landings.mappings(), 1u);
    EXPECT_EQ(landings.pages(), (std::vector{VirtAddr{jump_at + 96 * mib}, VirtAddr{jump_at + 96 * mib + 0x1000},
                                             VirtAddr{jump_at + 96 * mib + 0x2000}}));
}

TEST(NoJump, HasWordsForEachReason) {
    std::set<std::string_view> all;
    for (std::size_t i = 0; i < arch::no_jump_reasons; ++i) all.insert(jump::words(static_cast<arch::NoJump>(i)));
    EXPECT_EQ(all.size(), arch::no_jump_reasons);
    EXPECT_FALSE(all.contains(""));
}

} // namespace

} // namespace ktrace::test
