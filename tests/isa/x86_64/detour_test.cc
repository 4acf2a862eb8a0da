// The windows of sites, what their jumps must be made of, and the copies of their instructions, by tables.
#include <gtest/gtest.h>

#include "tests/isa/x86_64/hex.h"
#include "x86_64/detour/detour.h"

namespace ktrace::test {

namespace {

using arch::ByteSet;
using arch::Copies;
using arch::DetourSite;
using arch::NoJump;
using arch::Window;
using arch::X86_64Detour;

constexpr VirtAddr site{0x90000000};

/// A function that is a site at its entry, as a table has it: offsets are from there.
struct Function {
    const char *what, *code;                   // with what lies behind it
    int size = -1;                             // -1: all bytes
    int padding_end = -1;                      // -1: the end of the code
    std::vector<int> targets = {}, sites = {}; // in order
    bool shadow_stack = false;
};

class Asked {
  public:
    explicit Asked(const Function &function) : code_(hex(function.code)) {
        auto place = [](int offset) { return site + offset; };
        std::transform(function.targets.begin(), function.targets.end(), std::back_inserter(targets_), place);
        std::transform(function.sites.begin(), function.sites.end(), std::back_inserter(sites_), place);
        const auto size = static_cast<std::int64_t>(code_.size());
        site_.at = site;
        site_.code = code_;
        site_.function_end = site + (function.size < 0 ? size : function.size);
        site_.padding_end = site + (function.padding_end < 0 ? size : function.padding_end);
        site_.targets = targets_;
        site_.sites = sites_;
        site_.shadow_stack = function.shadow_stack;
    }
    tl::expected<Window, NoJump> window() const { return X86_64Detour::window(site_); }
    std::span<const std::byte> code() const { return code_; }

