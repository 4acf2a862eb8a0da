// Where arenas go, and how slots are handed out.
#include "engine/space/slots.h"

#include <gtest/gtest.h>

#include "arch/host.h"

namespace ktrace::engine {
namespace {

os::Mapping mapping(std::uint64_t start, std::uint64_t end, const char *path = "/bin/x") {
    os::Mapping m;
    m.start = VirtAddr{start};
    m.end = VirtAddr{end};
    m.path = path;
    return m;
}

bool overlaps(const std::vector<os::Mapping> &maps, VirtAddr at, std::size_t size) {
    for (const os::Mapping &m : maps)
        if (at.value < m.end.value && m.start.value < at.value + size) return true;
    return false;
}

TEST(PlaceArena, LiesInAHoleNearTheCode) {
    std::vector<os::Mapping> maps{
        mapping(0x555555554000, 0x555555560000), mapping(0x555555561000, 0x555555582000, "[heap]"),
        mapping(0x7ffff7d00000, 0x7ffff7f00000), mapping(0x7ffffffde000, 0x7ffffffff000, "[stack]")};
    auto at = place_arena(maps, VirtAddr{0x555555554000}, VirtAddr{0x555555560000}, 0x10000);
    ASSERT_TRUE(at);
    EXPECT_FALSE(overlaps(maps, *at, 0x10000));
    EXPECT_LT(at->value, 0x555555554000U) << "below the program: the heap grows above it";
    EXPECT_LT(0x555555554000U - at->value, 0x200000U);
}

TEST(PlaceArena, KeepsAwayFromTheGrowingHeapOfAFixedProgram) {
    std::vector<os::Mapping> maps{mapping(0x10000, 0x500000), mapping(0x501000, 0x600000, "[heap]"),
                                  mapping(0x7ffff7d00000, 0x7ffff7f00000)};
    const std::uint64_t grown = 0x600000 + (1U << 30);
    auto at = place_arena(maps, VirtAddr{0x10000}, VirtAddr{0x500000}, 0x10000);
    if (arch::Host::reach < grown) {
        EXPECT_FALSE(at) << "what is behind the heap's room is out of reach";
        return;
    }
    ASSERT_TRUE(at);
    EXPECT_FALSE(overlaps(maps, *at, 0x10000));
    EXPECT_GE(at->value, grown);
}

TEST(PlaceArena, LiesBelowAFixedProgramWhereTheReachIsSmall) {
    std::vector<os::Mapping> maps{mapping(0x400000, 0x500000), mapping(0x501000, 0x600000, "[heap]"),
                                  mapping(0x7ffff7d00000, 0x7ffff7f00000)};
    auto at = place_arena(maps, VirtAddr{0x400000}, VirtAddr{0x500000}, 0x10000);
    ASSERT_TRUE(at);
    EXPECT_LT(at->value, 0x400000U);
    EXPECT_FALSE(overlaps(maps, *at, 0x10000));
}

TEST(PlaceArena, SaysNothingWhereNothingIsInReach) {
    std::vector<os::Mapping> maps{mapping(0x10000, 0x400000000000)};
    EXPECT_FALSE(place_arena(maps, VirtAddr{0x200000000000}, VirtAddr{0x200000001000}, 0x10000));
}

TEST(Slots, HandsOutEachSlotOnce) {
    Slots slots;
    slots.add({VirtAddr{0x10000}, 4 * arch::slot_size, 0});
    VirtAddr near{0x20000};
    EXPECT_EQ(slots.room(near), 4U);
    auto a = slots.take(near), b = slots.take(near);
    ASSERT_TRUE(a && b);
    EXPECT_NE(*a, *b);
    EXPECT_EQ(slots.slot_at(*b + 7), b);
    EXPECT_FALSE(slots.slot_at(VirtAddr{0x10000 + 4 * arch::slot_size}));
    ASSERT_TRUE(slots.take(near) && slots.take(near));
    EXPECT_FALSE(slots.take(near));
}

TEST(Slots, OutOfReachIsNoSlot) {
    Slots slots;
    slots.add({VirtAddr{0x10000}, 4 * arch::slot_size, 0});
    EXPECT_FALSE(slots.take(VirtAddr{0x10000 + arch::Host::reach * 2}));
}

TEST(Slots, ARetiredSlotComesBackOnlyWhenAllWereSeenOutside) {
    Slots slots;
    slots.add({VirtAddr{0x10000}, arch::slot_size, 0});
    auto slot = slots.take(VirtAddr{0x10000});
    ASSERT_TRUE(slot);
    slots.retire(*slot, 10);
    slots.release(10);
    EXPECT_FALSE(slots.take(VirtAddr{0x10000}));
    slots.release(11);
    EXPECT_EQ(slots.take(VirtAddr{0x10000}), slot);
}

} // namespace
} // namespace ktrace::engine
