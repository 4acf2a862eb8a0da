// The C library's code and data on arm64, as far as ktrace reads them: errno's place, jump buffers, frames of signals.
#include <gtest/gtest.h>

#include "arm64/errno_location.h"
#include "arm64/signal_frame.h"
#include "words.h"

#if defined(__aarch64__)
#include <cerrno>
#include <csetjmp>

#include <sys/uio.h>
#include <unistd.h>
#endif

namespace ktrace::arch::test {
namespace {

constexpr VirtAddr at{0x27be0};
constexpr std::uint32_t ret = 0xd65f03c0, mrs_x1 = 0xd53bd041;

TEST(Arm64Errno, InASlot) {
    // adrp x0, 0x19f000; ldr x0, [x0, #3520]; mrs x1, tpidr_el0; add x0, x1, x0; ret: glibc's
    for (const auto &words : {code({0x90000bc0, 0xf946e000, mrs_x1, 0x8b000020, ret}),
                              code({mrs_x1, 0x90000bc0, 0xf946e000, 0x8b000020, ret}),
                              code({0xd503245f, 0x90000bc0, 0xf946e000, mrs_x1, 0x8b010000, ret})}) {
        const auto found = Arm64Errno::offset(words, at);
        ASSERT_TRUE(found);
        EXPECT_EQ(found->offset, 0);
        EXPECT_EQ(found->slot, VirtAddr{0x19fdc0});
    }
}

TEST(Arm64Errno, AConstant) {
    // mrs x0, tpidr_el0; add x0, x0, #0x1, lsl #12; add x0, x0, #0x18; ret
    const auto high = Arm64Errno::offset(code({0xd53bd040, 0x91400400, 0x91006000, ret}), at);
    ASSERT_TRUE(high);
    EXPECT_EQ(high->offset, 0x1018);
    EXPECT_FALSE(high->slot);
    const auto low = Arm64Errno::offset(code({mrs_x1, 0x91006020, ret}), at); // add x0, x1, #0x18
    ASSERT_TRUE(low);
    EXPECT_EQ(low->offset, 0x18);
}

TEST(Arm64Errno, AConstantOfTheLinkers) {
    // movz x0, 1, lsl 16; movk x0, 0x30; mrs x1; add x0, x1, x0
    const auto found = Arm64Errno::offset(code({0xd2a00020, 0xf2800600, mrs_x1, 0x8b000020, ret}), at);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->offset, 0x10030);
    EXPECT_FALSE(found->slot);
    EXPECT_FALSE(Arm64Errno::offset(code({0xd2a00020, 0xf2800601, mrs_x1, 0x8b000020, ret}), at)) << "movk x1";
}

TEST(Arm64Errno, OtherFunctions) {
    EXPECT_FALSE(Arm64Errno::offset(code({ret}), at));
    EXPECT_FALSE(Arm64Errno::offset(code({mrs_x1, ret}), at)) << "x0 is something else";
    EXPECT_FALSE(Arm64Errno::offset(code({0x90000bc0, 0xf946e000, mrs_x1, 0x8b000020}), at)) << "it goes on";
    EXPECT_FALSE(Arm64Errno::offset(code({0xd53bd040, 0xb9400000, 0x91006000, ret}), at)) << "a load between";
}

constexpr std::uint64_t buffer = 0x1000, code_at = 0x400000, behind_call = code_at + 8, sp = 0x7ffffff0a0;

/// A jump buffer, and code with a call of setjmp.
class Scene : public Memory {
  public:
    std::uint64_t words[22] = {};
    std::vector<std::byte> text = code({0xd503201f, 0x94000100}); // nop; bl

    std::size_t read(VirtAddr from, std::span<std::byte> into) override {
        const auto words_bytes = std::as_bytes(std::span(words));
        return copy(from, buffer, words_bytes, into) + copy(from, code_at, text, into);
    }
    bool write(VirtAddr, std::span<const std::byte>) override { return false; }

