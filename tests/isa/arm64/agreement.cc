// Agreement on arm64: native, emulated, boosted and stepped leave the same registers. Runs where there is an arm64 CPU
// (or qemu-aarch64); elsewhere the words are checked by the other tests only.
#include "cpu.h"

#if defined(__aarch64__)

#include <gtest/gtest.h>

#include <random>

#include "words.h"

namespace ktrace::arch::test {
namespace {

constexpr std::uint64_t flags_mask = 0xfull << 28;
constexpr std::size_t site_offset = 0x8000, slot_offset = 0xc000;

/// This process.
class OwnMemory : public Memory {
  public:
    std::size_t read(VirtAddr at, std::span<std::byte> into) override {
        std::memcpy(into.data(), reinterpret_cast<const void *>(at.value), into.size());
        return into.size();
    }
    bool write(VirtAddr, std::span<const std::byte>) override { return false; }
};

struct State {
    Arm64Registers regs;
    Arm64FpRegisters floating;
};

void expect_same(const State &a, const State &b, const char *way) {
    for (unsigned n = 0; n < 31; ++n) EXPECT_EQ(a.regs.x[n], b.regs.x[n]) << way << ": x" << n;
    EXPECT_EQ(a.regs.sp, b.regs.sp) << way;
    EXPECT_EQ(a.regs.pc, b.regs.pc) << way;
    EXPECT_EQ(a.regs.pstate & flags_mask, b.regs.pstate & flags_mask) << way;
    EXPECT_EQ(std::memcmp(a.floating.v, b.floating.v, sizeof a.floating.v), 0) << way << ": SIMD registers";
}

class Arm64Agreement : public testing::Test {
  protected:
    Cpu cpu;
    VirtAddr site = cpu.at(site_offset), slot = cpu.at(slot_offset);

    State random_state() {
        State state;
        for (std::uint64_t &x : state.regs.x)
            x = random_() & (random_() & 1 ? ~0ull : random_() & 1 ? 0xffffffff00000000 : 0);
        // Addresses that some of the words use.
        for (unsigned n : {5, 8, 16, 30}) state.regs.x[n] = cpu.at(0x1000 * n % Cpu::size + 0x40).value;
        state.regs.sp = cpu.at(0x4000).value;
        state.regs.pc = site.value;
        state.regs.pstate = (random_() & 15) << 28;
        for (auto &v : state.floating.v)
            for (auto &byte : v) byte = static_cast<std::uint8_t>(random_());
        return state;
    }

    State native(const Arm64Plan &planned, State state) {
        cpu.clear();
        cpu.put(site, a64_bytes(planned.word));
        cpu.run(state.regs, state.floating);
        return state;
    }

    State emulated(const Arm64Plan &planned, State state) {
        cpu.clear();
        EXPECT_EQ(Arm64::emulate(planned, site, state.regs, memory_).outcome, Emulated::Outcome::done);
        return state;
    }

    State boosted(const Arm64Plan &planned, State state) {
        Placement placed = Arm64::place(planned, site, slot);
        EXPECT_EQ(placed.method, Method::boost);
        cpu.clear();
        cpu.put(slot, std::span(placed.bytes).first(placed.size));
        state.regs.pc = slot.value;
        cpu.run(state.regs, state.floating);
        return state;
    }

    /// A brk behind the copy stands for the end of the single step.
    State stepped(const Arm64Plan &planned, const Placement &placed, State state) {
        cpu.clear();
        cpu.put(slot, std::span(placed.bytes).first(placed.copy_end));
        std::uint64_t old = Arm64::begin_step(placed, slot, state.regs);
        cpu.run(state.regs, state.floating);
        EXPECT_EQ(Arm64::finish_step(planned, placed, site, slot, old, state.regs, memory_), Stepped::done);
        return state;
    }

    void expect_agreement(std::uint32_t word) {
        Arm64Plan planned = plan(word, site);
        for (int round = 0; round < 16; ++round) {
            SCOPED_TRACE(testing::Message() << std::hex << word << " round " << std::dec << round);
            State start = random_state();
            State truth = native(planned, start);
            if (planned.method == Method::emulate) {
                expect_same(truth, emulated(planned, start), "emulated");
            } else {
                expect_same(truth, boosted(planned, start), "boosted");
                expect_same(truth, stepped(planned, Arm64::place(planned, site, slot), start), "stepped");
            }
            if (HasFailure()) return;
        }
    }

