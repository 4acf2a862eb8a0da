// The forms of a profile, of samples that are written down.
#include "sample/profile_tables.h"

#include <gtest/gtest.h>

namespace ktrace::sample {
namespace {

output::NamedFrame frame(const char *symbol, const char *module, std::uint64_t address = 0x10) {
    output::NamedFrame named;
    named.address = address;
    named.symbol = symbol;
    named.module = module;
    named.offset = 4;
    return named;
}

/// A stack, innermost first, that was seen so often.
NamedSample sample(std::vector<output::NamedFrame> frames, std::uint64_t on, std::uint64_t off, long syscall = -1) {
    constexpr std::uint64_t ns = 10'000'000; // a look
    NamedSample named;
    named.key.comm = "worker";
    named.sample = {{.ns = on * ns, .looks = on}, {.ns = off * ns, .looks = off}, syscall};
    named.frames = std::move(frames);
    return named;
}

const auto parse = frame("parse", "shop"), run = frame("main", "shop"), again = frame("parse", "shop", 0x20);
const auto nap = frame("clock_nanosleep", "libc.so.6");

TEST(ProfileTables, FunctionsBySelfThenTotal) {
    EXPECT_EQ(profile_tables({sample({parse, run}, 6, 0), sample({run}, 2, 0)}, {}),
              "    self     total  function [shop]\n"
              "   75.0%     75.0%  parse\n"
              "   25.0%    100.0%  main\n");
}

TEST(ProfileTables, ARecursiveFunctionCountsOnce) {
    EXPECT_EQ(profile_tables({sample({parse, again, run}, 3, 0)}, {}), "    self     total  function [shop]\n"
                                                                       "  100.0%    100.0%  parse\n"
                                                                       "    0.0%    100.0%  main\n");
}

TEST(ProfileTables, WaitsByCallAndCaller) {
    EXPECT_EQ(profile_tables({sample({nap, parse, run}, 0, 301), sample({nap, again, run}, 0, 1),
                              sample({frame("spin", "lib.so")}, 0, 2)},
                             {}),
              "    time  system call  caller\n"
              "   3.02s  -            parse [shop]\n"
              "  20.0ms  -            spin [lib.so]\n");
}

TEST(ProfileTables, BothAndTheFirstRows) {
    EXPECT_EQ(profile_tables({sample({parse}, 3, 0), sample({run}, 1, 5)}, {0, 1}),
              "    self     total  function [shop]\n"
              "   75.0%     75.0%  parse\n"
              "                    1 more\n"
              "\n"
              "    time  system call  caller [shop]\n"
              "  50.0ms  -            main\n");
}

TEST(ProfileTables, NamesAreCutAtTheWidth) {
    EXPECT_EQ(profile_tables({sample({frame("aVeryLongNameOfAFunction", "shop")}, 1, 0)}, {30, 0}),
              "    self     total  function [shop]\n"
              "  100.0%    100.0%  aVer..tion\n");
}

TEST(Paths, OutermostFirstUnderTheThread) {
    const auto paths = paths_of({sample({parse, run}, 2, 1), sample({again, run}, 3, 0)}, Which::on_processor);
    EXPECT_EQ(folded(paths), "worker;main;parse 5\n");
    EXPECT_EQ(folded(paths_of({sample({parse, run}, 2, 1)}, Which::waiting)), "worker;main;parse 1\n");
}

TEST(Paths, NamesHaveNoSeparator) {
    EXPECT_EQ(folded(paths_of({sample({frame("a;b\n", "shop"), frame("", "lib.so"), frame("", "")}, 1, 0)},
                              Which::on_processor)),
              "worker;0x10;lib.so:0x4;a:b\\n 1\n");
}

} // namespace
} // namespace ktrace::sample
