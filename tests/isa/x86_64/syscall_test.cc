// The meaning of a system call's result: whether it has failed by an interrupt.
#include "x86_64/x86_64.h"

#include <gtest/gtest.h>

namespace ktrace::arch {
namespace {

constexpr std::uint64_t read_call = 0;
constexpr std::uint64_t none = ~std::uint64_t{0};

bool interrupted(std::uint64_t number, std::int64_t result) {
    X86_64::Registers regs{};
    regs.orig_ax = number;
    regs.ax = static_cast<std::uint64_t>(result);
    return X86_64::interrupted_for_good(regs);
}

TEST(X86Syscall, IsMadeAgainWhereItWasInterrupted) {
    EXPECT_TRUE(interrupted(read_call, -4));
    EXPECT_FALSE(interrupted(read_call, -11));
    EXPECT_FALSE(interrupted(read_call, 4));
    EXPECT_FALSE(interrupted(none, -4)) << "in no call";
}

TEST(X86Syscall, BeginsOnceMoreAtItsInstruction) {
    X86_64::Registers regs{};
    regs.orig_ax = read_call;
    regs.ax = static_cast<std::uint64_t>(-4);
    regs.ip = 0x1002;
    X86_64::restart_syscall(regs, 0);
    EXPECT_EQ(regs.ip, 0x1000U);
    EXPECT_EQ(regs.ax, read_call);
}

} // namespace
} // namespace ktrace::arch
