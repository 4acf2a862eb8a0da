// Texts for names: how near they are to each other, and the name of a signal.
#include "base/text.h"

#include <csignal>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace ktrace::text {
namespace {

TEST(EditDistance, CountsEachEdit) {
    EXPECT_EQ(edit_distance("labs", "labs", 3), 0);
    EXPECT_EQ(edit_distance("lab", "labs", 3), 1);
    EXPECT_EQ(edit_distance("laps", "labs", 3), 1);
    EXPECT_EQ(edit_distance("kitten", "sitting", 3), 3);
    EXPECT_EQ(edit_distance("", "abc", 3), 3);
}

TEST(EditDistance, NeighboursThatHaveChangedPlacesAreOneEdit) {
    EXPECT_EQ(edit_distance("lasb", "labs", 3), 1);
    EXPECT_EQ(edit_distance("albs", "labs", 1), 1);
    EXPECT_EQ(edit_distance("mlaloc", "malloc", 3), 1);
    EXPECT_EQ(edit_distance("badc", "abcd", 3), 2);
}

TEST(EditDistance, IsCutOff) {
    EXPECT_EQ(edit_distance("abcdef", "uvwxyz", 2), 3);
    EXPECT_EQ(edit_distance("a", "abcdef", 2), 3);
    EXPECT_EQ(edit_distance("kitten", "sitting", 2), 3);
}

TEST(Nearest, ATypoOfFourLettersIsFound) {
    EXPECT_EQ(nearest("lasb", {"abort", "labs", "lseek"}, 3), std::vector<std::string>{"labs"});
}

TEST(SignalName, IsThatOfTheManual) {
    EXPECT_EQ(signal_name(SIGKILL), "SIGKILL");
    EXPECT_EQ(signal_name(40), "signal 40");
}

} // namespace
} // namespace ktrace::text
