// Which messages are shown, and that the text of others is not made.
#include "base/log.h"

#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

namespace ktrace::log {
namespace {

/// In a process of its own, since what is shown is the process's: the text of the check is what it writes.
void expect_shown(const char *setting, const char *shown) {
    EXPECT_EXIT(
        {
            ::setenv("KTRACE_LOG", setting, 1);
            configure_from_environment();
            for (const char *folder : {"engine", "engine/hit", "engine/space", "engineer", "symbols/elf"})
                if (is_shown(folder, Level::debug)) write(folder, Level::debug, "shown");
            write("base", Level::warn, "end");
            std::_Exit(0);
        },
        testing::ExitedWithCode(0), shown);
}

TEST(Log, AFolderStandsForThoseBelowIt) {
    expect_shown("", "^ktrace\\[base\\]: end\n$");
    expect_shown("engine:debug", "^ktrace\\[engine\\]: shown\nktrace\\[engine/hit\\]: shown\n"
                                 "ktrace\\[engine/space\\]: shown\nktrace\\[base\\]: end\n$");
    expect_shown("engine/hit:debug", "^ktrace\\[engine/hit\\]: shown\nktrace\\[base\\]: end\n$");
    expect_shown("all:debug,engine:info,engine/space",
                 "^ktrace\\[engine/space\\]: shown\nktrace\\[engineer\\]: shown\nktrace\\[symbols/elf\\]: shown\n"
                 "ktrace\\[base\\]: end\n$");
}

TEST(Log, TheTextOfOneThatIsNotShownIsNotMade) {
    int made = 0;
    auto text = [&] {
        made++;
        return std::string("to be seen in the output of this test");
    };
    KT_LOG_DEBUG(text());
    EXPECT_EQ(made, 0);
    KT_LOG_ERROR(text());
    EXPECT_EQ(made, 1);
}

TEST(Log, AMessageIsOfItsFolder) {
    EXPECT_EXIT(
        {
            KT_LOG_WARN("here");
            std::_Exit(0);
        },
        testing::ExitedWithCode(0), "^ktrace\\[tests/unit/base\\]: here\n$");
}

} // namespace
} // namespace ktrace::log
