// The answers of plan for every class of instruction.
#include <gtest/gtest.h>

#include "tests/isa/x86_64/hex.h"
#include "x86_64/x86_64.h"

namespace ktrace::test {

namespace {

using arch::Flow;
using arch::Method;
using arch::X86_64;

constexpr VirtAddr site{0x401000};

struct Row {
    const char *what;
    const char *code;
    Method method;
    Flow flow = Flow::next;
    bool repeats = false;
};

void PrintTo(const Row &row, std::ostream *out) { *out << test_name(row.what); }

class X86Plan : public ::testing::TestWithParam<Row> {};

TEST_P(X86Plan, AnswersWithItsMethod) {
    const Row &row = GetParam();
    const auto code = hex(row.code);
    const auto plan = X86_64::plan(code, site);
    EXPECT_EQ(plan.method, row.method) << row.what;
    EXPECT_EQ(plan.flow, row.flow) << row.what;
    EXPECT_EQ(plan.repeats, row.repeats) << row.what;
    EXPECT_EQ(plan.length, code.size()) << row.what;
    EXPECT_EQ(plan.why != nullptr, row.method == Method::refuse) << row.what;
}

constexpr Row emulated[] = {
    {"jmp rel8", "eb 10", Method::emulate, Flow::jump},
    {"jmp to itself", "eb fe", Method::emulate, Flow::jump},
    {"jmp rel32", "e9 00 01 00 00", Method::emulate, Flow::jump},
    {"bnd jmp", "f2 e9 00 01 00 00", Method::emulate, Flow::jump},
    {"jmp *rax", "ff e0", Method::emulate, Flow::jump},
    {"notrack jmp *rax", "3e ff e0", Method::emulate, Flow::jump},
    {"jmp *[rip+8]", "ff 25 08 00 00 00", Method::emulate, Flow::jump},
    {"jmp *[rax*8+table]", "ff 24 c5 00 10 40 00", Method::emulate, Flow::jump},
    {"je rel8", "74 10", Method::emulate, Flow::branch},
    {"jg rel32", "0f 8f 00 01 00 00", Method::emulate, Flow::branch},
    {"je rel8, predicted", "3e 74 10", Method::emulate, Flow::branch},
    {"loop", "e2 fe", Method::emulate, Flow::branch},
    {"loope", "e1 02", Method::emulate, Flow::branch},
    {"loopne", "e0 02", Method::emulate, Flow::branch},
    {"jrcxz", "e3 02", Method::emulate, Flow::branch},
    {"jecxz", "67 e3 02", Method::emulate, Flow::branch},
    {"call rel32", "e8 00 00 00 00", Method::emulate, Flow::call},
    {"addr32 call rel32", "67 e8 00 00 00 00", Method::emulate, Flow::call},
    {"data16 rex.W call rel32", "66 48 e8 00 00 00 00", Method::emulate, Flow::call},
    {"call *r12", "41 ff d4", Method::emulate, Flow::call},
    {"call *[rsp+8]", "ff 54 24 08", Method::emulate, Flow::call},
    {"call *fs:[0x10]", "64 ff 14 25 10 00 00 00", Method::emulate, Flow::call},
    {"call *gs:[0x10]", "65 ff 14 25 10 00 00 00", Method::emulate, Flow::call},
};

constexpr Row boosted[] = {
    {"push rbp", "55", Method::boost},
    {"pop rbp", "5d", Method::boost},
    {"nop", "90", Method::boost},
    {"endbr64", "f3 0f 1e fa", Method::boost},
    {"mov rbp, rsp", "48 89 e5", Method::boost},
    {"mov rax, [rip]", "48 8b 05 00 00 00 00", Method::boost},
    {"lea rax, [rip]", "48 8d 05 00 00 00 00", Method::boost},
    {"ret", "c3", Method::boost, Flow::ret},
    {"repz ret", "f3 c3", Method::boost, Flow::ret},
    {"bnd ret", "f2 c3", Method::boost, Flow::ret},
    {"ret 8", "c2 08 00", Method::boost, Flow::ret},
    {"leave", "c9", Method::boost},
    {"enter", "c8 10 00 00", Method::boost},
    {"rep movsb", "f3 a4", Method::boost, Flow::next, true},
    {"rep stosq", "f3 48 ab", Method::boost, Flow::next, true},
    {"repne scasb", "f2 ae", Method::boost, Flow::next, true},
    {"repe cmpsb", "f3 a6", Method::boost, Flow::next, true},
    {"movsb", "a4", Method::boost},
    {"pushfq", "9c", Method::boost},
    {"lock cmpxchg [rdi], esi", "f0 0f b1 37", Method::boost},
    {"xend", "0f 01 d5", Method::boost},
    {"xbegin", "c7 f8 00 00 00 00", Method::boost, Flow::other},
    {"mov ss, eax", "8e d0", Method::boost},
    {"mov eax, cs", "8c c8", Method::boost},
    {"rdtsc", "0f 31", Method::boost},
    {"hlt", "f4", Method::boost},
    {"in al, dx", "ec", Method::boost},
    {"ud2", "0f 0b", Method::boost},
    {"ud1", "0f b9 c0", Method::boost},
    {"fnstenv", "d9 30", Method::boost},
    {"xsave", "0f ae 20", Method::boost},
    {"vzeroupper", "c5 f8 77", Method::boost},
    {"vmovaps ymm0, [rip]", "c5 fc 28 05 00 00 00 00", Method::boost},
    {"vmovups zmm1, [rip]", "62 f1 7c 48 10 0d 00 00 00 00", Method::boost},
    {"vpgatherdd", "c4 e2 6d 90 0c 30", Method::boost},
    {"tilezero", "c4 e2 7b 49 c0", Method::boost},
};

constexpr Row others[] = {
    {"popfq", "9d", Method::step},
    {"syscall", "0f 05", Method::syscall, Flow::syscall},
    {"int 0x80", "cd 80", Method::syscall, Flow::syscall},
};

constexpr Row refused[] = {
    {"repne loope", "f2 e1 02", Method::refuse, Flow::branch},
    {"rep loopne", "f3 e0 02", Method::refuse, Flow::branch},
    {"sysenter", "0f 34", Method::refuse, Flow::syscall},
    {"int3", "cc", Method::refuse, Flow::other},
    {"int 3", "cd 03", Method::refuse, Flow::other},
    {"int1", "f1", Method::refuse, Flow::other},
    {"int 0x2e", "cd 2e", Method::refuse, Flow::other},
    {"iretq", "48 cf", Method::refuse, Flow::other},
    {"sysretq", "48 0f 07", Method::refuse, Flow::other},
    {"retf", "cb", Method::refuse, Flow::other},
    {"far jmp", "ff 2c 24", Method::refuse, Flow::other},
    {"far call", "ff 1c 24", Method::refuse, Flow::other},
    {"enclu", "0f 01 d7", Method::refuse, Flow::other},
    {"16-bit jmp *ax", "66 ff e0", Method::refuse, Flow::jump},
    {"16-bit jcc", "66 0f 84 00 00 00 00", Method::refuse, Flow::branch},
};

INSTANTIATE_TEST_SUITE_P(Emulated, X86Plan, ::testing::ValuesIn(emulated));
INSTANTIATE_TEST_SUITE_P(Boosted, X86Plan, ::testing::ValuesIn(boosted));
INSTANTIATE_TEST_SUITE_P(Others, X86Plan, ::testing::ValuesIn(others));
INSTANTIATE_TEST_SUITE_P(Refused, X86Plan, ::testing::ValuesIn(refused));

TEST(X86PlanOfBytes, TellsTruncatedFromUndecodable) {
    const auto truncated = X86_64::plan(hex("48 8b 05 00"), site);
    EXPECT_EQ(truncated.method, Method::refuse);
    EXPECT_STREQ(truncated.why, "the code ends in the middle of it");
    const auto invalid = X86_64::plan(hex("06 00 00 00 00 00 00 00"), site);
    EXPECT_EQ(invalid.method, Method::refuse);
    EXPECT_STREQ(invalid.why, "the bytes there are no instruction");
    EXPECT_EQ(X86_64::plan({}, site).method, Method::refuse);
}

TEST(X86PlanOfTransfer, KnowsDirectTargets) {
    EXPECT_EQ(X86_64::plan(hex("eb fe"), site).target, site);
    EXPECT_EQ(X86_64::plan(hex("e8 fb ff ff ff"), site).target, site);
    EXPECT_EQ(X86_64::plan(hex("0f 84 00 01 00 00"), site).target, VirtAddr{0x401106});
    EXPECT_EQ(X86_64::plan(hex("e3 10"), site).target, VirtAddr{0x401012});
    EXPECT_EQ(X86_64::plan(hex("ff e0"), site).target, std::nullopt);
}

TEST(X86PlanOfBytes, ReadsOneInstructionOnly) {
    const auto plan = X86_64::plan(hex("55 48 89 e5 c3"), site);
    EXPECT_EQ(plan.length, 1);
    EXPECT_EQ(plan.bytes[0], std::byte{0x55});
}

} // namespace

} // namespace ktrace::test