  private:
    OwnMemory memory_;
    std::mt19937_64 random_{20261121};
};

TEST_F(Arm64Agreement, Branches) {
    for (std::uint32_t word : {0x14000400u, 0x17fffffeu, 0x94000400u, 0x97fffffeu}) expect_agreement(word);
    for (std::uint32_t condition = 0; condition < 16; ++condition) expect_agreement(0x54000080 | condition);
    for (std::uint32_t word : {0x34000043u, 0xb4000043u, 0x35ffffc3u, 0xb5ffffc3u, 0xb500005fu, 0x3400005fu})
        expect_agreement(word);
    for (std::uint32_t word : {0x36280044u, 0xb6280044u, 0xb7280044u, 0xb7f80044u, 0x37000044u}) expect_agreement(word);
}

TEST_F(Arm64Agreement, IndirectBranches) {
    // blr x8, blr x30, br x16, br x8, ret, ret x5
    for (std::uint32_t word : {0xd63f0100u, 0xd63f03c0u, 0xd61f0200u, 0xd61f0100u, 0xd65f03c0u, 0xd65f00a0u})
        expect_agreement(word);
}

TEST_F(Arm64Agreement, Addresses) {
    for (std::uint32_t word :
         {0x7007ffe0u, 0x70ffffe1u, 0x1000003fu, 0x90000002u, 0xb0000002u, 0xf07fffe2u, 0x90800002u})
        expect_agreement(word);
}

TEST_F(Arm64Agreement, Literals) {
    // ldr w1, x3; ldrsw x2; ldr wzr; prfm; ldr s7, d7, q7
    for (std::uint32_t word :
         {0x18000041u, 0x58000043u, 0x98ffffc2u, 0x1800005fu, 0xd8000000u, 0x1c000087u, 0x5c000087u, 0x9c000087u})
        expect_agreement(word);
}

TEST_F(Arm64Agreement, PlainInstructions) {
    // sub sp; add; csel; ccmp; cfinv-free flags: subs; bti c; paciasp; nop; mrs tpidr_el0; msr nzcv, x0; fadd; fmla;
    // ldr x0, [sp]
    for (std::uint32_t word :
         {0xd10103ffu, 0x8b020020u, 0x9a820020u, 0xfa411000u, 0xeb020020u, 0xd503245fu, 0xd503233fu, 0xd503201fu,
          0xd53bd040u, 0xd51b4200u, 0x1e622820u, 0x4e22cc20u, 0xf94003e0u})
        expect_agreement(word);
}

TEST_F(Arm64Agreement, SimdLiteralsThroughTheScratchRegister) {
    VirtAddr far = site + 0x2000000;
    for (std::uint32_t word : {0x1c000087u, 0x5c000087u, 0x9c000087u}) {
        Arm64Plan planned = plan(word, site);
        Placement placed = Arm64::place(planned, site, far);
        ASSERT_EQ(placed.method, Method::step);
        State start = random_state();
        expect_same(native(planned, start), stepped(planned, placed, start), "through x17");
    }
}

TEST_F(Arm64Agreement, AuthenticatedCallsAndJumps) {
    State start = random_state();
    start = native(plan(0xdac123e5, site), start); // paciza x5
    start.regs.pc = site.value;
    Arm64Plan call = plan(0xd63f08bf, site); // blraaz x5
    expect_same(native(call, start), stepped(call, Arm64::place(call, site, slot), start), "stepped");
    Arm64Plan jump = plan(0xd61f08bf, site); // braaz x5
    expect_same(native(jump, start), boosted(jump, start), "boosted");

    State sign = random_state();
    sign = native(plan(0xd503233f, site), sign); // paciasp
    sign.regs.pc = site.value;
    Arm64Plan ret = plan(0xd65f0bff, site); // retaa
    expect_same(native(ret, sign), boosted(ret, sign), "boosted");
}

} // namespace
} // namespace ktrace::arch::test

#endif
