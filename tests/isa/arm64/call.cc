// Calls, returns, PLT stubs, system calls and the register table of arm64.
#include <gtest/gtest.h>

#include <set>

#include "words.h"

namespace ktrace::arch::test {
namespace {

constexpr VirtAddr after_call{0x400104};

TEST(Arm64Call, EightArgumentsInRegistersTheRestOnTheStack) {
    Arm64Registers regs;
    for (std::uint64_t n = 0; n < 8; ++n) regs.x[n] = 100 + n;
    regs.sp = 0x1000;
    ByteMemory stack(VirtAddr{0x1000}, code({108, 0, 109, 0}));
    for (unsigned n = 0; n < 10; ++n) EXPECT_EQ(Arm64::argument(regs, stack, n), 100 + n);
    EXPECT_FALSE(Arm64::argument(regs, stack, 10));
}

TEST(Arm64Call, ReturnAddressAndValue) {
    Arm64Registers regs;
    regs.x[0] = 42;
    regs.x[30] = after_call.value;
    regs.sp = 0x7000;
    ByteMemory nothing(VirtAddr{0}, {});
    EXPECT_EQ(Arm64::return_value(regs), 42u);
    EXPECT_EQ(Arm64::return_address(regs, nothing), after_call);
    EXPECT_EQ(Arm64::frame(regs, after_call), (Frame{VirtAddr{0x7000}, after_call}));
    EXPECT_TRUE(Arm64::redirect_return(regs, nothing, VirtAddr{0x5000}));
    EXPECT_EQ(regs.x[30], 0x5000u);
}

TEST(Arm64Call, FrameIsAlive) {
    Frame frame{VirtAddr{0x7000}, after_call};
    EXPECT_TRUE(Arm64::frame_alive(frame, VirtAddr{0x6ff0}, When::at_entry));
    EXPECT_TRUE(Arm64::frame_alive(frame, VirtAddr{0x7000}, When::at_entry)) << "a tail call";
    EXPECT_FALSE(Arm64::frame_alive(frame, VirtAddr{0x7010}, When::at_entry));
    EXPECT_TRUE(Arm64::frame_alive(frame, VirtAddr{0x6ff0}, When::at_return)) << "a deeper call returned";
    EXPECT_FALSE(Arm64::frame_alive(frame, VirtAddr{0x7000}, When::at_return)) << "this one returned";
    EXPECT_FALSE(Arm64::frame_alive(frame, VirtAddr{0x7010}, When::at_return));
}

TEST(Arm64Call, WaitingFrameHoldsItsReturnAddress) {
    constexpr std::int64_t size = 0x8000;
    const Frame frame{VirtAddr{0x10000 + size}, after_call};
    for (std::int64_t below : {8, 0x1f8, 0x1000, 0x4000}) // where the function has saved x30
        for (std::uint64_t signature : {std::uint64_t{0}, std::uint64_t{0x2a} << 48}) {
            ByteMemory stack(VirtAddr{0x10000}, std::vector<std::byte>(size));
            EXPECT_FALSE(Arm64::is_on_stack(frame, stack));
            EXPECT_TRUE(stack.write_value(frame.sp - below, after_call.value | signature));
            EXPECT_TRUE(Arm64::is_on_stack(frame, stack)) << below;
        }
    ByteMemory above(frame.sp, std::vector<std::byte>(64));
    EXPECT_TRUE(above.write_value(frame.sp, after_call.value));
    EXPECT_FALSE(Arm64::is_on_stack(frame, above)) << "the caller's word";
}

TEST(Arm64CallBefore, DirectCallTellsItsTarget) {
    auto call = Arm64::call_before(code({0xd503201f, 0x94000040}), after_call); // nop; bl .+0x100
    ASSERT_TRUE(call);
    EXPECT_EQ(call->length, 4);
    EXPECT_EQ(call->target, VirtAddr{0x400200});
}

TEST(Arm64CallBefore, IndirectCalls) {
    for (std::uint32_t word : {0xd63f0100u, 0xd63f08bfu, 0xd73f08bfu}) { // blr x8, blraaz x5, blraa x5, sp
        auto call = Arm64::call_before(code({word}), after_call);
        ASSERT_TRUE(call) << std::hex << word;
        EXPECT_FALSE(call->target);
    }
}

TEST(Arm64CallBefore, NoCall) {
    for (std::uint32_t word : {0xd503201fu, 0x14000400u, 0xd61f0200u, 0xd65f03c0u}) // nop, b, br, ret
        EXPECT_FALSE(Arm64::call_before(code({word}), after_call)) << std::hex << word;
    EXPECT_FALSE(Arm64::call_before({}, after_call));
}

// Stubs as ld 2.40 writes them: adrp x16, 0x20000; ldr x17, [x16, #32]; add x16, x16, #32; br x17
TEST(Arm64Plt, Stub) {
    auto stub = code({0x90000110, 0xf9401211, 0x91008210, 0xd61f0220});
    EXPECT_EQ(Arm64::plt_target_slot(stub, VirtAddr{0x630}), VirtAddr{0x20020});
    EXPECT_EQ(Arm64::plt_target_slot(stub, VirtAddr{0x555555550630}), VirtAddr{0x555555570020});
}

TEST(Arm64Plt, StubWithLandingPad) {
    auto stub = code({0xd503245f, 0x90000110, 0xf9401211, 0x91008210, 0xd61f0220});
    EXPECT_EQ(Arm64::plt_target_slot(stub, VirtAddr{0x630}), VirtAddr{0x20020});
    EXPECT_EQ(Arm64::plt_target_slot(stub, VirtAddr{0xffc}), VirtAddr{0x21020}) << "the adrp is on the next page";
}

TEST(Arm64Plt, StubThatAuthenticates) {
    auto stub = code({0x90000110, 0xf9401211, 0x91008210, 0xd503219f, 0xd61f0220}); // autia1716
    EXPECT_EQ(Arm64::plt_target_slot(stub, VirtAddr{0x6f0}), VirtAddr{0x20020});
}

TEST(Arm64Plt, OtherCodeIsNoStub) {
    EXPECT_FALSE(Arm64::plt_target_slot({}, VirtAddr{0x630}));
    EXPECT_FALSE(Arm64::plt_target_slot(code({0x90000110, 0xf9401211}), VirtAddr{0x630})) << "cut off";
    // PLT0: stp x16, x30, [sp, #-16]!; adrp x16; ldr x17; add x16; br x17
    EXPECT_FALSE(
        Arm64::plt_target_slot(code({0xa9bf7bf0, 0x90000110, 0xf9401211, 0x91008210, 0xd61f0220}), VirtAddr{0x5d0}));
    EXPECT_FALSE(Arm64::plt_target_slot(code({0x90000110, 0xf9401211, 0x91008210, 0xd61f0200}), VirtAddr{0x630}))
        << "br x16";
}

TEST(Arm64Syscall, NumberAndArguments) {
    Arm64Registers regs;
    const std::uint64_t arguments[6] = {1, 2, 3, 4, 5, 6};
    Arm64::set_syscall(regs, 222, arguments);
    EXPECT_EQ(regs.x[8], 222u);
    for (std::uint64_t n = 0; n < 6; ++n) EXPECT_EQ(regs.x[n], n + 1);
    EXPECT_EQ(regs.x[6], 0u);
    EXPECT_EQ(a64_form(a64_word(Arm64::syscall_bytes())), A64Form::svc);
    regs.x[0] = ~std::uint64_t{11};
    EXPECT_EQ(Arm64::syscall_result(regs), -12);
}

TEST(Arm64RegisterTable, LiesWithinTheStructs) {
    std::set<std::string_view> names;
    std::set<int> dwarf;
    for (const RegisterInfo &info : Arm64::registers()) {
        std::size_t size = info.file == RegisterInfo::File::general ? sizeof(Arm64Registers) : sizeof(Arm64FpRegisters);
        EXPECT_LE(info.offset + info.width, size) << info.name;
        EXPECT_TRUE(names.insert(info.name).second) << info.name;
        if (!info.alias.empty()) {
            EXPECT_TRUE(names.insert(info.alias).second) << info.alias;
        }
        if (info.dwarf >= 0) {
            EXPECT_TRUE(dwarf.insert(info.dwarf).second) << info.name;
        }
    }
    EXPECT_EQ(Arm64::registers().size(), 31u + 4 + 32 + 2); // general, sp to tpidr, floating, their status
}

const RegisterInfo &register_named(std::string_view name) {
    for (const RegisterInfo &info : Arm64::registers())
        if (info.name == name || info.alias == name) return info;
    ADD_FAILURE() << "no register " << name;
    return Arm64::registers()[0];
}

TEST(Arm64RegisterTable, DwarfNumbersAndOffsets) {
    EXPECT_EQ(register_named("x0").dwarf, 0);
    EXPECT_EQ(register_named("lr").dwarf, 30);
    EXPECT_EQ(register_named("lr").name, "x30");
    EXPECT_EQ(register_named("fp").dwarf, 29);
    EXPECT_EQ(register_named("sp").dwarf, Arm64::stack_pointer_dwarf);
    EXPECT_EQ(register_named("pc").offset, offsetof(Arm64Registers, pc));
    EXPECT_EQ(register_named("v0").dwarf, 64);
    EXPECT_EQ(register_named("v31").dwarf, 95);
    EXPECT_EQ(register_named("v31").offset, 31 * 16);
    EXPECT_EQ(register_named("v31").width, 16);
}

} // namespace
} // namespace ktrace::arch::test
