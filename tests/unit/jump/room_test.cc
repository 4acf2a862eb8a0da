// Where landings may lie in an address space.
#include <gtest/gtest.h>

#include "jump/room.h"

namespace ktrace::test {

namespace {

using jump::Free;
using jump::Kept;
using jump::Mapped;
using Grows = jump::Mapped::Grows;
using Rank = jump::Free::Rank;

constexpr std::uint64_t mib = 1 << 20, gib = 1 << 30;

struct Case {
    const char *what;
    std::vector<Mapped> mapped;
    std::vector<Free> free;
};

Mapped mapped(std::uint64_t start, std::uint64_t end, Grows grows = Grows::no) {
    return {VirtAddr{start}, VirtAddr{end}, grows};
}
Free range(std::uint64_t start, std::uint64_t end, Rank rank) { return {VirtAddr{start}, VirtAddr{end}, rank}; }

TEST(Room, KeepsAwayFromTheProgram) {
    Kept kept;
    kept.below_stack = 128 * mib;
    kept.above_heap = 256 * mib;
    kept.beside = 0x10000;
    kept.lowest = VirtAddr{0x10000};
    kept.highest = VirtAddr{100 * gib};
    const Case rows[] = {
        {"nothing is mapped", {}, {range(0x10000, 100 * gib, Rank::apart)}},
        {"a program, its heap, libraries, the stack",
         {mapped(10 * gib, 10 * gib + mib), mapped(10 * gib + 5 * mib, 10 * gib + 6 * mib, Grows::up),
          mapped(40 * gib, 40 * gib + mib), mapped(41 * gib, 41 * gib + mib),
          mapped(60 * gib, 60 * gib + mib, Grows::down)},
         {range(0x10000, 10 * gib - 0x10000, Rank::apart),
          range(10 * gib + mib + 0x10000, 10 * gib + 5 * mib - 0x10000, Rank::between),
          range(10 * gib + 262 * mib, 40 * gib - 0x10000, Rank::above_heap),
          range(40 * gib + mib + 0x10000, 41 * gib - 0x10000, Rank::between),
          range(41 * gib + mib + 0x10000, 60 * gib - 128 * mib, Rank::apart),
          range(60 * gib + mib + 0x10000, 100 * gib, Rank::between)}},
        {"neighbours leave nothing, nor a little room",
         {mapped(0x10000, gib), mapped(gib, 2 * gib), mapped(2 * gib + 0x20000, 99 * gib)},
         {range(99 * gib + 0x10000, 100 * gib, Rank::between)}},
        {"a heap that is not there yet",
         {mapped(0x10000, gib), mapped(gib, gib, Grows::up), mapped(99 * gib, 100 * gib)},
         {range(gib + 256 * mib, 99 * gib - 0x10000, Rank::above_heap)}},
        {"a stack without a limit", {mapped(gib, gib + 0x1000, Grows::down)}, {}},
    };
    for (const Case &row : rows) {
        Kept here = kept;
        const bool is_unlimited = row.free.empty();
        if (is_unlimited) here.below_stack = ~std::uint64_t{0}, here.highest = VirtAddr{gib};
        const auto free = jump::free_ranges(row.mapped, here);
        ASSERT_EQ(free.size(), row.free.size()) << row.what;
        for (std::size_t i = 0; i < free.size(); ++i) {
            EXPECT_EQ(free[i].start, row.free[i].start) << row.what << ", " << i;
            EXPECT_EQ(free[i].end, row.free[i].end) << row.what << ", " << i;
            EXPECT_EQ(free[i].rank, row.free[i].rank) << row.what << ", " << i;
        }
    }
}

TEST(Room, HasWholePages) {
    Kept kept;
    kept.beside = 0x123;
    const auto free = jump::free_ranges(std::vector{mapped(0x100000, 0x101000), mapped(0x200000, 0x201000)}, kept);
    ASSERT_EQ(free.size(), 3u);
    EXPECT_EQ(free[1].start, VirtAddr{0x102000});
    EXPECT_EQ(free[1].end, VirtAddr{0x1ff000});
}

} // namespace

} // namespace ktrace::test