  private:
    std::vector<std::byte> code_;
    std::vector<VirtAddr> targets_, sites_;
    DetourSite site_;
};

/// `4, 5t, 6s`: inner boundaries, with t for targets and s for those that stay; behind a colon the starts.
std::string text_of(const Window &window) {
    std::string text = std::to_string(window.length) + ":";
    for (std::uint8_t start : window.starts) text += " " + std::to_string(start);
    text += " |";
    for (const arch::Boundary &each : window.inner)
        text += " " + std::to_string(each.offset) + (each.target ? "t" : "") + (each.stays ? "s" : "");
    return text;
}

struct Taken : Function {
    std::string window;
};

void PrintTo(const Taken &row, std::ostream *out) { *out << test_name(row.what); }

class X86Window : public ::testing::TestWithParam<Taken> {};

TEST_P(X86Window, HoldsWholeInstructions) {
    const auto window = Asked(GetParam()).window();
    ASSERT_TRUE(window) << GetParam().what << ": " << static_cast<int>(window.error());
    EXPECT_EQ(text_of(*window), GetParam().window) << GetParam().what;
}

const Taken taken[] = {
    {{"one instruction", "b8 01 00 00 00 c3"}, "5: 0 |"},
    {{"a longer one", "48 c7 c0 01 00 00 00 c3"}, "7: 0 |"},
    {{"push, mov, push", "55 48 89 e5 41 57 c3"}, "6: 0 1 4 | 1 4"},
    {{"four pushes and a sub", "55 53 50 51 48 83 ec 08 c3"}, "8: 0 1 2 3 4 | 1 2 3 4"},
    {{"behind the function's end nops", "31 c0 c3 0f 1f 00 55", 3, 6}, "6: 0 2 3 | 2 3"},
    {{"a long nop", "c3 66 2e 0f 1f 84 00 00 00 00 00", 1}, "11: 0 1 | 1"},
    {{"int3 as padding stays", "31 c0 c3 cc cc cc", 3}, "5: 0 2 | 2 3s 4s"},
    {{"int3 behind a return within the function", "c3 cc cc cc cc c3"}, "5: 0 | 1s 2s 3s 4s"},
    {{"nops behind a return within the function", "c3 0f 1f 40 00 c3"}, "5: 0 1 | 1"},
    {{"code behind a return, where a branch leads", "c3 31 c0 31 c0 c3", -1, -1, {1}}, "5: 0 1 3 | 1t 3"},
    {{"a branch to an inner boundary", "55 48 89 e5 41 57 c3", -1, -1, {4}}, "6: 0 1 4 | 1 4t"},
    {{"a branch to the site", "55 48 89 e5 41 57 c3", -1, -1, {0}}, "6: 0 1 4 | 1 4"},
    {{"a branch behind the jump", "48 c7 c0 01 00 00 00 c3", -1, -1, {5}}, "7: 0 |"},
    {{"behind lock", "f0 0f b1 0d 00 00 00 00 c3"}, "8: 0 | 1"},
    {{"a branch behind lock", "74 01 f0 0f b1 0f c3", -1, -1, {3}}, "6: 0 2 | 2 3t"},
    {{"behind lock that is not first", "2e f0 0f b1 0f c3"}, "5: 0 | 2"},
    {{"a lock at the jump's end", "48 89 e5 90 f0 0f b1 0f c3"}, "8: 0 3 4 | 3 4"},
    {{"a call at the end", "e8 00 00 00 00 c3"}, "5: 0 |"},
    {{"an indirect call at the end", "48 89 df ff d0 c3"}, "5: 0 3 | 3"},
    {{"loop", "e2 fe e3 00 e1 00 c3"}, "6: 0 2 4 | 2 4"},
    {{"a jump and a return of two functions", "ff e0 0f 1f 00 55", 2, 5}, "5: 0 2 | 2"},
    {{"the site among others", "55 48 89 e5 41 57 c3", -1, -1, {}, {0, 6}}, "6: 0 1 4 | 1 4"},
};
INSTANTIATE_TEST_SUITE_P(Windows, X86Window, ::testing::ValuesIn(taken));

struct Refused : Function {
    NoJump why;
};

void PrintTo(const Refused &row, std::ostream *out) { *out << test_name(row.what); }

class X86NoWindow : public ::testing::TestWithParam<Refused> {};

TEST_P(X86NoWindow, HasItsReason) {
    const auto window = Asked(GetParam()).window();
    ASSERT_FALSE(window) << GetParam().what << ": " << text_of(*window);
    EXPECT_EQ(window.error(), GetParam().why) << GetParam().what;
}

const Refused refused[] = {
    {{"bytes that are none", "55 06 90 90 90 90"}, NoJump::no_instruction},
    {{"code that is not known", "55 48", 7, 7}, NoJump::no_instruction},
    {{"syscall", "0f 05 90 90 90 c3"}, NoJump::system_call},
    {{"int 0x80", "90 cd 80 90 90 c3"}, NoJump::system_call},
    {{"sysenter", "90 0f 34 90 90 c3"}, NoJump::system_call},
    {{"int3", "90 cc 90 90 90 c3"}, NoJump::breakpoint},
    {{"int3 at the site", "cc 90 90 90 90 c3"}, NoJump::breakpoint},
    {{"int3 behind a return, where a branch leads", "c3 cc 90 90 90 c3", -1, -1, {1}}, NoJump::breakpoint},
    {{"ud2", "90 0f 0b 90 90 c3"}, NoJump::undefined},
    {{"xbegin", "c7 f8 00 00 00 00"}, NoJump::transaction},
    {{"popf", "90 9d 90 90 90 c3"}, NoJump::trap_flag},
    {{"int 3, two bytes", "90 cd 03 90 90 c3"}, NoJump::unmovable},
    {{"iretq", "90 48 cf 90 90 c3"}, NoJump::unmovable},
    {{"a far call", "ff 18 90 90 90 c3"}, NoJump::unmovable},
    {{"a branch of 16 bits", "66 74 00 90 90 c3"}, NoJump::unmovable},
    {{"a call by the stack pointer", "90 90 90 ff d4 c3"}, NoJump::unmovable},
    {{"a call that is not last", "ff d0 90 90 90 c3"}, NoJump::call_not_last},
    {{"a call under a shadow stack", "e8 00 00 00 00 c3", -1, -1, {}, {}, true}, NoJump::call_with_shadow_stack},
    {{"a branch to the middle of the first", "48 89 e5 90 90 c3", -1, -1, {1}}, NoJump::branch_into_middle},
    {{"a branch to the middle of the last", "55 48 c7 c0 01 00 00 00", -1, -1, {2}}, NoJump::branch_into_middle},
    {{"behind a return", "c3 48 89 e5 90 90 c3"}, NoJump::maybe_data},
    {{"behind nops behind a jump", "eb 00 90 48 89 e5 c3"}, NoJump::maybe_data},
    {{"zeroes behind the end", "31 c0 c3 00 00 00", 3}, NoJump::function_ends},
    {{"the next function", "31 c0 c3 55 53 c3", 3, 3}, NoJump::function_ends},
    {{"the next function, a nop", "31 c0 c3 0f 1f 00 c3", 3, 3}, NoJump::function_ends},
    {{"nops up to the next function", "31 c0 c3 90 0f 1f 00 c3", 3, 4}, NoJump::function_ends},
    {{"int3 up to the next function", "31 c0 c3 cc cc", 3, 4}, NoJump::function_ends},
    {{"an instruction over the end", "31 c0 48 89 e5", 4}, NoJump::function_ends},
    {{"nothing behind the end", "31 c0 c3", 3}, NoJump::function_ends},
    {{"another site", "55 48 89 e5 41 57 c3", -1, -1, {}, {4}}, NoJump::other_site},
};
INSTANTIATE_TEST_SUITE_P(Windows, X86NoWindow, ::testing::ValuesIn(refused));

TEST(X86Targets, AreWhereBranchesAndCallsLead) {
    // je 4; jmp *rax; (not reached) call 0; jmp 0; ret; an int3; a branch out of the function
    const auto code = hex("74 02 ff e0 e8 f7 ff ff ff eb f5 c3 cc 74 40");
    const std::vector<VirtAddr> all = {site, site + 4};
    EXPECT_EQ(X86_64Detour::targets(code, site), all);
}

TEST(X86Targets, AreFoundBehindJumpsThroughTables) {
    const auto code = hex("ff 24 c5 00 10 40 00 90 90 74 fb c3");
    EXPECT_EQ(X86_64Detour::targets(code, site), std::vector<VirtAddr>{site + 6});
}

TEST(X86LandingRule, HasTrapsOnInnerBoundaries) {
    const arch::TrapBytes traps{X86_64Detour::trap_byte() | X86_64Detour::illegal_bytes(), X86_64Detour::trap_byte()};
    const auto window = Asked({"", "55 48 89 e5 41 57 c3", -1, -1, {4}}).window();
    const arch::LandingRule rule = X86_64Detour::landing_rule(*window, site, traps);
    EXPECT_EQ(rule.from, site + 5);
    EXPECT_EQ(rule.distance[0], traps.anywhere);
    EXPECT_TRUE(rule.distance[1].all());
    EXPECT_TRUE(rule.distance[2].all());
    EXPECT_EQ(rule.distance[3], traps.at_targets);
    const auto padded = Asked({"", "31 c0 c3 cc cc cc", 3}).window();
    EXPECT_EQ(X86_64Detour::landing_rule(*padded, site, traps).distance[2], X86_64Detour::trap_byte());
}

TEST(X86LandingRule, NoIllegalByteIsAnInstruction) {
    const ByteSet &illegal = X86_64Detour::illegal_bytes();
    EXPECT_EQ(illegal.count(), 15u);
    for (unsigned byte = 0; byte < 256; ++byte) {
        if (!illegal[byte]) continue;
        std::vector<std::byte> code(15, std::byte{0x90});
        code[0] = static_cast<std::byte>(byte);
        EXPECT_EQ(Asked({"", "90"}).window().error(), NoJump::function_ends);
        DetourSite alone{site, code, site + 15, site + 15, {}, {}, false};
        ASSERT_FALSE(X86_64Detour::window(alone)) << byte;
        EXPECT_EQ(X86_64Detour::window(alone).error(), NoJump::no_instruction) << byte;
    }
}

TEST(X86Jump, Reaches2GiB) {
    EXPECT_EQ(X86_64Detour::jump(site, site + 0x105), hex("e9 00 01 00 00"));
    EXPECT_EQ(X86_64Detour::jump(site, site + 0x80000004), hex("e9 ff ff ff 7f"));
    EXPECT_EQ(X86_64Detour::jump(site, site + 0x80000005), std::nullopt);
    EXPECT_EQ(X86_64Detour::jump(site, site - 0x7ffffffb), hex("e9 00 00 00 80"));
}

struct Copied : Function {
    const char *bytes;   // at `near`
    std::string entries; // offset=at
    std::string shown;   // at=offset from the site, +pushed
};

constexpr VirtAddr near{0x90010000};

std::string text_of_entries(const Copies &copies) {
    std::string text;
    for (const Copies::Entry &each : copies.entries)
        text += (text.empty() ? "" : " ") + std::to_string(each.offset) + "=" + std::to_string(each.at);
    return text;
}

std::string text_of_shown(const Copies &copies) {
    std::string text;
    for (const Copies::Shown &each : copies.shown) {
        text += (text.empty() ? "" : " ") + std::to_string(each.at) + "=" + std::to_string(each.pc - site);
        if (each.pushed != 0) text += "+" + std::to_string(each.pushed);
    }
    return text;
}

void PrintTo(const Copied &row, std::ostream *out) { *out << test_name(row.what); }

class X86Copies : public ::testing::TestWithParam<Copied> {};

TEST_P(X86Copies, DoTheSameElsewhere) {
    const Asked asked(GetParam());
    const auto window = asked.window();
    ASSERT_TRUE(window) << GetParam().what << ": " << static_cast<int>(window.error());
    const auto copies = X86_64Detour::copy(*window, asked.code(), site, near);
    ASSERT_TRUE(copies) << GetParam().what;
    EXPECT_EQ(copies->bytes, hex(GetParam().bytes)) << GetParam().what;
    EXPECT_EQ(text_of_entries(*copies), GetParam().entries) << GetParam().what;
    EXPECT_EQ(text_of_shown(*copies), GetParam().shown) << GetParam().what;
}

const Copied copied[] = {
    {{"plain", "55 48 89 e5 41 57 c3"}, "55 48 89 e5 41 57 e9 fb ff fe ff", "0=0 1=1 4=4", "0=0 1=1 4=4 6=6"},
    {{"a pc-relative operand", "48 8b 05 00 10 00 00"}, "48 8b 05 00 10 ff ff e9 fb ff fe ff", "0=0", "0=0 7=7"},
    {{"a return, and nops", "31 c0 c3 0f 1f 00", 3},
     "31 c0 c3 0f 1f 00 e9 fb ff fe ff",
     "0=0 2=2 3=3",
     "0=0 2=2 3=3 6=6"},
    {{"a return, and int3", "31 c0 c3 cc cc", 3}, "31 c0 c3", "0=0 2=2", "0=0 2=2"},
    {{"control comes to an int3 that stays", "31 c0 90 cc cc", 3}, "31 c0 90 e9 fb ff fe ff", "0=0 2=2", "0=0 2=2 3=3"},
    {{"jumps: short and near", "eb 10 e9 00 10 00 00", -1, -1, {2}},
     "e9 0d 00 ff ff e9 fd 0f ff ff",
     "0=0 2=5",
     "0=0 5=2"},
    {{"a jump by a register", "48 89 df 41 ff e4"}, "48 89 df 41 ff e4", "0=0 3=3", "0=0 3=3"},
    {{"a jump through memory", "ff 25 00 10 00 00"}, "ff 25 00 10 ff ff", "0=0", "0=0"},
    {{"branches: short and near", "74 10 0f 85 00 10 00 00"},
     "0f 84 0c 00 ff ff 0f 85 fc 0f ff ff e9 f7 ff fe ff",
     "0=0 2=6",
     "0=0 6=2 12=8"},
    {{"loop and jecxz", "e2 10 67 e3 10"},
     "e2 02 eb 05 e9 09 00 ff ff 67 e3 02 eb 05 e9 02 00 ff ff e9 ed ff fe ff",
     "0=0 2=9",
     "0=0 2=2 4=18 9=2 12=5 14=21 19=5"},
    {{"a call", "e8 00 10 00 00"}, "ff 35 05 00 00 00 e9 fa 0f ff ff 05 00 00 90 00 00 00 00", "0=0", "0=0 6=0+8"},
    {{"a call behind another instruction", "48 89 df ff d0"},
     "48 89 df ff 35 02 00 00 00 ff e0 05 00 00 90 00 00 00 00",
     "0=0 3=3",
     "0=0 3=3 9=3+8"},
    {{"behind lock", "74 01 f0 0f b1 0f", -1, -1, {3}},
     "0f 84 fd ff fe ff f0 0f b1 0f e9 f7 ff fe ff",
     "0=0 2=6 3=7",
     "0=0 6=2 7=3 10=6"},
};
INSTANTIATE_TEST_SUITE_P(Copies, X86Copies, ::testing::ValuesIn(copied));

TEST(X86Copies, DoNotReachEverywhere) {
    for (const char *code : {"48 8b 05 00 00 00 70", "0f 84 00 00 00 70", "e9 00 00 00 70", "ff 25 00 00 00 70",
                             "55 48 89 e5 90", "e2 00 90 90 90"}) {
        const Asked asked({"", code});
        const auto window = asked.window();
        ASSERT_TRUE(window) << code;
        const auto far = X86_64Detour::copy(*window, asked.code(), site, VirtAddr{0x7f0000000000});
        ASSERT_FALSE(far) << code;
        EXPECT_EQ(far.error(), NoJump::out_of_reach) << code;
        EXPECT_TRUE(X86_64Detour::copy(*window, asked.code(), site, near)) << code;
    }
}

} // namespace

} // namespace ktrace::test
