// Agreement on arm64: native, emulated, boosted and stepped leave the same registers. Runs where there is an arm64 CPU
// (or qemu-aarch64); elsewhere the words are checked by the other tests only.
#include "cpu.h"

#if defined(__aarch64__)

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include <asm/hwcap.h>
#include <sys/auxv.h>

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

/// How many words of a form are generated: `all`, a quarter of them where KTRACE_ROUNDS says that the machine is slow.
int words_of_a_form(int all) { return std::getenv("KTRACE_ROUNDS") != nullptr ? all / 4 : all; }

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

    void expect_agreement(std::uint32_t word, int rounds = 16) {
        Arm64Plan planned = plan(word, site);
        for (int round = 0; round < rounds; ++round) {
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

    std::uint32_t random(std::uint32_t below) { return static_cast<std::uint32_t>(random_() % below); }
    /// In words: from the site to another place in the region, away from the slot.
    std::uint32_t distance() { return random(0xf00) - 0x1f00; }

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

TEST_F(Arm64Agreement, GeneratedTransfersAddressesAndLiterals) {
    const int each = words_of_a_form(40), rounds = 2;
    for (int i = 0; i < each; i++) {
        const std::uint32_t imm19 = (distance() & 0x7ffff) << 5, register_or_zero = random(32);
        expect_agreement((random(2) << 31 | 0x14000000) | (distance() & 0x3ffffff), rounds); // b, bl
        expect_agreement(0x54000000 | imm19 | random(16), rounds);                           // b.cond
        expect_agreement((random(2) << 31 | 0x34000000 | random(2) << 24) | imm19 | register_or_zero, rounds);
        expect_agreement((random(2) << 31 | 0x36000000 | random(2) << 24) | random(32) << 19 | // tbz, tbnz
                             ((random(0xf00) - 0x1f00) & 0x3fff) << 5 | register_or_zero,
                         rounds);
        expect_agreement((random(2) << 31 | 0x10000000 | random(4) << 29) | random(1 << 19) << 5 | register_or_zero,
                         rounds);
        for (const std::uint32_t load :
             {0x18000000u, 0x58000000u, 0x98000000u, 0xd8000000u, 0x1c000000u, 0x5c000000u, 0x9c000000u})
            expect_agreement(load | imm19 | register_or_zero, rounds);
    }
    for (const std::uint32_t indirect : {0xd61f0000u, 0xd63f0000u, 0xd65f0000u}) // br, blr, ret
        for (const std::uint32_t through : {5u, 8u, 16u, 30u}) expect_agreement(indirect | through << 5, rounds);
}

TEST_F(Arm64Agreement, GeneratedDataProcessing) {
    constexpr int each = 8, rounds = 2;
    // Three registers, in bits 0-4, 5-9, 16-20, and bits that are free in all of them.
    constexpr std::uint32_t of_registers[] = {
        0x0b000000, 0x2b000000, 0x4b000000, 0x6b000000, 0x8b000000, 0xab000000, 0xcb000000, 0xeb000000, // add … subs
        0x0a000000, 0x2a000000, 0x4a000000, 0x6a000000, 0x8a200000, 0xaa200000, 0xca200000, 0xea200000, // and … bics
        0x1a000000, 0x9a000000, 0xda000000, 0x9ac00800, 0x9ac00c00, 0x9ac02000, 0x9ac02800, 0x1ac02c00, // adc … ror
        0x9b007c00, 0x9b200000, 0x9bc07c00, 0x1b008000, 0x93c00400, 0x9a800000, 0xda800400,             // mul … csneg
        0x4e208400, 0x4e20d400, 0x6e209c00, 0x1e202800, 0x1e600800, 0x4ea01c00, 0x2ea08400, 0x4e201c00, // vectors
    };
    constexpr std::uint32_t of_one[] = {0xdac01000, 0x5ac00400, 0xdac00c00, 0xdac00000, 0x91000400, 0xd1000c00,
                                        0x92400000, 0xb2400000, 0xd3400400, 0x93401c00, 0x1e204000, 0x4e20b800};
    constexpr std::uint32_t of_none[] = {0xd2800000, 0xf2a00020, 0x92800000, 0xd53b4200, 0xd53b4400};
    for (int i = 0; i < each; i++) {
        for (const std::uint32_t word : of_registers)
            expect_agreement(word | random(31) | random(31) << 5 | random(31) << 16, rounds);
        for (const std::uint32_t word : of_one) expect_agreement(word | random(31) | random(31) << 5, rounds);
        for (const std::uint32_t word : of_none) expect_agreement(word | random(31), rounds);
    }
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
    if ((::getauxval(AT_HWCAP) & HWCAP_PACA) == 0) GTEST_SKIP() << "no pointer authentication here";
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
