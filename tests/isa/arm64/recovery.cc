// The handler that carries a process over our traps when ktrace was killed: a copy of it, called as the kernel would,
// must leave the registers that emulation leaves. Where there is an arm64 CPU.
#if defined(__aarch64__)

#include <csignal>
#include <cstring>
#include <random>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "arch/recovery.h"
#include "arm64/native.h"
#include "words.h"

namespace ktrace::arch::test {
namespace {

using Handler = void (*)(int, siginfo_t *, ucontext_t *);

constexpr std::size_t page = ktrace_recovery_page, capacity = 8, slot_at = 0x800;

class OwnMemory final : public Memory {
  public:
    std::size_t read(VirtAddr at, std::span<std::byte> into) override {
        std::memcpy(into.data(), reinterpret_cast<const void *>(at.value), into.size());
        return into.size();
    }
    bool write(VirtAddr, std::span<const std::byte>) override { return false; }
};

class Arm64Recovery : public testing::Test {
  protected:
    void SetUp() override {
        page_ = static_cast<std::byte *>(
            ::mmap(nullptr, 4 * page, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        ASSERT_NE(page_, MAP_FAILED);
        const RecoveryCode code = Arm64Native::recovery_code();
        const std::size_t at = (sizeof(ktrace_recovery_header) + 15) & ~std::size_t{15};
        ASSERT_LE(at + code.bytes.size(), page);
        std::memcpy(page_ + at, code.bytes.data(), code.bytes.size());
        __builtin___clear_cache(reinterpret_cast<char *>(page_), reinterpret_cast<char *>(page_ + page));
        handler_ = reinterpret_cast<Handler>(page_ + at + code.handler);
        header().tables = 1;
        header().table[0] = {reinterpret_cast<std::uint64_t>(page_ + page), capacity};
    }
    void TearDown() override { ::munmap(page_, 4 * page); }

    ktrace_recovery_header &header() { return *reinterpret_cast<ktrace_recovery_header *>(page_); }
    VirtAddr site() const { return VirtAddr{reinterpret_cast<std::uint64_t>(page_ + 2 * page)}; }

    /// Plants a trap over `word` and enters it into the table.
    Arm64Plan plant(std::uint32_t word) {
        const VirtAddr slot = site() + slot_at;
        const Arm64Plan planned = plan(word, site());
        const Placement placed = planned.method == Method::emulate ? Placement{} : Arm64::place(planned, site(), slot);
        auto *table = reinterpret_cast<ktrace_recovery_entry *>(page_ + page);
        std::memset(table, 0, page);
        table[ktrace_recovery_hash(site().value, capacity)] = Arm64::recovery_entry(planned, placed, site(), slot);
        const auto trap = Arm64::trap_bytes();
        std::memcpy(page_ + 2 * page, trap.data(), trap.size());
        return planned;
    }

    Arm64Registers registers() {
        Arm64Registers made;
        for (std::uint64_t &x : made.x) x = random_() & (random_() & 1 ? ~0ull : random_() & 1 ? 0xff00000000 : 0);
        made.sp = random_() & ~std::uint64_t{15};
        made.pc = site().value;
        made.pstate = (random_() & 15) << 28;
        return made;
    }

    Arm64Registers handle(const Arm64Registers &before, siginfo_t info) {
        ucontext_t context{};
        std::memcpy(&context.uc_sigmask, &mask_, sizeof mask_);
        std::memcpy(context.uc_mcontext.regs, before.x, sizeof before.x);
        context.uc_mcontext.sp = before.sp;
        context.uc_mcontext.pc = before.pc;
        context.uc_mcontext.pstate = before.pstate;
        handler_(SIGTRAP, &info, &context);
        std::memcpy(&mask_, &context.uc_sigmask, sizeof mask_);
        Arm64Registers after;
        std::memcpy(after.x, context.uc_mcontext.regs, sizeof after.x);
        after.sp = context.uc_mcontext.sp;
        after.pc = context.uc_mcontext.pc;
        after.pstate = context.uc_mcontext.pstate;
        return after;
    }

    siginfo_t trap_info(int code = TRAP_BRKPT) const {
        siginfo_t info{};
        info.si_signo = SIGTRAP;
        info.si_code = code;
        info.si_addr = reinterpret_cast<void *>(site().value);
        return info;
    }

    std::uint64_t mask_ = 0; // of the interrupted thread
    std::byte *page_ = nullptr;
    Handler handler_ = nullptr;
    std::mt19937_64 random_{20261128};
};

constexpr std::uint32_t nop = 0xd503201f;

TEST_F(Arm64Recovery, WhatReadsThePcIsDoneAsEmulationDoesIt) {
    OwnMemory memory;
    // b, bl; cbz, cbnz, tbz, tbnz; blr, br; adr, adrp; ldr w, x, ldrsw, to the zero register; prfm; b.cond
    std::vector<std::uint32_t> words{0x14000400, 0x17fffffe, 0x94000400, 0x34000043, 0xb4000043, 0x35ffffc3,
                                     0xb500005f, 0x36280044, 0xb7f80044, 0x37000044, 0xd63f0100, 0xd63f03c0,
                                     0xd61f0200, 0x7007ffe0, 0x1000003f, 0x90000002, 0xf07fffe2, 0x18000041,
                                     0x58000043, 0x98ffffc2, 0x5800005f, 0xd8000000};
    for (std::uint32_t condition = 0; condition < 16; condition++) words.push_back(0x54000080 | condition);
    for (const std::uint32_t word : words) {
        const Arm64Plan planned = plant(word);
        ASSERT_EQ(planned.method, Method::emulate) << std::hex << word;
        for (int round = 0; round < 40; round++) {
            const Arm64Registers before = registers();
            Arm64Registers emulated = before;
            ASSERT_EQ(Arm64::emulate(planned, site(), emulated, memory).outcome, Emulated::Outcome::done);
            EXPECT_EQ(handle(before, trap_info()), emulated) << std::hex << word;
        }
    }
}

TEST_F(Arm64Recovery, OtherInstructionsGoOnInTheirSlots) {
    plant(nop);
    const Arm64Registers before = registers();
    Arm64Registers expected = before;
    expected.pc = (site() + slot_at).value;
    EXPECT_EQ(handle(before, trap_info()), expected);
}

TEST_F(Arm64Recovery, ATrapThatWasTakenOutIsRunAgain) {
    plant(nop);
    std::memcpy(page_ + 2 * page, &nop, sizeof nop);
    const Arm64Registers before = registers();
    EXPECT_EQ(handle(before, trap_info()), before);
}

TEST_F(Arm64Recovery, StepsAndHardwareBreakpointsAreDropped) {
    plant(nop);
    for (int code : {TRAP_TRACE, TRAP_HWBKPT}) {
        const Arm64Registers before = registers();
        EXPECT_EQ(handle(before, trap_info(code)), before);
    }
}

TEST_F(Arm64Recovery, WhatTheTracerHasMovedIsLeftWhereItIs) {
    plant(nop);
    Arm64Registers moved = registers();
    moved.pc += 0x40;
    EXPECT_EQ(handle(moved, trap_info()), moved);
}

TEST_F(Arm64Recovery, AThreadThatWasSteppedGetsItsMaskBack) {
    const std::uint64_t own = 1U << (SIGUSR1 - 1);
    std::vector<ktrace_recovery_mask> masks(ktrace_recovery_most_masks);
    const auto tid = static_cast<std::uint64_t>(::syscall(SYS_gettid));
    masks[tid % ktrace_recovery_most_masks] = {tid, own};
    header().masks = reinterpret_cast<std::uint64_t>(masks.data());
    plant(nop);
    mask_ = ktrace_recovery_blocked(own);
    handle(registers(), trap_info(TRAP_TRACE));
    EXPECT_EQ(mask_, own);
}

TEST_F(Arm64Recovery, AnIgnoredSignalThatIsSentStaysIgnored) {
    header().before.handler = 1; // SIG_IGN
    const Arm64Registers before = registers();
    EXPECT_EQ(handle(before, trap_info(SI_USER)), before);
}

} // namespace
} // namespace ktrace::arch::test

#endif
