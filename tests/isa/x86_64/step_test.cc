// Single steps and system calls from a slot, on a stage: what the processor and the kernel do there on their own, which
// the copy must not show.
#if defined(__x86_64__)

#include <csignal>
#include <cstring>
#include <gtest/gtest.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/isa/x86_64/hex.h"
#include "tests/isa/x86_64/stage.h"
#include "x86_64/general.h"
#include "x86_64/x86_64.h"

namespace ktrace::test {

namespace {

using arch::Method;
using arch::Stepped;
using arch::X86_64;
using Registers = arch::X86_64Registers;

constexpr VirtAddr site{Stage::site}, slot{Stage::near_slot};

class X86Step : public ::testing::Test {
  protected:
    void SetUp() override {
        regs = stage.initial_registers();
        regs.sp = Stage::stack_at + 0x1000;
        stage.set_memory(std::vector<std::byte>(Stage::data_size + Stage::stack_size));
    }

    /// The instruction at the front of `code`, at the site and in the slot.
    void prepare(const char *code) {
        stage.set_code(hex(code));
        plan = X86_64::plan(hex(code), site);
        placed = X86_64::place(plan, site, slot);
        stage.set_slot(slot.value, {placed.bytes, placed.size});
    }

    /// Steps the copy to its end; returns how many steps that took.
    int step() {
        const std::uint64_t old = X86_64::begin_step(placed, slot, regs);
        int steps = 0;
        Stepped outcome = Stepped::again;
        while (outcome == Stepped::again) {
            stage.set_registers(regs);
            const Ending ending = stage.run(PTRACE_SINGLESTEP);
            EXPECT_EQ(ending.signal, SIGTRAP);
            if (ending.signal != SIGTRAP) return -1;
            regs = ending.regs;
            ++steps;
            outcome = X86_64::finish_step(plan, placed, site, slot, old, regs, stage);
        }
        return steps;
    }

    Stage stage;
    Registers regs;
    arch::X86_64Plan plan;
    arch::Placement placed;
};

TEST_F(X86Step, GoesOverTwoInstructionsAfterALoadOfTheStackSegment) {
    prepare("8e d0"); // mov ss, eax
    regs.ax = regs.ss;
    step();
    EXPECT_EQ(regs.ip, site.value + 2);
}

TEST_F(X86Step, RepeatsUntilAStringInstructionIsComplete) {
    prepare("f3 aa"); // rep stosb
    regs.ax = 0x5a;
    regs.cx = 5;
    regs.di = Stage::data_at;
    EXPECT_TRUE(plan.repeats);
    EXPECT_EQ(step(), 5);
    EXPECT_EQ(regs.ip, site.value + 2);
    EXPECT_EQ(stage.read_value<std::uint64_t>(VirtAddr{Stage::data_at}), 0x5a'5a5a'5a5au);
}

TEST_F(X86Step, PushedFlagsDoNotShowTheStep) {
    prepare("9c"); // pushfq
    const std::uint64_t before = regs.flags;
    step();
    EXPECT_EQ(stage.read_value<std::uint64_t>(VirtAddr{regs.sp}), before);
}

TEST_F(X86Step, PushedFlagsKeepTheProgramsOwnTrapFlag) {
    prepare("9c");
    regs.flags |= arch::x86::flag_trap;
    const std::uint64_t before = regs.flags;
    step();
    EXPECT_EQ(stage.read_value<std::uint64_t>(VirtAddr{regs.sp}), before);
}

TEST_F(X86Step, APoppedTrapFlagTrapsBehindTheNextInstruction) {
    prepare("9d 90 90"); // popfq; nop; nop
    ASSERT_EQ(plan.method, Method::step);
    stage.write_value<std::uint64_t>(VirtAddr{regs.sp}, regs.flags | arch::x86::flag_trap);
    step();
    EXPECT_EQ(regs.ip, site.value + 1);
    stage.set_registers(regs);
    const Ending native = stage.run(PTRACE_CONT);
    EXPECT_EQ(native.signal, SIGTRAP);
    EXPECT_EQ(native.regs.ip, site.value + 2);
}

TEST_F(X86Step, AbortGoesBackToTheSite) {
    prepare("48 8b 05 00 00 00 40"); // mov rax, [rip + 0x40000000]
    placed = X86_64::place(plan, site, VirtAddr{Stage::far_slot});
    ASSERT_GE(placed.scratch, 0);
    const Registers before = regs;
    const std::uint64_t old = X86_64::begin_step(placed, VirtAddr{Stage::far_slot}, regs);
    EXPECT_EQ(regs.ip, Stage::far_slot);
    X86_64::abort_step(placed, site, VirtAddr{Stage::far_slot}, old, regs);
    EXPECT_EQ(regs.ip, site.value);
    regs.ip = before.ip;
    EXPECT_EQ(regs, before);
}

TEST_F(X86Step, ASystemCallShowsNoSlot) {
    prepare("0f 05");
    ASSERT_EQ(plan.method, Method::syscall);
    constexpr int system_call_stop = SIGTRAP | 0x80;
    X86_64::begin_step(placed, slot, regs);
    X86_64::set_syscall(regs, SYS_getppid, {});
    stage.set_registers(regs);
    Ending entry = stage.run(PTRACE_SYSCALL);
    ASSERT_EQ(entry.signal, system_call_stop);
    EXPECT_EQ(entry.regs.ip, slot.value + placed.copy_end);
    X86_64::leave_slot_in_syscall(plan, site, entry.regs);
    stage.set_registers(entry.regs);
    const Ending exit = stage.run(PTRACE_SYSCALL);
    ASSERT_EQ(exit.signal, system_call_stop);
    const Ending end = stage.run(PTRACE_CONT); // to the int3 behind the site
    EXPECT_EQ(end.signal, SIGTRAP);
    EXPECT_EQ(X86_64::syscall_result(end.regs), ::getpid());
    EXPECT_EQ(end.regs.ip, site.value + 3);
    EXPECT_EQ(end.regs.cx, site.value + 2);
}

} // namespace

} // namespace ktrace::test

#endif
