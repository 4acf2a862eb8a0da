// The memory that an agent may read by itself: of the mappings those without code and without devices.
#include "engine/space/readable.h"

#include <gtest/gtest.h>

namespace ktrace::engine {
namespace {

os::Mapping mapping(std::uint64_t start, std::uint64_t end, const char *rights, const char *path = "") {
    os::Mapping made;
    made.start = VirtAddr{start};
    made.end = VirtAddr{end};
    made.readable = rights[0] == 'r';
    made.writable = rights[1] == 'w';
    made.executable = rights[2] == 'x';
    made.path = path;
    return made;
}

std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges(const std::vector<os::Mapping> &maps) {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> found;
    for (const agent::Range &each : readable_ranges(maps)) found.emplace_back(each.low, each.high);
    return found;
}

using Found = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

TEST(Readable, NeighboursAreOne) {
    EXPECT_EQ(ranges({mapping(0x1000, 0x2000, "r--", "/bin/a"), mapping(0x2000, 0x3000, "rw-", "[heap]"),
                      mapping(0x4000, 0x5000, "rw-")}),
              (Found{{0x1000, 0x3000}, {0x4000, 0x5000}}));
}

TEST(Readable, NoCodeAndNothingThatIsNotReadable) {
    EXPECT_EQ(ranges({mapping(0x1000, 0x2000, "r--", "/bin/a"), mapping(0x2000, 0x3000, "r-x", "/bin/a"),
                      mapping(0x3000, 0x4000, "r--", "/bin/a"), mapping(0x4000, 0x5000, "---"),
                      mapping(0x5000, 0x6000, "-w-"), mapping(0x6000, 0x7000, "rwx")}),
              (Found{{0x1000, 0x2000}, {0x3000, 0x4000}}));
}

TEST(Readable, NoDevicesAndNothingOfTheKernels) {
    EXPECT_EQ(ranges({mapping(0x1000, 0x2000, "rw-", "/dev/dri/card0"), mapping(0x3000, 0x4000, "r--", "[vvar]"),
                      mapping(0x4000, 0x4800, "rw-", "anon_inode:i915.gem"),
                      mapping(0x5000, 0x6000, "rw-", "/dev/shm/a"), mapping(0x7000, 0x8000, "rw-", "[stack]"),
                      mapping(0x9000, 0xa000, "rw-", "[anon:arena]"), mapping(0xb000, 0xc000, "rw-", "/dev/zero")}),
              (Found{{0x5000, 0x6000}, {0x7000, 0x8000}, {0x9000, 0xa000}, {0xb000, 0xc000}}));
}

TEST(Readable, AsManyAsThereIsRoomFor) {
    std::vector<os::Mapping> maps;
    for (std::uint64_t i = 1; i <= agent::most_ranges + 5; i++)
        maps.push_back(mapping(i * 0x10000, i * 0x10000 + 0x1000, "rw-"));
    const auto found = ranges(maps);
    EXPECT_EQ(found.size(), agent::most_ranges);
    EXPECT_EQ(found.back().first, agent::most_ranges * 0x10000);
}

} // namespace
} // namespace ktrace::engine