  private:
    static std::size_t copy(VirtAddr from, std::uint64_t start, std::span<const std::byte> bytes,
                            std::span<std::byte> into) {
        if (from.value < start || from.value + into.size() > start + bytes.size()) return 0;
        std::memcpy(into.data(), bytes.data() + (from.value - start), into.size());
        return into.size();
    }
};

TEST(Arm64JumpBuffer, OfGlibcIsReadByTheFramePointer) {
    constexpr std::uint64_t guard = 0x1122334455667788;
    Scene scene;
    scene.words[10] = sp; // x29
    scene.words[11] = behind_call ^ guard;
    scene.words[13] = sp ^ guard;
    Arm64Registers registers;
    registers.x[0] = buffer;
    EXPECT_EQ(Arm64::longjmp_sp(registers, scene), VirtAddr{sp});
    scene.words[10] = sp + 16; // the function keeps something between
    EXPECT_FALSE(Arm64::longjmp_sp(registers, scene));
}

TEST(Arm64JumpBuffer, OfMuslIsNotEncrypted) {
    Scene scene;
    scene.words[11] = behind_call;
    scene.words[12] = sp;
    Arm64Registers registers;
    registers.x[0] = buffer;
    EXPECT_EQ(Arm64::longjmp_sp(registers, scene), VirtAddr{sp});
}

TEST(Arm64SignalFrame, HasTheRegistersThatWereInterrupted) {
    KernelFrame frame{};
    for (std::uint64_t n = 0; n < 31; n++) frame.x[n] = 100 + n;
    frame.sp = sp;
    frame.pc = behind_call;
    const auto bytes = std::as_bytes(std::span(&frame, 1));
    ByteMemory stack(VirtAddr{0x5000}, {bytes.begin(), bytes.end()});
    const auto found = Arm64::interrupted(VirtAddr{0x5000}, stack);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->x[30], 130u);
    EXPECT_EQ(found->sp, sp);
    EXPECT_EQ(found->pc, behind_call);
    EXPECT_FALSE(Arm64::interrupted(VirtAddr{0x5000 + sizeof frame - offsetof(KernelFrame, pc)}, stack)); // no pc there
}

TEST(Arm64CodeAddress, IsWithoutItsSignature) {
    EXPECT_EQ(Arm64::code_address(0x002a000000400108), VirtAddr{0x400108});
    EXPECT_EQ(Arm64::code_address(0xffff8a000b7c), VirtAddr{0xffff8a000b7c});
}

#if defined(__aarch64__)

TEST(Arm64Errno, OfThisProcess) {
    const auto *begin = reinterpret_cast<const std::byte *>(&__errno_location);
    const auto found = Arm64Errno::offset({begin, 32}, VirtAddr{reinterpret_cast<std::uint64_t>(&__errno_location)});
    ASSERT_TRUE(found);
    const std::int64_t offset =
        found->slot ? *reinterpret_cast<const std::int64_t *>(found->slot->value) : found->offset;
    EXPECT_EQ(static_cast<char *>(__builtin_thread_pointer()) + offset, reinterpret_cast<char *>(&errno));
}

class OwnMemory final : public Memory {
  public:
    std::size_t read(VirtAddr from, std::span<std::byte> into) override {
        const iovec to{into.data(), into.size()}, there{reinterpret_cast<void *>(from.value), into.size()};
        const ssize_t got = ::process_vm_readv(::getpid(), &to, 1, &there, 1, 0);
        return got < 0 ? 0 : static_cast<std::size_t>(got);
    }
    bool write(VirtAddr, std::span<const std::byte>) override { return false; }
};

TEST(Arm64JumpBuffer, OfThisProcess) {
    std::jmp_buf here;
    if (setjmp(here) != 0) return;
    std::uint64_t stack_pointer = 0;
    asm("mov %0, sp" : "=r"(stack_pointer));
    Arm64Registers registers;
    registers.x[0] = reinterpret_cast<std::uint64_t>(&here);
    OwnMemory memory;
    const auto found = Arm64::longjmp_sp(registers, memory);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->value, stack_pointer);
}

#endif

} // namespace
} // namespace ktrace::arch::test
