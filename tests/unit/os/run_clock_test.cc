// When a task ran last.
#include "os/facts/run_clock.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace ktrace::os {
namespace {

TEST(RunClock, ReadsTheKernelsText) {
    EXPECT_EQ(parse_exec_start(
                  "sleep (12, #threads: 1)\n---\nse.exec_start          :      56340213.000238\nse.vruntime : 1.5\n"),
              56340213000238U);
    EXPECT_EQ(parse_exec_start("se.exec_start : 0.000000\n"), 0U);
}

TEST(RunClock, WhatIsNotThereIsNotKnown) {
    for (const char *text :
         {"", "se.exec_start\n", "se.exec_start : 12\n", "se.exec_start : 12.5\n", "se.vruntime : 1.000000\n"})
        EXPECT_FALSE(parse_exec_start(text)) << text;
}

TEST(RunCount, ReadsTheKernelsText) {
    EXPECT_EQ(parse_ran("1200 34 5\n"), (Ran{1234, 5}));
    for (const char *text : {"", "1 2\n", "1 2 3 4\n", "1 2 x\n"}) EXPECT_FALSE(parse_ran(text)) << text;
}

TEST(RunCount, OfATaskThatIsNotThere) { EXPECT_FALSE(RunCount(Pid{1}, Tid{0}).read()); }

} // namespace
} // namespace ktrace::os
