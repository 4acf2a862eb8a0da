// plan and probeable of arm64: which method each class of instruction gets. The words were assembled by
// aarch64-linux-gnu-as 2.40, but for those it does not know (marked).
#include <gtest/gtest.h>

#include <utility>

#include "words.h"

namespace ktrace::arch::test {
namespace {

constexpr VirtAddr site{0x400000};

struct Row {
    std::uint32_t word;
    const char *text;
};

class Arm64Boosted : public testing::TestWithParam<Row> {};

TEST_P(Arm64Boosted, RunsAsACopyThatGoesOn) {
    Arm64Plan planned = plan(GetParam().word, site);
    EXPECT_EQ(planned.method, Method::boost) << GetParam().text;
    EXPECT_EQ(planned.flow, Flow::next) << GetParam().text;
    EXPECT_EQ(planned.length, 4);
    EXPECT_EQ(planned.why, nullptr);
    EXPECT_FALSE(planned.target);
}

const Row boosted[] = {
    {0xa9be7bfd, "stp x29, x30, [sp, #-32]!"},
    {0xd10103ff, "sub sp, sp, #0x40"},
    // landing pads and hints
    {0xd503245f, "bti c"},
    {0xd503249f, "bti j"},
    {0xd50324df, "bti jc"},
    {0xd503233f, "paciasp"},
    {0xd50323bf, "autiasp"},
    {0xd50320ff, "xpaclri"},
    {0xd503201f, "nop"},
    {0xd503205f, "wfe"},
    {0xd503203f, "yield"},
    {0xd50320df, "dgh"},
    {0xd503229f, "csdb"},
    {0xd5031003, "wfet x3"},
    // data processing
    {0x8b020020, "add x0, x1, x2"},
    {0x9b020c20, "madd x0, x1, x2, x3"},
    {0x9a820020, "csel x0, x1, x2, eq"},
    {0xfa411000, "ccmp x0, x1, #0, ne"},
    {0x93c20c20, "extr x0, x1, x2, #3"},
    {0xf2a24680, "movk x0, #0x1234, lsl #16"},
    {0xb37d1020, "bfi x0, x1, #3, #5"},
    {0x9ac23020, "pacga x0, x1, x2"},
    {0xdac1901e, "autiasppc x0 (llvm)"},
    {0xdac18bfe, "pacia171615 (llvm)"},
    {0x9adf1020, "irg x0, x1"},
    // loads and stores
    {0xf8627820, "ldr x0, [x1, x2, lsl #3]"},
    {0xacc10400, "ldp q0, q1, [x0], #32"},
    {0xf8200041, "ldadd x0, x1, [x2]"},
    {0xf8208041, "swp x0, x1, [x2]"},
    {0xf8bfc020, "ldapr x0, [x1]"},
    {0xf8200420, "ldraa x0, [x1]"},
    {0xc8dffc20, "ldar x0, [x1]"},
    {0xc89ffc20, "stlr x0, [x1]"},
    {0xc8e0fc81, "casal x0, x1, [x4]"},
    {0x4860fc82, "caspal x0, x1, x2, x3, [x4]"},
    {0x4c402800, "ld1 {v0.4s-v3.4s}, [x0]"},
    {0xd9200820, "stg x0, [x1]"},
    {0xf83fd100, "ld64b x0, [x8]"},
    // floating point, SIMD, SVE, SME
    {0x1e622820, "fadd d0, d1, d2"},
    {0x4e22cc20, "fmla v0.4s, v1.4s, v2.4s"},
    {0x4e284820, "aese v0.16b, v1.16b"},
    {0x04a20020, "add z0.s, z1.s, z2.s"},
    {0x04a2a020, "adr z0.s, [z1.s, z2.s]"},
    {0x25a11c00, "whilelo p0.s, x0, x1"},
    {0x80812000, "fmopa za0.s, p0/m, p1/m, z0.s, z1.s"},
    {0xd503477f, "smstart"},
    {0xd503467f, "smstop"},
    // system
    {0xd5033f5f, "clrex"},
    {0xd5033f9f, "dsb sy"},
    {0xd5033e3f, "dsb synxs"},
    {0xd5033bbf, "dmb ish"},
    {0xd5033fdf, "isb"},
    {0xd50330ff, "sb"},
    {0xd503415f, "msr dit, #1"},
    {0xd503419f, "msr tco, #1"},
    {0xd503413f, "msr ssbs, #1"},
    {0xd500401f, "cfinv"},
    {0xd500405f, "axflag"},
    {0xd53bd040, "mrs x0, tpidr_el0"},
    {0xd53be040, "mrs x0, cntvct_el0"},
    {0xd53b4200, "mrs x0, nzcv"},
    {0xd51b4200, "msr nzcv, x0"},
    {0xd51bd040, "msr tpidr_el0, x0"},
    {0xd51b4400, "msr fpcr, x0"},
    {0xd5380000, "mrs x0, midr_el1: Linux reads ID registers for EL0"},
    {0xd5380400, "mrs x0, id_aa64pfr0_el1"},
    {0xd50b7420, "dc zva, x0"},
    {0xd50b7520, "ic ivau, x0"},
};
INSTANTIATE_TEST_SUITE_P(All, Arm64Boosted, testing::ValuesIn(boosted));

struct Refused {
    std::uint32_t word;
    const char *text;
    const char *why; // a part of the clause
};

class Arm64Refused : public testing::TestWithParam<Refused> {};

TEST_P(Arm64Refused, SaysWhy) {
    Arm64Plan planned = plan(GetParam().word, site);
    EXPECT_EQ(planned.method, Method::refuse) << GetParam().text;
    ASSERT_NE(planned.why, nullptr) << GetParam().text;
    EXPECT_NE(std::string_view(planned.why).find(GetParam().why), std::string_view::npos) << planned.why;
}

const Refused refused[] = {
    {0xd4207d00, "brk #1000", "breakpoint"},
    {0xd4400020, "hlt #1", "halt"},
    {0xd4000022, "hvc #1", "privileged"},
    {0xd4000023, "smc #1", "privileged"},
    {0xd4a00001, "dcps1", "privileged"},
    {0xd69f03e0, "eret", "privileged"},
    {0xd69f0bff, "eretaa", "privileged"},
    {0xd69f0fff, "eretab", "privileged"},
    {0xd6bf03e0, "drps", "privileged"},
    {0xd50342df, "msr daifset, #2", "privileged"},
    {0xd50041bf, "msr spsel, #1", "privileged"},
    {0xd5381000, "mrs x0, sctlr_el1", "privileged"},
    {0xd5384240, "mrs x0, currentel", "privileged"},
    {0xd5181000, "msr sctlr_el1, x0", "privileged"},
    {0xd508871f, "tlbi vmalle1", "privileged"},
    {0xd5087800, "at s1e1r, x0", "privileged"},
    {0xd5400000, "sysp/msrr space", "privileged"},
    {0xd5233063, "tstart x3", "transaction"},
    {0xd5233163, "ttest x3", "transaction"},
    {0xd503307f, "tcommit", "transaction"},
    {0xd46000a0, "tcancel #5", "transaction"},
    {0xc85f7c20, "ldxr x0, [x1]", "exclusive"},
    {0x085f7c20, "ldxrb w0, [x1]", "exclusive"},
    {0xc8007c41, "stxr w0, x1, [x2]", "exclusive"},
    {0xc87f8440, "ldaxp x0, x1, [x2]", "exclusive"},
    {0xc8208c41, "stlxp w0, x1, x3, [x2]", "exclusive"},
    {0x0420bc20, "movprfx z0, z1", "movprfx"},
    {0x04d13fff, "movprfx z31.d, p7/m, z31.d", "movprfx"},
    {0x04902443, "movprfx z3.s, p1/z, z2.s", "movprfx"},
    {0x19010440, "cpyfp [x0]!, [x1]!, x2!", "memory copy"},
    {0x19410440, "cpyfm [x0]!, [x1]!, x2!", "memory copy"},
    {0x1d818440, "cpyern [x0]!, [x1]!, x2!", "memory copy"},
    {0x19c20420, "setp [x0]!, x1!, x2", "memory copy"},
    {0x1dc28420, "setge [x0]!, x1!, x2", "memory copy"},
    {0xdac1a3fe, "paciasppc (llvm)", "own address"},
    {0xdac187fe, "pacnbibsppc (llvm)", "own address"},
    {0xf380009f, "autiasppc label (llvm)", "own address"},
    {0xf3bfffff, "autibsppc label (llvm)", "own address"},
    {0x5500021f, "retaasppc label (llvm)", "own address"},
    {0x5520023f, "retabsppc label (llvm)", "own address"},
    {0xd50324ff, "pacm (llvm)", "own address"},
    {0x00000000, "udf #0", "undefined"},
    {0x0000beef, "udf #0xbeef", "undefined"},
    {0x02000000, "reserved", "no instruction"},
    {0x00010000, "reserved", "no instruction"},
    {0xdc000000, "unallocated literal", "no instruction"},
    {0x74010000, "branch group, unknown", "no instruction"},
};
INSTANTIATE_TEST_SUITE_P(All, Arm64Refused, testing::ValuesIn(refused));

TEST(Arm64Plan, DirectBranchesTellTheirTargets) {
    struct {
        std::uint32_t word;
        std::int64_t displacement;
        Flow flow;
    } rows[] = {
        {0x14000400, 0x1000, Flow::jump},      // b .+0x1000
        {0x17fffffe, -8, Flow::jump},          // b .-8
        {0x95ffffff, 0x7fffffc, Flow::call},   // bl .+0x7fffffc
        {0x96000000, -0x8000000, Flow::call},  // bl .-0x8000000
        {0x54000080, 16, Flow::branch},        // b.eq .+16
        {0x5480000d, -0x100000, Flow::branch}, // b.le .-0x100000
        {0x54000090, 16, Flow::branch},        // bc.eq .+16
        {0x34000043, 8, Flow::branch},         // cbz w3, .+8
        {0xb500005f, 8, Flow::branch},         // cbnz xzr, .+8
        {0x35ffffc3, -8, Flow::branch},        // cbnz w3, .-8
        {0xb6280044, 8, Flow::branch},         // tbz x4, #37, .+8
        {0xb7fc0004, -0x8000, Flow::branch},   // tbnz x4, #63, .-0x8000
    };
    for (const auto &row : rows) {
        VirtAddr at{0x7f0012345678};
        Arm64Plan planned = plan(row.word, at);
        EXPECT_EQ(planned.method, Method::emulate) << std::hex << row.word;
        EXPECT_EQ(planned.flow, row.flow) << std::hex << row.word;
        EXPECT_EQ(planned.target, at + row.displacement) << std::hex << row.word;
    }
}

TEST(Arm64Plan, IndirectCallsAndJumpsAreEmulated) {
    for (const auto &[word, flow] : {std::pair{0xd63f0100u, Flow::call},    // blr x8
                                     std::pair{0xd61f0200u, Flow::jump},    // br x16
                                     std::pair{0xd61f0060u, Flow::jump}}) { // br x3
        Arm64Plan planned = plan(word, site);
        EXPECT_EQ(planned.method, Method::emulate) << std::hex << word;
        EXPECT_EQ(planned.flow, flow) << std::hex << word;
        EXPECT_FALSE(planned.target);
    }
}

TEST(Arm64Plan, AuthenticatedJumpsAndReturnsRunAsCopies) {
    struct {
        std::uint32_t word;
        Flow flow;
    } rows[] = {
        {0xd61f087f, Flow::jump}, // braaz x3
        {0xd71f0864, Flow::jump}, // braa x3, x4
        {0xd65f03c0, Flow::ret},  // ret
        {0xd65f00a0, Flow::ret},  // ret x5
        {0xd65f0bff, Flow::ret},  // retaa
        {0xd65f0fff, Flow::ret},  // retab
        {0xd65f0be2, Flow::ret},  // retaasppc x2 (llvm)
        {0xd65f0fe3, Flow::ret},  // retabsppc x3 (llvm)
    };
    for (const auto &row : rows) {
        EXPECT_EQ(plan(row.word, site).method, Method::boost) << std::hex << row.word;
        EXPECT_EQ(plan(row.word, site).flow, row.flow) << std::hex << row.word;
    }
}

TEST(Arm64Plan, AuthenticatedCallsAreStepped) {
    for (std::uint32_t word : {0xd63f08bfu, 0xd63f0cbfu, 0xd73f08bfu, 0xd73f0c85u}) { // blraaz, blrabz, blraa, blrab
        EXPECT_EQ(plan(word, site).method, Method::step) << std::hex << word;
        EXPECT_EQ(plan(word, site).flow, Flow::call) << std::hex << word;
    }
}

TEST(Arm64Plan, PcRelativeDataIsEmulated) {
    for (std::uint32_t word : {0x7007ffe0u, 0x90000002u, 0x18000041u, 0x58000003u, 0x98ffffc2u, 0xd8000000u}) {
        Arm64Plan planned = plan(word, site); // adr, adrp, ldr w, ldr x, ldrsw, prfm
        EXPECT_EQ(planned.method, Method::emulate) << std::hex << word;
        EXPECT_EQ(planned.flow, Flow::next) << std::hex << word;
        EXPECT_FALSE(planned.target);
    }
}

TEST(Arm64Plan, SystemCallsOfEveryImmediate) {
    for (std::uint32_t word : {0xd4000001u, 0xd4001001u}) {
        EXPECT_EQ(plan(word, site).method, Method::syscall);
        EXPECT_EQ(plan(word, site).flow, Flow::syscall);
    }
}

TEST(Arm64Plan, CutOffCodeIsRefused) {
    auto three = code({0xd503201f});
    three.pop_back();
    EXPECT_EQ(Arm64::plan(three, site).method, Method::refuse);
    EXPECT_EQ(Arm64::plan({}, site).method, Method::refuse);
}

TEST(Arm64Plan, UnalignedAddressIsRefused) { EXPECT_EQ(plan(0xd503201f, site + 2).method, Method::refuse); }

TEST(Arm64Probeable, OnlyMultiplesOfFour) {
    auto function = code({0xd503201f, 0xd503201f, 0xd65f03c0});
    EXPECT_TRUE(Arm64::probeable(function, site, 0).ok);
    EXPECT_TRUE(Arm64::probeable(function, site, 8).ok);
    Probeable between = Arm64::probeable(function, site, 6);
    EXPECT_FALSE(between.ok);
    EXPECT_NE(between.why, nullptr);
    EXPECT_EQ(between.before, 4u);
    EXPECT_EQ(between.after, 8u);
    Probeable last = Arm64::probeable(function, site, 9);
    EXPECT_EQ(last.before, 8u);
    EXPECT_FALSE(last.after) << "nothing starts behind the last instruction";
    for (std::uint64_t beyond : {12u, 13u, 4000u}) EXPECT_FALSE(Arm64::probeable(function, site, beyond).ok);
    EXPECT_FALSE(Arm64::probeable(function, site, ~std::uint64_t{3}).ok);
}

TEST(Arm64Probeable, RefusesWhatPlanRefuses) {
    Probeable answer = Arm64::probeable(code({0xd503201f, 0xd4207d00}), site, 4);
    EXPECT_FALSE(answer.ok);
    EXPECT_NE(answer.why, nullptr);
}

// An atomic add without LSE:
//    0  nop
//    4  ldxr x0, [x1]
//    8  add x0, x0, x2
//   12  stxr w3, x0, [x1]
//   16  cbnz w3, 4
//   20  ret
TEST(Arm64Probeable, NotBetweenExclusives) {
    auto function = code({0xd503201f, 0xc85f7c20, 0x8b020000, 0xc8037c20, 0x35ffffa3, 0xd65f03c0});
    EXPECT_TRUE(Arm64::probeable(function, site, 0).ok);
    for (std::uint64_t offset : {4u, 8u, 12u}) {
        EXPECT_FALSE(Arm64::probeable(function, site, offset).ok) << offset;
        EXPECT_NE(Arm64::probeable(function, site, offset).why, nullptr);
    }
    EXPECT_TRUE(Arm64::probeable(function, site, 16).ok);
    EXPECT_TRUE(Arm64::probeable(function, site, 20).ok);
}

// The store of a compare-and-swap moved behind a return:
//    0  ldaxr x0, [x1]
//    4  b.eq 16
//    8  clrex
//   12  ret
//   16  nop
//   20  stlxr w3, x2, [x1]
//   24  ret
TEST(Arm64Probeable, NotBeforeAStoreExclusiveElsewhere) {
    auto function = code({0xc85ffc20, 0x54000060, 0xd5033f5f, 0xd65f03c0, 0xd503201f, 0xc803fc22, 0xd65f03c0});
    EXPECT_FALSE(Arm64::probeable(function, site, 4).ok);
    EXPECT_FALSE(Arm64::probeable(function, site, 8).ok);
    EXPECT_TRUE(Arm64::probeable(function, site, 12).ok);
    EXPECT_FALSE(Arm64::probeable(function, site, 16).ok);
    EXPECT_TRUE(Arm64::probeable(function, site, 24).ok);
}

TEST(Arm64Probeable, NotBehindPacm) {
    auto function = code({0xd50324ff, 0xd503233f, 0xd503201f}); // pacm; paciasp; nop
    EXPECT_FALSE(Arm64::probeable(function, site, 4).ok);
    EXPECT_TRUE(Arm64::probeable(function, site, 8).ok);
}

TEST(Arm64Trap, IsABreakpointThatReportsItsOwnAddress) {
    EXPECT_EQ(Arm64::trap_bytes().size(), 4u);
    EXPECT_EQ(a64_form(a64_word(Arm64::trap_bytes())), A64Form::breakpoint);
    EXPECT_EQ(Arm64::trap_address(site), site);
}

} // namespace
} // namespace ktrace::arch::test
