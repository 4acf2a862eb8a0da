// The code that place writes into a slot, and the meaning of a pc in it.
#include <gtest/gtest.h>

#include "tests/isa/x86_64/hex.h"
#include "x86_64/x86_64.h"

namespace ktrace::test {

namespace {

using arch::Method;
using arch::Placement;
using arch::SlotPosition;
using arch::X86_64;

constexpr VirtAddr site{0x90000000}, near{0x90010000}, far{0x10010000};

Placement placed(const char *code, VirtAddr slot) { return X86_64::place(X86_64::plan(hex(code), site), site, slot); }

std::vector<std::byte> bytes_of(const Placement &placement) {
    return {placement.bytes, placement.bytes + placement.size};
}

TEST(X86Place, CopiesAndJumpsBack) {
    const Placement placement = placed("48 89 e5", near);
    EXPECT_EQ(placement.method, Method::boost);
    EXPECT_EQ(placement.copy_at, 0);
    EXPECT_EQ(placement.copy_end, 3);
    // 0x90000003 - 0x90010008
    EXPECT_EQ(bytes_of(placement), hex("48 89 e5 e9 fb ff fe ff"));
    EXPECT_EQ(placement.scratch, -1);
}

TEST(X86Place, AReturnNeedsNoJumpBack) { EXPECT_EQ(bytes_of(placed("c2 08 00", near)), hex("c2 08 00")); }

TEST(X86Place, AnEmulatedOrRefusedInstructionTakesNoSlot) {
    EXPECT_EQ(placed("74 10", near).size, 0);
    EXPECT_EQ(placed("74 10", near).method, Method::emulate);
    EXPECT_EQ(placed("cc", near).size, 0);
    EXPECT_NE(placed("cc", near).why, nullptr);
}

TEST(X86Place, ACallPushesItsOwnReturnAddress) {
    // push [rip + 5]; jmp 0x90001005; and the return address
    const Placement placement = placed("e8 00 10 00 00", near);
    EXPECT_EQ(placement.method, Method::boost);
    EXPECT_EQ(bytes_of(placement), hex("ff 35 05 00 00 00 e9 fa 0f ff ff 05 00 00 90 00 00 00 00"));
    EXPECT_EQ(placement.copy_end, placement.size);
    EXPECT_EQ(placement.pushed, 8);
    EXPECT_EQ(bytes_of(placed("41 ff d4", near)), hex("ff 35 03 00 00 00 41 ff e4 03 00 00 90 00 00 00 00"));
    // Where no rel32 reaches: jmp *[rip + 0], and the target
    const Placement wide = placed("e8 00 10 00 00", VirtAddr{0x7f0000000000});
    EXPECT_EQ(bytes_of(wide),
              hex("ff 35 0e 00 00 00 ff 25 00 00 00 00 05 10 00 90 00 00 00 00 05 00 00 90 00 00 00 00"));
}

struct ThroughMemory {
    const char *what, *code, *copy;
};

void PrintTo(const ThroughMemory &row, std::ostream *out) { *out << test_name(row.what); }

class X86PlaceThroughMemory : public ::testing::TestWithParam<ThroughMemory> {};

TEST_P(X86PlaceThroughMemory, TheProcessorLoadsTheTarget) {
    const Placement placement = placed(GetParam().code, near);
    EXPECT_EQ(placement.method, Method::boost);
    EXPECT_EQ(bytes_of(placement), hex(GetParam().copy));
}

constexpr ThroughMemory through_memory[] = {
    {"jmp [rip+0x1000]", "ff 25 00 10 00 00", "ff 25 00 10 ff ff"},
    {"jmp [rax*8+0x401000]", "ff 24 c5 00 10 40 00", "ff 24 c5 00 10 40 00"},
    {"jmp [r13+r12*4+8]", "43 ff 64 a5 08", "43 ff a4 a5 08 00 00 00"},
    {"jmp fs:[0x10]", "64 ff 24 25 10 00 00 00", "64 ff 24 25 10 00 00 00"},
    {"call [rdi+8]", "ff 57 08", "ff 35 07 00 00 00 ff a4 27 08 00 00 00 03 00 00 90 00 00 00 00"},
    {"call [rsp+8]: from a stack that is lower by then", "ff 54 24 08",
     "ff 35 07 00 00 00 ff a4 24 10 00 00 00 04 00 00 90 00 00 00 00"},
};
INSTANTIATE_TEST_SUITE_P(Encodings, X86PlaceThroughMemory, ::testing::ValuesIn(through_memory));

TEST(X86Place, ATargetThatThePushTakesAwayIsEmulated) {
    for (const char *code : {"ff d4", "ff 54 24 f8", "ff 54 24 f1", "ff 54 24 ff"}) {
        EXPECT_EQ(placed(code, near).method, Method::emulate) << code;
        EXPECT_EQ(placed(code, near).size, 0) << code;
    }
    EXPECT_EQ(placed("ff 54 24 f0", near).method, Method::boost);                             // [rsp - 16]
    EXPECT_EQ(placed("ff 25 00 10 00 00", VirtAddr{0x7f0000000000}).method, Method::emulate); // out of reach
}

TEST(X86Place, MovesAPcRelativeOperand) {
    // mov rax, [rip + 0x1000]: 0x1000 + (site - near) = -0xf000
    EXPECT_EQ(bytes_of(placed("48 8b 05 00 10 00 00", near)), hex("48 8b 05 00 10 ff ff e9 fb ff fe ff"));
    // movl $1, [rip + 0x1000]: an immediate behind the displacement
    EXPECT_EQ(bytes_of(placed("c7 05 00 10 00 00 01 00 00 00", near)),
              hex("c7 05 00 10 ff ff 01 00 00 00 e9 fb ff fe ff"));
}

TEST(X86Place, A32BitPcRelativeOperandAlwaysReaches) {
    // mov eax, [eip + 0x7fffffff] wraps at 4 GB.
    const Placement placement = placed("67 8b 05 ff ff ff 7f", far);
    EXPECT_EQ(placement.method, Method::boost);
    EXPECT_EQ(std::vector(placement.bytes + 3, placement.bytes + 7), hex("ff ff fe ff"));
}

struct Scratch {
    const char *what, *code, *copy;
    int scratch;
};

void PrintTo(const Scratch &row, std::ostream *out) { *out << test_name(row.what); }

class X86PlaceFar : public ::testing::TestWithParam<Scratch> {};

TEST_P(X86PlaceFar, GoesThroughAScratchRegister) {
    const Scratch &row = GetParam();
    const Placement placement = placed(row.code, far);
    EXPECT_EQ(placement.method, Method::step) << row.what;
    EXPECT_EQ(placement.scratch, row.scratch) << row.what;
    EXPECT_EQ(placement.scratch_value, site.value + hex(row.code).size()) << row.what;
    EXPECT_EQ(std::vector(placement.bytes, placement.bytes + placement.copy_end), hex(row.copy)) << row.what;
}

constexpr Scratch scratch[] = {
    {"add [rip+d], ecx", "01 0d 00 00 00 40", "01 88 00 00 00 40", 0},
    {"mov rax, [rip+d]", "48 8b 05 00 00 00 40", "48 8b 81 00 00 00 40", 1},
    {"mov r9, [rip+d], REX.B set in vain", "4d 8b 0d 00 00 00 40", "4c 8b 88 00 00 00 40", 0},
    {"vmovaps ymm1, [rip+d], VEX of 2 bytes", "c5 fc 28 0d 00 00 00 40", "c5 fc 28 88 00 00 00 40", 0},
    {"vpshufb xmm1, xmm2, [rip+d], VEX of 3 bytes", "c4 c2 69 00 0d 00 00 00 40", "c4 e2 69 00 88 00 00 00 40", 0},
    {"vmovups zmm1, [rip+d], EVEX", "62 d1 7c 48 10 0d 00 00 00 40", "62 f1 7c 48 10 88 00 00 00 40", 0},
    {"cmpxchg16b [rip+d]: ax, cx, dx, bx are used", "48 0f c7 0d 00 00 00 40", "48 0f c7 8e 00 00 00 40", 6},
    {"push [rip+d]", "ff 35 00 00 00 40", "ff b0 00 00 00 40", 0},
    {"shld [rip+d], eax, cl", "0f a5 05 00 00 00 40", "0f a5 82 00 00 00 40", 2},
};
INSTANTIATE_TEST_SUITE_P(Encodings, X86PlaceFar, ::testing::ValuesIn(scratch));

TEST(X86Place, OutOfReachOfTheJumpBackItSteps) {
    const Placement placement = placed("48 89 e5", VirtAddr{0x7f0000000000});
    EXPECT_EQ(placement.method, Method::step);
    EXPECT_EQ(bytes_of(placement), hex("48 89 e5"));
}

TEST(X86Place, MovesATransactionsAbortHandler) {
    const Placement placement = placed("c7 f8 00 10 00 00", near);
    EXPECT_EQ(placement.method, Method::boost);
    EXPECT_EQ(std::vector(placement.bytes, placement.bytes + 6), hex("c7 f8 00 10 ff ff"));
    EXPECT_EQ(placed("c7 f8 00 00 00 40", far).method, Method::refuse);
}

TEST(X86Place, ASystemCallIsCopied) {
    const Placement placement = placed("0f 05", near);
    EXPECT_EQ(placement.method, Method::syscall);
    EXPECT_EQ(std::vector(placement.bytes, placement.bytes + 3), hex("0f 05 e9"));
}

TEST(X86SlotPosition, FollowsTheCopy) {
    const Placement placement = placed("48 89 e5", near);
    EXPECT_EQ(X86_64::slot_position(placement, near, near - 1), SlotPosition::elsewhere);
    EXPECT_EQ(X86_64::slot_position(placement, near, near), SlotPosition::at_start);
    EXPECT_EQ(X86_64::slot_position(placement, near, near + 1), SlotPosition::inside);
    EXPECT_EQ(X86_64::slot_position(placement, near, near + 3), SlotPosition::after);
    EXPECT_EQ(X86_64::slot_position(placement, near, near + 7), SlotPosition::after);
    EXPECT_EQ(X86_64::slot_position(placement, near, near + 8), SlotPosition::elsewhere);
    EXPECT_EQ(X86_64::slot_position(Placement{}, near, near), SlotPosition::elsewhere);
}

} // namespace

} // namespace ktrace::test
