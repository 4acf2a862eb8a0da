// Buffers of setjmp: of musl as they are, of glibc encrypted, and what is none.
#include <bit>

#include <gtest/gtest.h>

#include "tests/isa/x86_64/hex.h"
#include "x86_64/x86_64.h"

namespace ktrace::test {

namespace {

using Registers = arch::X86_64Registers;

constexpr std::uint64_t buffer = 0x5000, thread = 0x9000, guard = 0xfedcba9876543210, sp = 0x7ffe12345670,
                        pc = 0x401005;

struct JumpBuffer : testing::Test {
    JumpBuffer() {
        regs.di = buffer;
        regs.fs_base = thread;
        memory.put<std::uint64_t>(thread + 0x30, guard);
        for (std::uint64_t at = pc - 16; at < pc; at++) memory.put<std::uint8_t>(at, 0x90);
        memory.put<std::uint8_t>(pc - 5, 0xe8); // call
    }
    void keep(std::uint64_t kept_sp, std::uint64_t kept_pc) {
        memory.put<std::uint64_t>(buffer + 48, kept_sp);
        memory.put<std::uint64_t>(buffer + 56, kept_pc);
    }
    Registers regs;
    SparseMemory memory;
};

TEST_F(JumpBuffer, AsItIs) {
    keep(sp, pc);
    EXPECT_EQ(arch::X86_64::longjmp_sp(regs, memory), VirtAddr{sp});
}

TEST_F(JumpBuffer, Encrypted) {
    keep(std::rotl(sp ^ guard, 0x11), std::rotl(pc ^ guard, 0x11));
    EXPECT_EQ(arch::X86_64::longjmp_sp(regs, memory), VirtAddr{sp});
}

TEST_F(JumpBuffer, IsNoneWhereItsPcIsNotBehindACall) {
    keep(sp, pc - 1);
    EXPECT_EQ(arch::X86_64::longjmp_sp(regs, memory), std::nullopt);
    keep(sp, 0x123456789);
    EXPECT_EQ(arch::X86_64::longjmp_sp(regs, memory), std::nullopt);
    regs.di = 0x123;
    EXPECT_EQ(arch::X86_64::longjmp_sp(regs, memory), std::nullopt);
}

} // namespace

} // namespace ktrace::test
