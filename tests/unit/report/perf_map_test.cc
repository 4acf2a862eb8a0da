// Perf maps: names of generated code, from the text that the program writes.
#include "report/perf_map.h"

#include <gtest/gtest.h>

namespace ktrace::report {
namespace {

std::string name_at(const PerfMap &map, std::uint64_t address) {
    const PerfMap::Function *function = map.at(address);
    return function ? function->name : "-";
}

TEST(PerfMaps, NameTheFunctionThatHasAnAddress) {
    PerfMap map;
    map.add("1000 10 first\n0x2000 0x20 LazyCompile:*run /app/main.js:1:2\n");
    EXPECT_EQ(name_at(map, 0x1000), "first");
    EXPECT_EQ(name_at(map, 0x100f), "first");
    EXPECT_EQ(name_at(map, 0x1010), "-");
    EXPECT_EQ(name_at(map, 0xfff), "-");
    EXPECT_EQ(name_at(map, 0x201f), "LazyCompile:*run /app/main.js:1:2");
    EXPECT_EQ(map.at(0x2010)->start, 0x2000U);
}

TEST(PerfMaps, GoByWhatWasWrittenLast) {
    PerfMap map;
    map.add("1000 100 old\n1100 100 behind\n1200 10 far\n10f0 20 new\n");
    EXPECT_EQ(name_at(map, 0x1000), "-");
    EXPECT_EQ(name_at(map, 0x10f0), "new");
    EXPECT_EQ(name_at(map, 0x110f), "new");
    EXPECT_EQ(name_at(map, 0x1110), "-");
    EXPECT_EQ(name_at(map, 0x1205), "far");
}

TEST(PerfMaps, WaitForTheRestOfALine) {
    PerfMap map;
    map.add("1000 10 na");
    EXPECT_EQ(name_at(map, 0x1000), "-");
    map.add("me\n2000");
    EXPECT_EQ(name_at(map, 0x1000), "name");
    map.add(" 10 other\n");
    EXPECT_EQ(name_at(map, 0x2000), "other");
}

TEST(PerfMaps, LeaveOutWhatIsNoLine) {
    PerfMap map;
    map.add(
        "\n1000\n1000 10\n1000 10 \nx 10 name\n1000 0 name\nffffffffffffffff 10 name\n1000 11111111111111111 name\n");
    EXPECT_EQ(name_at(map, 0x1000), "-");
    map.add(std::string(100'000, 'x') + "\n1000 10 name\n");
    EXPECT_EQ(name_at(map, 0x1000), "name");
}

} // namespace
} // namespace ktrace::report
