// place, single steps and slot_position of arm64.
#include <gtest/gtest.h>

#include "words.h"

namespace ktrace::arch::test {
namespace {

constexpr VirtAddr site{0x7f0000400000}, near_slot{0x7f0000a00040}, far_slot{0x7f0010000000};

std::uint32_t word_of(const Placement &placed, std::size_t at) { return a64_word(placed.bytes, at); }

/// Where the branch at `at` of a slot leads.
VirtAddr branch_of(const Placement &placed, VirtAddr slot, std::size_t at) {
    std::uint32_t word = word_of(placed, at);
    EXPECT_EQ(a64_form(word), A64Form::branch);
    return slot + static_cast<std::int64_t>(at) + a64_displacement(word, A64Form::branch).value_or(0);
}

ByteMemory nothing(VirtAddr{0}, {});

TEST(Arm64Place, BoostIsTheCopyAndAJumpBack) {
    for (VirtAddr slot : {near_slot, site - 0x7000000}) {
        Placement placed = Arm64::place(plan(0xa9be7bfd, site), site, slot);
        EXPECT_EQ(placed.method, Method::boost);
        EXPECT_EQ(placed.copy_at, 0);
        EXPECT_EQ(placed.copy_end, 4);
        EXPECT_EQ(placed.size, 8);
        EXPECT_EQ(placed.scratch, -1);
        EXPECT_EQ(word_of(placed, 0), 0xa9be7bfdu);
        EXPECT_EQ(branch_of(placed, slot, 4), site + 4);
    }
}

TEST(Arm64Place, ReachIsHonoured) {
    auto planned = plan(0xa9be7bfd, site);
    for (std::int64_t distance : {std::int64_t{Arm64::reach}, -std::int64_t{Arm64::reach}}) {
        EXPECT_EQ(Arm64::place(planned, site, site + distance).method, Method::boost);
    }
}

TEST(Arm64Place, OutOfReachIsStepped) {
    Placement placed = Arm64::place(plan(0xa9be7bfd, site), site, far_slot);
    EXPECT_EQ(placed.method, Method::step);
    EXPECT_EQ(word_of(placed, 0), 0xa9be7bfdu);
    EXPECT_EQ(word_of(placed, 4), a64_word(Arm64::trap_bytes()));
}

TEST(Arm64Place, WhatLeavesForGoodHasNoJumpBack) {
    for (std::uint32_t word : {0xd61f087fu, 0xd65f03c0u, 0xd65f0bffu}) { // braaz x3, ret, retaa
        Placement placed = Arm64::place(plan(word, site), site, far_slot);
        EXPECT_EQ(placed.method, Method::boost);
        EXPECT_EQ(placed.size, 4);
        EXPECT_EQ(word_of(placed, 0), word);
    }
}

TEST(Arm64Place, SimdLiteralInReachIsRetargeted) {
    std::uint32_t ldr_q7 = 0x9c000087; // ldr q7, .+16
    for (VirtAddr slot : {site + 0x80000, site - 0x80000}) {
        Placement placed = Arm64::place(plan(ldr_q7, site), site, slot);
        EXPECT_EQ(placed.method, Method::boost);
        EXPECT_EQ(a64_form(word_of(placed, 0)), A64Form::literal_q);
        EXPECT_EQ(word_of(placed, 0) & 31, 7u);
        EXPECT_EQ(slot + *a64_displacement(word_of(placed, 0), A64Form::literal_q), site + 16);
        EXPECT_EQ(branch_of(placed, slot, 4), site + 4);
    }
}

TEST(Arm64Place, SimdLiteralOutOfReachGoesThroughAScratchRegister) {
    struct {
        std::uint32_t literal, through_x17;
    } rows[] = {
        {0x1c000087, 0xbd400227}, // ldr s7, .+16 → ldr s7, [x17]
        {0x5c000087, 0xfd400227}, // ldr d7, .+16 → ldr d7, [x17]
        {0x9c000087, 0x3dc00227}, // ldr q7, .+16 → ldr q7, [x17]
    };
    for (const auto &row : rows) {
        Placement placed = Arm64::place(plan(row.literal, site), site, near_slot);
        EXPECT_EQ(placed.method, Method::step);
        EXPECT_EQ(word_of(placed, 0), row.through_x17);
        EXPECT_EQ(placed.scratch, 17);
        EXPECT_EQ(placed.scratch_value, (site + 16).value);
    }
}

TEST(Arm64Place, SystemCallCopyGoesOnBehindTheSite) {
    Placement placed = Arm64::place(plan(0xd4000001, site), site, near_slot);
    EXPECT_EQ(placed.method, Method::syscall);
    EXPECT_EQ(word_of(placed, 0), 0xd4000001u);
    EXPECT_EQ(branch_of(placed, near_slot, 4), site + 4);
}

TEST(Arm64Place, RefusalAndEmulationTakeNoSlot) {
    Placement placed = Arm64::place(plan(0xd4207d00, site), site, near_slot);
    EXPECT_EQ(placed.method, Method::refuse);
    EXPECT_NE(placed.why, nullptr);
    EXPECT_EQ(placed.size, 0);
    EXPECT_EQ(Arm64::place(plan(0x14000400, site), site, near_slot).method, Method::emulate);
    EXPECT_EQ(Arm64::place(plan(0x14000400, site), site, near_slot).size, 0);
}

TEST(Arm64SlotPosition, OfEveryPc) {
    Placement placed = Arm64::place(plan(0xa9be7bfd, site), site, near_slot);
    EXPECT_EQ(Arm64::slot_position(placed, near_slot, near_slot - 4), SlotPosition::elsewhere);
    EXPECT_EQ(Arm64::slot_position(placed, near_slot, near_slot), SlotPosition::at_start);
    EXPECT_EQ(Arm64::slot_position(placed, near_slot, near_slot + 4), SlotPosition::after);
    EXPECT_EQ(Arm64::slot_position(placed, near_slot, near_slot + 8), SlotPosition::elsewhere);
    EXPECT_EQ(Arm64::slot_position(placed, near_slot, site), SlotPosition::elsewhere);
    EXPECT_EQ(Arm64::slot_position(Placement{}, near_slot, near_slot), SlotPosition::elsewhere);
}

TEST(Arm64Step, EndsBehindTheSite) {
    auto planned = plan(0xa9be7bfd, site);
    Placement placed = Arm64::place(planned, site, near_slot);
    Arm64Registers regs;
    regs.x[17] = 99;
    std::uint64_t old = Arm64::begin_step(placed, near_slot, regs);
    EXPECT_EQ(Arm64::pc(regs), near_slot);
    EXPECT_EQ(regs.x[17], 99u);
    EXPECT_EQ(Arm64::finish_step(planned, placed, site, near_slot, old, regs, nothing), Stepped::again)
        << "the copy has not run";
    Arm64::set_pc(regs, near_slot + 4);
    EXPECT_EQ(Arm64::finish_step(planned, placed, site, near_slot, old, regs, nothing), Stepped::done);
    EXPECT_EQ(Arm64::pc(regs), site + 4);
}

TEST(Arm64Step, ScratchRegisterIsGivenBack) {
    auto planned = plan(0x9c000087, site);
    Placement placed = Arm64::place(planned, site, near_slot);
    Arm64Registers before, regs;
    before.pc = site.value;
    before.x[17] = 0x1717171717171717;
    regs = before;
    std::uint64_t old = Arm64::begin_step(placed, near_slot, regs);
    EXPECT_EQ(regs.x[17], (site + 16).value);

    Arm64Registers aborted = regs; // a fault at the copy
    Arm64::abort_step(placed, site, near_slot, old, aborted);
    EXPECT_EQ(aborted, before);

    EXPECT_EQ(Arm64::finish_step(planned, placed, site, near_slot, old, regs, nothing), Stepped::again);
    EXPECT_EQ(regs.x[17], (site + 16).value) << "still needed";
    Arm64::set_pc(regs, near_slot + 4);
    EXPECT_EQ(Arm64::finish_step(planned, placed, site, near_slot, old, regs, nothing), Stepped::done);
    before.pc += 4;
    EXPECT_EQ(regs, before);
}

TEST(Arm64Step, AuthenticatedCallLinksToTheSite) {
    auto planned = plan(0xd73f08bf, site); // blraa x5, sp
    Placement placed = Arm64::place(planned, site, near_slot);
    ASSERT_EQ(placed.method, Method::step);
    Arm64Registers regs;
    std::uint64_t old = Arm64::begin_step(placed, near_slot, regs);
    regs.x[30] = near_slot.value + 4; // as the CPU leaves it
    regs.pc = 0x555000;
    EXPECT_EQ(Arm64::finish_step(planned, placed, site, near_slot, old, regs, nothing), Stepped::done);
    EXPECT_EQ(regs.pc, 0x555000u);
    EXPECT_EQ(regs.x[30], (site + 4).value);
}

TEST(Arm64Step, ReturnGoesWhereItGoes) {
    auto planned = plan(0xd65f03c0, site);
    Placement placed = Arm64::place(planned, site, near_slot);
    Arm64Registers regs;
    regs.x[30] = 0x777000;
    std::uint64_t old = Arm64::begin_step(placed, near_slot, regs);
    regs.pc = 0x777000;
    EXPECT_EQ(Arm64::finish_step(planned, placed, site, near_slot, old, regs, nothing), Stepped::done);
    EXPECT_EQ(regs.pc, 0x777000u);
    EXPECT_EQ(regs.x[30], 0x777000u);
}

TEST(Arm64Step, AbortBehindTheCopyGoesOnBehindTheSite) {
    Placement placed = Arm64::place(plan(0xd4000001, site), site, near_slot);
    Arm64Registers regs;
    Arm64::set_pc(regs, near_slot + 4);
    Arm64::abort_step(placed, site, near_slot, 0, regs);
    EXPECT_EQ(Arm64::pc(regs), site + 4);
    Arm64::set_pc(regs, VirtAddr{0x1234});
    Arm64::abort_step(placed, site, near_slot, 0, regs);
    EXPECT_EQ(Arm64::pc(regs), VirtAddr{0x1234});
}

TEST(Arm64Branch, EncodesItsWholeReach) {
    for (std::int64_t displacement :
         {std::int64_t{0}, std::int64_t{4}, std::int64_t{-4}, std::int64_t{0x7fffffc}, std::int64_t{-0x8000000}}) {
        auto word = a64_make_branch(displacement);
        ASSERT_TRUE(word);
        EXPECT_EQ(a64_displacement(*word, a64_form(*word)), displacement);
    }
    for (std::int64_t displacement : {std::int64_t{0x8000000}, std::int64_t{-0x8000004}, std::int64_t{2}})
        EXPECT_FALSE(a64_make_branch(displacement));
}

} // namespace
} // namespace ktrace::arch::test
