// Emulated transfers on registers and a few words of memory.
#include <gtest/gtest.h>

#include "tests/isa/x86_64/hex.h"
#include "x86_64/x86_64.h"

namespace ktrace::test {

namespace {

using arch::Emulated;
using arch::X86_64;
using Registers = arch::X86_64Registers;
using Fault = Emulated::Fault;

constexpr VirtAddr site{0x401000};
constexpr std::uint64_t stack = 0x7ff000;

class X86Emulate : public ::testing::Test {
  protected:
    Emulated run(const char *code) { return X86_64::emulate(X86_64::plan(hex(code), site), site, regs, memory); }

    Registers regs;
    SparseMemory memory;
};

TEST_F(X86Emulate, BranchesOnEveryCondition) {
    constexpr std::uint64_t carry = 1, parity = 4, zero = 0x40, sign = 0x80, overflow = 0x800;
    struct Row {
        int condition;
        std::uint64_t flags;
        bool taken;
    };
    constexpr Row rows[] = {
        {0x0, overflow, true},
        {0x0, 0, false},
        {0x2, carry, true},
        {0x2, 0, false},
        {0x4, zero, true},
        {0x4, 0, false},
        {0x6, carry, true},
        {0x6, zero, true},
        {0x6, 0, false},
        {0x8, sign, true},
        {0x8, 0, false},
        {0xa, parity, true},
        {0xa, 0, false},
        {0xc, sign, true},
        {0xc, overflow, true},
        {0xc, sign | overflow, false},
        {0xc, 0, false},
        {0xe, zero, true},
        {0xe, sign, true},
        {0xe, overflow, true},
        {0xe, sign | overflow, false},
        {0xe, 0, false},
    };
    for (const Row &row : rows) {
        for (int inverted : {0, 1}) {
            const std::byte code[] = {static_cast<std::byte>(0x70 + row.condition + inverted), std::byte{0x10}};
            regs = {};
            regs.flags = row.flags;
            X86_64::emulate(X86_64::plan(code, site), site, regs, memory);
            const bool taken = row.taken != (inverted != 0);
            EXPECT_EQ(regs.ip, taken ? 0x401012u : 0x401002u) << row.condition + inverted << " on " << row.flags;
        }
    }
}

TEST_F(X86Emulate, AJumpToItselfStays) {
    run("eb fe");
    EXPECT_EQ(regs.ip, site.value);
}

TEST_F(X86Emulate, LoopCountsDown) {
    regs.cx = 2;
    run("e2 fe");
    EXPECT_EQ(regs.cx, 1u);
    EXPECT_EQ(regs.ip, site.value);
    run("e2 fe");
    EXPECT_EQ(regs.cx, 0u);
    EXPECT_EQ(regs.ip, site.value + 2);
}

TEST_F(X86Emulate, NarrowLoopClearsTheHighHalf) {
    regs.cx = 0x1'0000'0000;
    run("67 e2 10");
    EXPECT_EQ(regs.cx, 0xffffffffu);
    EXPECT_EQ(regs.ip, site.value + 0x13);
}

TEST_F(X86Emulate, BranchesOnACountOfZero) {
    regs.cx = 0x1'0000'0000;
    run("e3 10");
    EXPECT_EQ(regs.ip, site.value + 2);
    run("67 e3 10");
    EXPECT_EQ(regs.ip, site.value + 0x13);
}

TEST_F(X86Emulate, ACallPushesItsReturnAddress) {
    regs.sp = stack;
    memory.put<std::uint64_t>(stack - 8, 0);
    run("e8 00 01 00 00");
    EXPECT_EQ(regs.ip, 0x401105u);
    EXPECT_EQ(regs.sp, stack - 8);
    EXPECT_EQ(memory.read_value<std::uint64_t>(VirtAddr{stack - 8}), 0x401005u);
}

TEST_F(X86Emulate, ACallThroughTheStackReadsItsTargetFirst) {
    regs.sp = stack;
    memory.put<std::uint64_t>(stack - 8, 0x1111);
    memory.put<std::uint64_t>(stack, 0x402000);
    run("ff 14 24"); // call *[rsp]
    EXPECT_EQ(regs.ip, 0x402000u);
    regs.sp = stack;
    run("ff d4"); // call *rsp
    EXPECT_EQ(regs.ip, stack);
}

TEST_F(X86Emulate, AddressesMemoryInAllItsForms) {
    memory.put<std::uint64_t>(0x500010, 0x402000);
    struct Row {
        const char *what, *code;
    };
    constexpr Row rows[] = {
        {"jmp *[rax+0x10]", "ff 60 10"},
        {"jmp *[rax+rcx*4+8]", "ff 64 88 08"},
        {"jmp *[rcx*8+0x500000]", "ff 24 cd 00 00 50 00"},
        {"jmp *[0x500010]", "ff 24 25 10 00 50 00"},
        {"jmp *[rip+0xff00a]", "ff 25 0a f0 0f 00"},
        {"jmp *fs:[rcx]", "64 ff 21"},
        {"jmp *gs:[0x10]", "65 ff 24 25 10 00 00 00"},
        {"jmp *[edx+0x10]", "67 ff 62 10"},
        {"jmp *[r12+0x10]", "41 ff 64 24 10"},
    };
    for (const Row &row : rows) {
        regs = {};
        regs.ax = regs.r12 = 0x500000;
        regs.cx = 2;
        regs.dx = 0xffffffff'00500000;
        regs.fs_base = 0x50000e;
        regs.gs_base = 0x500000;
        run(row.code);
        EXPECT_EQ(regs.ip, 0x402000u) << row.what;
    }
}

TEST_F(X86Emulate, AFaultChangesNothing) {
    regs.ax = 0x500000;
    regs.sp = stack;
    const Registers before = regs;
    const Emulated no_target = run("ff 10"); // call *[rax]
    EXPECT_EQ(no_target.outcome, Emulated::Outcome::fault);
    EXPECT_EQ(no_target.fault_address, VirtAddr{0x500000});
    EXPECT_EQ(no_target.fault, Fault::page);
    EXPECT_EQ(regs, before);
    const Emulated no_stack = run("e8 00 00 00 00");
    EXPECT_EQ(no_stack.outcome, Emulated::Outcome::fault);
    EXPECT_EQ(no_stack.fault_address, VirtAddr{stack - 8});
    EXPECT_EQ(regs, before);
}

TEST_F(X86Emulate, TellsFaultsWithoutAnAddress) {
    regs.ax = 0x8000'0000'0000'0000;
    EXPECT_EQ(run("ff e0").fault, Fault::protection); // to nowhere
    EXPECT_EQ(run("ff 20").fault, Fault::protection); // from nowhere
    regs.sp = 0x8000'0000'0000'0000;
    EXPECT_EQ(run("e8 00 00 00 00").fault, Fault::stack);
    EXPECT_EQ(run("e8 00 00 00 00").fault_address, VirtAddr{});
}

TEST_F(X86Emulate, JumpsToMappedAddressesOf57Bits) {
    regs.ax = 0x00ff'0000'0000'0000;
    memory.put<std::uint8_t>(regs.ax, 0x90);
    EXPECT_EQ(run("ff e0").outcome, Emulated::Outcome::done);
    EXPECT_EQ(regs.ip, 0x00ff'0000'0000'0000u);
}

} // namespace

} // namespace ktrace::test
