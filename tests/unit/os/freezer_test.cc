// Which control groups can freeze a process, by the text of /proc.
#include "os/facts/freezer.h"

#include <gtest/gtest.h>

namespace ktrace::os {
namespace {

std::vector<std::string> thawings(std::string_view groups, std::string_view mounts) {
    std::vector<std::string> commands;
    for (const Freezer &freezer : parse_freezers(groups, mounts)) commands.push_back(freezer.thawing());
    return commands;
}

constexpr std::string_view both = "25 24 0:22 / /proc rw - proc proc rw\n"
                                  "30 24 0:26 / /cg/cpu rw,relatime - cgroup cgroup rw,cpu\n"
                                  "31 24 0:27 / /cg/ice rw,relatime shared:9 - cgroup cgroup rw,devices,freezer\n"
                                  "32 24 0:28 / /cg/all rw,nosuid shared:4 - cgroup2 cgroup2 rw\n";

TEST(Freezers, AreTheGroupAndThoseAbove) {
    EXPECT_EQ(thawings("4:cpu:/x\n3:devices,freezer:/b\n0::/a/b\n", both),
              (std::vector<std::string>{"echo THAWED > /cg/ice/b/freezer.state", "echo 0 > /cg/all/a/b/cgroup.freeze",
                                        "echo 0 > /cg/all/a/cgroup.freeze"}));
}

TEST(Freezers, OfTheOutermostGroupThereAreNone) { EXPECT_TRUE(thawings("3:freezer:/\n0::/\n", both).empty()); }

TEST(Freezers, AreWhereTheMountShowsThem) {
    constexpr std::string_view part = "32 24 0:28 /a /cg rw - cgroup2 cgroup2 rw\n";
    EXPECT_EQ(thawings("0::/a/b\n", part),
              (std::vector<std::string>{"echo 0 > /cg/b/cgroup.freeze", "echo 0 > /cg/cgroup.freeze"}));
    EXPECT_TRUE(thawings("0::/ab\n", part).empty());
    EXPECT_TRUE(thawings("0::/../c\n", both).empty());
}

TEST(Freezers, NonsenseHasNone) {
    EXPECT_TRUE(thawings("0::", "- cgroup2").empty());
    EXPECT_TRUE(thawings("", " - cgroup2 x").empty());
    EXPECT_TRUE(thawings("0:\n::\n0", "1 2 3 - cgroup2\n").empty());
}

} // namespace
} // namespace ktrace::os
