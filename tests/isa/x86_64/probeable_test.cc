// Where probes may be put in a function.
#include <gtest/gtest.h>

#include "tests/isa/x86_64/hex.h"
#include "x86_64/x86_64.h"

namespace ktrace::test {

namespace {

using arch::Probeable;
using arch::X86_64;

constexpr VirtAddr at{0x401000};

Probeable ask(const char *function, std::uint64_t offset) { return X86_64::probeable(hex(function), at, offset); }

TEST(X86Probeable, TakesInstructionBoundariesOnly) {
    constexpr const char *function = "55 48 89 e5 b8 01 00 00 00 5d c3";
    for (std::uint64_t offset : {0u, 1u, 4u, 9u, 10u}) EXPECT_TRUE(ask(function, offset).ok) << offset;
    for (std::uint64_t offset : {2u, 3u, 5u, 6u, 7u, 8u}) EXPECT_FALSE(ask(function, offset).ok) << offset;
    const Probeable inside = ask(function, 6);
    EXPECT_EQ(inside.before, 4u);
    EXPECT_EQ(inside.after, 9u);
    EXPECT_STREQ(inside.why, "it is not at the start of an instruction");
}

TEST(X86Probeable, EndsWithTheFunction) {
    EXPECT_FALSE(ask("55 c3", 2).ok);
    EXPECT_FALSE(ask("", 0).ok);
    const Probeable last = ask("90 48 89 e5", 2);
    EXPECT_EQ(last.before, 1u);
    EXPECT_EQ(last.after, std::nullopt);
}

TEST(X86Probeable, NotBehindALockThatIsJumpedOver) {
    // je over the prefix of lock incl (%rdi): an int3 there would make it `lock int3`, which is no instruction.
    constexpr const char *function = "74 01 f0 ff 07 c3";
    EXPECT_TRUE(ask(function, 2).ok);
    EXPECT_FALSE(ask(function, 3).ok);
    EXPECT_TRUE(ask(function, 5).ok);
}

TEST(X86Probeable, JumpsOverData) {
    // jmp over a table of two bytes (06 is no instruction), which hides the mov behind it from a linear decoder.
    constexpr const char *function = "eb 02 06 48 89 e5 c3";
    EXPECT_TRUE(ask(function, 4).ok);
    EXPECT_TRUE(ask(function, 6).ok);
    EXPECT_FALSE(ask(function, 5).ok);
    EXPECT_FALSE(ask(function, 2).ok);
}

TEST(X86Probeable, RefusesWhatDataMakesUncertain) {
    // jmp *rax, a byte that is no instruction, and code that nothing visible jumps to.
    const Probeable behind = ask("ff e0 06 90 c3", 3);
    EXPECT_FALSE(behind.ok);
    EXPECT_NE(behind.why, nullptr);
    EXPECT_EQ(behind.before, std::nullopt);
}

TEST(X86Probeable, DecodesOnBehindAnIndirectJump) {
    constexpr const char *function = "ff e0 48 89 e5 c3";
    EXPECT_TRUE(ask(function, 2).ok);
    EXPECT_TRUE(ask(function, 5).ok);
    EXPECT_FALSE(ask(function, 3).ok);
}

} // namespace

} // namespace ktrace::test
