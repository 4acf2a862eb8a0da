// emulate of arm64, a test per class of instruction: what it does to the registers and to nothing else.
#include <gtest/gtest.h>

#include "words.h"

namespace ktrace::arch::test {
namespace {

constexpr VirtAddr site{0x7f0000400ff8};
constexpr std::uint64_t n_flag = 1ull << 31, z_flag = 1ull << 30, c_flag = 1ull << 29, v_flag = 1ull << 28;
constexpr std::uint64_t btype = 3ull << 10;

Arm64Registers distinct() {
    Arm64Registers regs;
    for (std::uint64_t n = 0; n < 31; ++n) regs.x[n] = 0x1111000000000000 + n;
    regs.sp = 0x7ffffff0;
    regs.pc = site.value;
    regs.pstate = c_flag;
    return regs;
}

/// Emulates `word` at the site with no memory; `regs` change.
void run(std::uint32_t word, Arm64Registers &regs) {
    ByteMemory nothing(VirtAddr{0}, {});
    auto planned = plan(word, site);
    ASSERT_EQ(planned.method, Method::emulate);
    ASSERT_EQ(Arm64::emulate(planned, site, regs, nothing).outcome, Emulated::Outcome::done);
}

/// Expects `word` to set the pc to site + displacement and register `n` (if any) to `value`, and nothing else.
void expect_effect(std::uint32_t word, Arm64Registers before, std::int64_t displacement, int n = -1,
                   std::uint64_t value = 0) {
    Arm64Registers expected = before;
    expected.pc = (site + displacement).value;
    if (n >= 0) expected.x[n] = value;
    run(word, before);
    EXPECT_EQ(before, expected) << std::hex << word;
}

TEST(Arm64Emulate, Branch) {
    expect_effect(0x14000400, distinct(), 0x1000); // b .+0x1000
    expect_effect(0x17fffffe, distinct(), -8);     // b .-8
}

TEST(Arm64Emulate, BranchLink) {
    expect_effect(0x95ffffff, distinct(), 0x7fffffc, 30, (site + 4).value);  // bl .+0x7fffffc
    expect_effect(0x96000000, distinct(), -0x8000000, 30, (site + 4).value); // bl .-0x8000000
}

TEST(Arm64Emulate, BranchLinkRegister) {
    auto regs = distinct();
    regs.x[8] = 0x555000;
    run(0xd63f0100, regs); // blr x8
    EXPECT_EQ(regs.pc, 0x555000u);
    EXPECT_EQ(regs.x[30], (site + 4).value);
    EXPECT_EQ(regs.pstate & btype, 2u << 10) << "a landing pad for calls is asked for";

    regs = distinct();
    regs.x[30] = 0x556000;
    run(0xd63f03c0, regs); // blr x30
    EXPECT_EQ(regs.pc, 0x556000u);
    EXPECT_EQ(regs.x[30], (site + 4).value);
}

TEST(Arm64Emulate, BranchRegister) {
    auto regs = distinct();
    const std::uint64_t link = regs.x[30];
    regs.x[16] = 0x555000;
    run(0xd61f0200, regs); // br x16
    EXPECT_EQ(regs.pc, 0x555000u);
    EXPECT_EQ(regs.x[30], link);
    EXPECT_EQ(regs.pstate & btype, 1u << 10) << "any landing pad will do";
}

TEST(Arm64Emulate, BranchToATaggedAddressDropsTheTag) {
    auto regs = distinct();
    regs.x[8] = 0xab00000000555000;
    run(0xd63f0100, regs);
    EXPECT_EQ(regs.pc, 0x555000u);
    regs.x[8] = 0x00ff000000555000;
    run(0xd63f0100, regs);
    EXPECT_EQ(regs.pc, 0xffff000000555000u) << "sign extended from bit 55";
}

TEST(Arm64Emulate, BranchTypeIsClearedLikeByEveryInstruction) {
    for (std::uint32_t word : {0x14000400u, 0x95ffffffu, 0x7007ffe0u, 0x54000080u, 0xd8000000u}) {
        auto regs = distinct();
        regs.pstate |= btype;
        run(word, regs);
        EXPECT_EQ(regs.pstate, c_flag) << std::hex << word;
    }
}

TEST(Arm64Emulate, ConditionalBranchOfAllConditionsAndFlags) {
    for (std::uint64_t flags = 0; flags < 16; ++flags) {
        bool n = flags & 8, z = flags & 4, c = flags & 2, v = flags & 1;
        const bool holds[16] = {z,          !z,     c,      !c,           n,           !n,   v,   !v, c && !z,
                                !(c && !z), n == v, n != v, !z && n == v, z || n != v, true, true};
        for (std::uint32_t condition = 0; condition < 16; ++condition) {
            auto regs = distinct();
            regs.pstate = flags << 28;
            expect_effect(0x54000080 | condition, regs, holds[condition] ? 16 : 4); // b.cond .+16
            expect_effect(0x54000090 | condition, regs, holds[condition] ? 16 : 4); // bc.cond .+16
        }
    }
}

TEST(Arm64Emulate, CompareAndBranch) {
    auto regs = distinct();
    regs.x[3] = 0x100000000;             // zero as w3, not as x3
    expect_effect(0x34000043, regs, 8);  // cbz w3, .+8
    expect_effect(0xb4000043, regs, 4);  // cbz x3, .+8
    expect_effect(0x35ffffc3, regs, 4);  // cbnz w3, .-8
    expect_effect(0xb5ffffc3, regs, -8); // cbnz x3, .-8
    expect_effect(0xb500005f, regs, 4);  // cbnz xzr, .+8
    expect_effect(0xb400005f, regs, 8);  // cbz xzr, .+8
}

TEST(Arm64Emulate, TestAndBranch) {
    auto regs = distinct();
    regs.x[4] = 1ull << 37;
    expect_effect(0x36280044, regs, 8); // tbz w4, #5, .+8
    expect_effect(0xb6280044, regs, 4); // tbz x4, #37, .+8
    expect_effect(0xb7280044, regs, 8); // tbnz x4, #37, .+8
    expect_effect(0xb7fc0004, regs, 4); // tbnz x4, #63, .-0x8000
    regs.x[4] = 1ull << 63;
    expect_effect(0xb7fc0004, regs, -0x8000);
}

TEST(Arm64Emulate, Adr) {
    expect_effect(0x7007ffe0, distinct(), 4, 0, (site + 0xffff).value); // adr x0, .+0xffff
    expect_effect(0x70ffffe1, distinct(), 4, 1, (site - 1).value);      // adr x1, .-1
    expect_effect(0x1000003f, distinct(), 4);                           // adr xzr, .+4
}

TEST(Arm64Emulate, AdrpCountsFromThePage) {
    expect_effect(0x90000002, distinct(), 4, 2, 0x7f0000400000); // adrp x2, .
    expect_effect(0xb0000002, distinct(), 4, 2, 0x7f0000401000); // adrp x2, .+0x1000
    expect_effect(0x90800002, distinct(), 4, 2, 0x7eff00400000); // adrp x2, .-0x100000000
    expect_effect(0xf07fffe2, distinct(), 4, 2, 0x7f01003ff000); // adrp x2, .+0xfffff000
}

class Arm64Literal : public testing::Test {
  protected:
    // ff ee dd cc bb aa 99 88 at site + 8
    ByteMemory memory{site + 8, code({0xccddeeff, 0x8899aabb})};
    Arm64Registers regs = distinct();
    Emulated load(std::uint32_t word) { return Arm64::emulate(plan(word, site), site, regs, memory); }
};

TEST_F(Arm64Literal, LoadsAWordZeroExtended) {
    EXPECT_EQ(load(0x18000041).outcome, Emulated::Outcome::done); // ldr w1, .+8
    EXPECT_EQ(regs.x[1], 0xccddeeffu);
    EXPECT_EQ(regs.pc, (site + 4).value);
}

TEST_F(Arm64Literal, LoadsADoubleword) {
    EXPECT_EQ(load(0x58000043).outcome, Emulated::Outcome::done); // ldr x3, .+8
    EXPECT_EQ(regs.x[3], 0x8899aabbccddeeffu);
}

TEST_F(Arm64Literal, LoadsAWordSignExtended) {
    EXPECT_EQ(load(0x98000042).outcome, Emulated::Outcome::done); // ldrsw x2, .+8
    EXPECT_EQ(regs.x[2], 0xffffffffccddeeffu);
}

TEST_F(Arm64Literal, LoadIntoTheZeroRegisterChangesNothing) {
    auto expected = regs;
    expected.pc += 4;
    EXPECT_EQ(load(0x1800005f).outcome, Emulated::Outcome::done); // ldr wzr, .+8
    EXPECT_EQ(regs, expected);
}

TEST_F(Arm64Literal, FaultLeavesTheRegistersAndNamesTheByte) {
    auto before = regs;
    Emulated emulated = load(0x58000063); // ldr x3, .+12: four bytes are there
    EXPECT_EQ(emulated.outcome, Emulated::Outcome::fault);
    EXPECT_EQ(emulated.fault_address, site + 16);
    EXPECT_EQ(regs, before);
    emulated = load(0x98ffffc2); // ldrsw x2, .-8
    EXPECT_EQ(emulated.outcome, Emulated::Outcome::fault);
    EXPECT_EQ(emulated.fault_address, site - 8);
    EXPECT_EQ(regs, before);
}

TEST_F(Arm64Literal, PrefetchOfUnmappedMemoryIsANop) {
    auto expected = regs;
    expected.pc += 4;
    EXPECT_EQ(load(0xd8ffffc0).outcome, Emulated::Outcome::done); // prfm pldl1keep, .-8
    EXPECT_EQ(regs, expected);
}

TEST(Arm64Emulate, FlagsInPstate) {
    EXPECT_TRUE(a64_condition_holds(0, z_flag));
    EXPECT_TRUE(a64_condition_holds(2, c_flag));
    EXPECT_TRUE(a64_condition_holds(4, n_flag));
    EXPECT_TRUE(a64_condition_holds(6, v_flag));
}

} // namespace
} // namespace ktrace::arch::test
