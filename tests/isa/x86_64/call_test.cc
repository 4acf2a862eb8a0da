// Arguments, return addresses, calls read backwards, linkage stubs, system calls, the register table.
#include <gtest/gtest.h>

#include "tests/isa/x86_64/hex.h"
#include "x86_64/x86_64.h"

namespace ktrace::test {

namespace {

using arch::When;
using arch::X86_64;
using Registers = arch::X86_64Registers;

constexpr VirtAddr end{0x401000};

TEST(X86Arguments, ComeFromRegistersThenFromTheStack) {
    Registers regs;
    SparseMemory memory;
    regs.di = 1, regs.si = 2, regs.dx = 3, regs.cx = 4, regs.r8 = 5, regs.r9 = 6, regs.sp = 0x7000;
    memory.put<std::uint64_t>(0x7000, 0x401234);
    memory.put<std::uint64_t>(0x7008, 7);
    memory.put<std::uint64_t>(0x7010, 8);
    for (unsigned n = 0; n < 8; ++n) EXPECT_EQ(X86_64::argument(regs, memory, n), n + 1);
    EXPECT_EQ(X86_64::argument(regs, memory, 8), std::nullopt);
    EXPECT_EQ(X86_64::return_address(regs, memory), VirtAddr{0x401234});
    EXPECT_TRUE(X86_64::redirect_return(regs, memory, VirtAddr{0x405678}));
    EXPECT_EQ(X86_64::return_address(regs, memory), VirtAddr{0x405678});
}

TEST(X86Calls, ReturnAtOnce) {
    Registers regs;
    SparseMemory memory;
    regs.ip = 0x401000, regs.sp = 0x7000;
    EXPECT_FALSE(X86_64::return_at_once(regs, memory));
    EXPECT_EQ(regs.ip, 0x401000U);
    memory.put<std::uint64_t>(0x7000, 0x405678);
    EXPECT_TRUE(X86_64::return_at_once(regs, memory));
    EXPECT_EQ(regs.ip, 0x405678U);
    EXPECT_EQ(regs.sp, 0x7008U);
}

TEST(X86Frames, LiveUntilTheStackIsAboveThem) {
    Registers regs;
    regs.sp = 0x7000;
    const arch::Frame frame = X86_64::frame(regs, end);
    EXPECT_TRUE(X86_64::frame_alive(frame, VirtAddr{0x6ff0}, When::at_return));
    EXPECT_FALSE(X86_64::frame_alive(frame, VirtAddr{0x7000 + X86_64::return_pop}, When::at_return));
    EXPECT_TRUE(X86_64::frame_alive(frame, VirtAddr{0x7000}, When::at_entry)); // a tail call
    SparseMemory stack;
    EXPECT_FALSE(X86_64::is_on_stack(frame, stack));
    stack.put<std::uint64_t>(0x7000, end.value);
    EXPECT_TRUE(X86_64::is_on_stack(frame, stack));
    stack.put<std::uint64_t>(0x7000, 1);
    EXPECT_FALSE(X86_64::is_on_stack(frame, stack));
}

struct Call {
    const char *what, *code;
    int length; // 0: none
    std::optional<std::uint64_t> target;
};

void PrintTo(const Call &row, std::ostream *out) { *out << test_name(row.what); }

class X86CallBefore : public ::testing::TestWithParam<Call> {};

TEST_P(X86CallBefore, IsFound) {
    const Call &row = GetParam();
    for (const char *before : {"", "90 90 90 90", "00 00 00 00 00 00 00 00 00"}) {
        auto code = hex(before);
        for (std::byte byte : hex(row.code)) code.push_back(byte);
        const auto found = X86_64::call_before(code, end);
        ASSERT_EQ(found.has_value(), row.length != 0) << row.what;
        if (!found) continue;
        EXPECT_EQ(found->length, row.length) << row.what;
        EXPECT_EQ(found->target ? std::optional(found->target->value) : std::nullopt, row.target) << row.what;
    }
}

constexpr Call calls[] = {
    {"call rel32", "e8 00 01 00 00", 5, 0x401100},
    {"call backwards", "e8 00 ff ff ff", 5, 0x400f00},
    {"addr32 call", "67 e8 00 01 00 00", 6, 0x401100},
    {"data16 rex.W call", "66 48 e8 00 01 00 00", 7, 0x401100},
    {"call *rax", "ff d0", 2, {}},
    {"call *r12", "41 ff d4", 3, {}},
    {"notrack call *r12", "3e 41 ff d4", 4, {}},
    {"call *[rax]", "ff 10", 2, {}},
    {"call *[rsp]", "ff 14 24", 3, {}},
    {"call *[rbp+8]", "ff 55 08", 3, {}},
    {"call *[r13+8]", "41 ff 55 08", 4, {}},
    {"call *[rsp+8]", "ff 54 24 08", 4, {}},
    {"call *[r12+r14*8+8]", "43 ff 54 f4 08", 5, {}},
    {"call *[rip+d]", "ff 15 00 01 00 00", 6, {}},
    {"bnd call *[rip+d]", "f2 ff 15 00 01 00 00", 7, {}},
    {"call *[rax+d32]", "ff 90 00 01 00 00", 6, {}},
    {"call *[rax*8+d32]", "ff 14 c5 00 01 00 00", 7, {}},
    {"call *[rax+rbx*8+d32]", "ff 94 d8 00 01 00 00", 7, {}},
    {"call *fs:[d32]", "64 ff 14 25 10 00 00 00", 8, {}},
    {"jmp *rax", "ff e0", 0, {}},
    {"mov", "48 89 e5", 0, {}},
};
INSTANTIATE_TEST_SUITE_P(Forms, X86CallBefore, ::testing::ValuesIn(calls));

TEST(X86CallBefore, NeedsBytes) {
    EXPECT_EQ(X86_64::call_before({}, end), std::nullopt);
    EXPECT_EQ(X86_64::call_before(hex("d0"), end), std::nullopt);
}

TEST(X86PltStub, TellsItsSlot) {
    auto slot = [](const char *code) { return X86_64::plt_target_slot(hex(code), VirtAddr{0x401000}); };
    EXPECT_EQ(slot("ff 25 fa 2f 00 00 68 00 00 00 00 e9"), VirtAddr{0x404000});
    EXPECT_EQ(slot("f3 0f 1e fa ff 25 f6 2f 00 00"), VirtAddr{0x404000});
    EXPECT_EQ(slot("f3 0f 1e fa f2 ff 25 f5 2f 00 00"), VirtAddr{0x404000});
    EXPECT_EQ(slot("f2 ff 25 f9 2f 00 00"), VirtAddr{0x404000});
    EXPECT_EQ(slot("4c 8b 1d f9 2f 00 00 e8"), VirtAddr{0x404000});
    EXPECT_EQ(slot("55 48 89 e5"), std::nullopt);
    EXPECT_EQ(slot("ff 25 fa"), std::nullopt);
    EXPECT_EQ(slot("f3 0f 1e fa 68 00 00 00 00 f2 e9"), std::nullopt); // the lazy half of a stub for IBT
}

TEST(X86SystemCall, SetsNumberAndArguments) {
    Registers regs;
    const std::uint64_t arguments[] = {1, 2, 3, 4, 5, 6};
    X86_64::set_syscall(regs, 9, arguments);
    EXPECT_EQ(regs.ax, 9u);
    EXPECT_EQ(regs.di, 1u);
    EXPECT_EQ(regs.si, 2u);
    EXPECT_EQ(regs.dx, 3u);
    EXPECT_EQ(regs.r10, 4u);
    EXPECT_EQ(regs.r8, 5u);
    EXPECT_EQ(regs.r9, 6u);
    regs.ax = static_cast<std::uint64_t>(-12);
    EXPECT_EQ(X86_64::syscall_result(regs), -12);
}

TEST(X86SystemCall, ShowsNoSlot) {
    Registers regs;
    regs.ip = regs.cx = 0x90010002;
    X86_64::leave_slot_in_syscall(X86_64::plan(hex("0f 05"), end), end, regs);
    EXPECT_EQ(regs.ip, 0x401002u);
    EXPECT_EQ(regs.cx, 0x401002u);
    regs.cx = 7;
    X86_64::leave_slot_in_syscall(X86_64::plan(hex("cd 80"), end), end, regs);
    EXPECT_EQ(regs.cx, 7u);
}

TEST(X86RegisterTable, HasUniqueNamesAndNumbersInBounds) {
    std::map<std::string_view, int> names;
    std::map<int, int> numbers;
    for (const arch::RegisterInfo &info : X86_64::registers()) {
        EXPECT_EQ(++names[info.name], 1) << info.name;
        if (!info.alias.empty()) {
            EXPECT_EQ(++names[info.alias], 1) << info.alias;
        }
        if (info.dwarf >= 0) {
            EXPECT_EQ(++numbers[info.dwarf], 1) << info.name;
        }
        const bool is_general = info.file == arch::RegisterInfo::File::general;
        EXPECT_LE(info.offset + info.width, is_general ? sizeof(Registers) : sizeof(X86_64::FpRegisters)) << info.name;
    }
    EXPECT_EQ(numbers.count(X86_64::stack_pointer_dwarf), 1u);
}

} // namespace

} // namespace ktrace::test
