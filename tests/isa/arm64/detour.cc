// arm64's jumps: windows and why there is none, copies word by word, reach. All pure.
#include <gtest/gtest.h>

#include "arm64/detour/detour.h"
#include "words.h"

namespace ktrace::arch::test {
namespace {

constexpr VirtAddr site{0x410000}, stub_at{0x500000};
constexpr std::int64_t mega = 1 << 20, reach = 128 * mega;

DetourSite asked(std::span<const std::byte> code) {
    DetourSite all;
    all.at = site;
    all.code = code;
    all.function_end = all.padding_end = site + static_cast<std::int64_t>(a64_size);
    return all;
}

tl::expected<Window, NoJump> window(std::uint32_t word) { return Arm64Detour::window(asked(code({word}))); }

tl::expected<Copies, NoJump> copies(std::uint32_t word, VirtAddr to = stub_at) {
    const auto found = window(word);
    if (!found) return tl::unexpected(found.error());
    return Arm64Detour::copy(*found, code({word}), site, to);
}

std::vector<std::uint32_t> words(const std::vector<std::byte> &bytes) {
    std::vector<std::uint32_t> all;
    for (std::size_t i = 0; i + a64_size <= bytes.size(); i += a64_size) all.push_back(a64_word(bytes, i));
    return all;
}

std::uint32_t branch(VirtAddr from, VirtAddr to) { return *a64_make_branch(to - from); }

TEST(Arm64Window, IsOneInstruction) {
    const auto found = window(0xa9be7bfd); // stp x29, x30, [sp, #-32]!
    ASSERT_TRUE(found);
    EXPECT_EQ(found->length, 4);
    EXPECT_EQ(found->starts, std::vector<std::uint8_t>{0});
    EXPECT_TRUE(found->inner.empty());
}

struct Refused {
    std::uint32_t word;
    NoJump why;
    const char *text;
};

TEST(Arm64Window, IsNoneWhereTheInstructionMayNotMove) {
    const Refused rows[] = {
        {0xd4000001, NoJump::system_call, "svc #0"},      {0xd4200000, NoJump::breakpoint, "brk #0"},
        {0x00000000, NoJump::undefined, "udf #0"},        {0xd5233060, NoJump::transaction, "tstart x0"},
        {0xc85f7c20, NoJump::unmovable, "ldxr x0, [x1]"}, {0xd4400000, NoJump::unmovable, "hlt #0"},
    };
    for (const Refused &each : rows) {
        ASSERT_FALSE(window(each.word)) << each.text;
        EXPECT_EQ(window(each.word).error(), each.why) << each.text;
    }
    EXPECT_EQ(Arm64Detour::window(asked({})).error(), NoJump::no_instruction);
    const auto nop = code({0xd503201f});
    DetourSite behind_the_end = asked(nop);
    behind_the_end.function_end = site + 2;
    EXPECT_EQ(Arm64Detour::window(behind_the_end).error(), NoJump::function_ends);
}

TEST(Arm64Window, IsNoneForACallWhereThereAreShadowStacks) {
    for (const std::uint32_t call : {0x94000010u, 0xd63f0060u}) {
        const auto bytes = code({call});
        DetourSite all = asked(bytes);
        EXPECT_TRUE(Arm64Detour::window(all));
        all.shadow_stack = true;
        EXPECT_EQ(Arm64Detour::window(all).error(), NoJump::call_with_shadow_stack);
    }
}

TEST(Arm64Window, LeavesLandingPadsOfGuardedPagesAlone) {
    const std::pair<std::uint32_t, bool> rows[] = {
        {0xd503241f, true},  {0xd503245f, true},  {0xd503249f, true},  {0xd50324df, true}, // bti, bti c, j, jc
        {0xd503233f, true},  {0xd503237f, true},                                           // paciasp, pacibsp
        {0xd503201f, false}, {0xd50323bf, false}, {0xa9be7bfd, false},                     // nop, autiasp, stp
    };
    for (const auto &[word, is_pad] : rows) {
        const auto bytes = code({word});
        EXPECT_EQ(Arm64Detour::is_landing_pad(bytes), is_pad) << std::hex << word;
        DetourSite all = asked(bytes);
        EXPECT_TRUE(Arm64Detour::window(all)) << std::hex << word;
        all.is_guarded = true;
        EXPECT_EQ(Arm64Detour::window(all).has_value(), !is_pad) << std::hex << word;
        if (is_pad) {
            EXPECT_EQ(Arm64Detour::window(all).error(), NoJump::landing_pad);
        }
    }
}

TEST(Arm64Jump, ReachesAsFarAsABranch) {
    EXPECT_EQ(Arm64Detour::jump(site, site + 0x100), code({0x14000040}));
    EXPECT_EQ(Arm64Detour::jump(site, site - 4), code({0x17ffffff}));
    EXPECT_EQ(Arm64Detour::jump(VirtAddr{2 * reach}, VirtAddr{3 * reach - 4}), code({0x15ffffff}));
    EXPECT_EQ(Arm64Detour::jump(VirtAddr{2 * reach}, VirtAddr{reach}), code({0x16000000}));
    EXPECT_FALSE(Arm64Detour::jump(VirtAddr{2 * reach}, VirtAddr{3 * reach}));
    EXPECT_FALSE(Arm64Detour::jump(VirtAddr{2 * reach}, VirtAddr{reach - 4}));
}

TEST(Arm64Copy, OfAnInstructionThatReadsNoPcIsItself) {
    for (const std::uint32_t word : {0xa9be7bfdu, 0xd10103ffu, 0xd503233fu, 0xaa0003f3u}) {
        const auto made = copies(word);
        ASSERT_TRUE(made) << std::hex << word;
        EXPECT_EQ(words(made->bytes), (std::vector<std::uint32_t>{word, branch(stub_at + 4, site + 4)}));
        ASSERT_EQ(made->shown.size(), 2u);
        EXPECT_EQ(made->shown[0].pc, site);
        EXPECT_EQ(made->shown[1].pc, site + 4);
    }
    for (const std::uint32_t last : {0xd65f03c0u, 0xd61f0060u, 0xd65f0bffu}) { // ret, br x3, retaa
        const auto made = copies(last);
        ASSERT_TRUE(made) << std::hex << last;
        EXPECT_EQ(words(made->bytes), std::vector<std::uint32_t>{last});
    }
}

std::uint64_t literal(const Copies &made) {
    std::uint64_t value = 0;
    std::memcpy(&value, made.bytes.data() + made.bytes.size() - sizeof value, sizeof value);
    return value;
}

TEST(Arm64Copy, OfAnAddressLoadsIt) {
    const std::pair<std::uint32_t, std::uint64_t> rows[] = {
        {0x10000045, 0x410008}, // adr x5, #8
        {0x70ffffe5, 0x40ffff}, // adr x5, #-1
        {0xb0000005, 0x411000}, // adrp x5, #4096
        {0xf0ffffe5, 0x40f000}, // adrp x5, #-4096
    };
    for (const auto &[word, value] : rows) {
        const auto made = copies(word);
        ASSERT_TRUE(made) << std::hex << word;
        EXPECT_EQ(words(made->bytes)[0], 0x58000045u) << std::hex << word; // ldr x5, #8
        EXPECT_EQ(words(made->bytes)[1], branch(stub_at + 4, site + 4));
        EXPECT_EQ(literal(*made), value) << std::hex << word;
    }
    const auto shifted = copies(0x10000045, stub_at + 4); // the literal lies at a multiple of eight
    ASSERT_TRUE(shifted);
    EXPECT_EQ(shifted->bytes.size(), 20u);
    EXPECT_EQ(words(shifted->bytes)[0], 0x58000065u); // ldr x5, #12
}

TEST(Arm64Copy, OfALiteralsLoadIsItselfWhereItReaches) {
    const auto near = copies(0x58000041, site + 0x80000); // ldr x1, #8
    ASSERT_TRUE(near);
    EXPECT_EQ(words(near->bytes)[0], *a64_retarget_literal(0x58000041, 8 - 0x80000));
    for (const std::uint32_t word : {0x58000041u, 0x1c000041u, 0xd8000041u}) // a general register, SIMD, prfm
        EXPECT_EQ(copies(word, site + 2 * mega).error(), NoJump::out_of_reach);
}

TEST(Arm64Copy, OfABranchLeadsToItsTarget) {
    const auto always = copies(0x14000010);
    ASSERT_TRUE(always);
    EXPECT_EQ(words(always->bytes), std::vector<std::uint32_t>{branch(stub_at, site + 0x40)});
    const std::pair<std::uint32_t, std::uint32_t> rows[] = {
        {0x54000200, 0x54000040}, // b.eq
        {0x54fffe0d, 0x5400004d}, // b.le, back
        {0xb4000203, 0xb4000043}, // cbz x3
        {0x35fffe03, 0x35000043}, // cbnz w3, back
        {0x37180203, 0x37180043}, // tbnz w3, #3
        {0xb61ffe03, 0xb6180043}, // tbz x3, #35, back
    };
    for (const auto &[word, copied] : rows) {
        const auto made = copies(word);
        ASSERT_TRUE(made) << std::hex << word;
        const VirtAddr target = *plan(word, site).target;
        EXPECT_EQ(words(made->bytes),
                  (std::vector<std::uint32_t>{copied, branch(stub_at + 4, site + 4), branch(stub_at + 8, target)}));
        ASSERT_EQ(made->shown.size(), 3u);
        EXPECT_EQ(made->shown[2].pc, target);
    }
    EXPECT_EQ(copies(0x14000010, site + reach + 0x100).error(), NoJump::out_of_reach);
}

TEST(Arm64Copy, OfACallReturnsBehindTheSite) {
    const auto direct = copies(0x94000010);
    ASSERT_TRUE(direct);
    EXPECT_EQ(words(direct->bytes)[0], 0x5800005eu); // ldr x30, #8
    EXPECT_EQ(words(direct->bytes)[1], branch(stub_at + 4, site + 0x40));
    EXPECT_EQ(literal(*direct), (site + 4).value);
    const auto indirect = copies(0xd63f0060);
    ASSERT_TRUE(indirect);
    EXPECT_EQ(words(indirect->bytes)[1], 0xd61f0060u); // br x3
    EXPECT_EQ(literal(*indirect), (site + 4).value);
    EXPECT_EQ(copies(0xd63f03c0).error(), NoJump::unmovable) << "blr x30";
    EXPECT_EQ(copies(0xd63f087f).error(), NoJump::unmovable) << "blraaz x3";
}

TEST(Arm64Stub, HasRoom) {
    constexpr std::size_t most = 128;
    for (const std::uint32_t word : {0xa9be7bfdu, 0x10000045u, 0xb4000203u, 0x94000010u}) {
        const auto found = window(word);
        ASSERT_TRUE(found);
        const auto counting = Arm64Detour::counting_stub(*found, code({word}), site, stub_at, VirtAddr{0x600000});
        const auto calling = Arm64Detour::agent_stub(*found, code({word}), site, stub_at, VirtAddr{0x600000});
        ASSERT_TRUE(counting && calling);
        EXPECT_LE(counting->bytes.size(), most);
        EXPECT_LE(calling->bytes.size(), most);
        EXPECT_FALSE(counting->calls_agent);
        EXPECT_TRUE(calling->calls_agent);
    }
}

/// The agent lies behind them.
TEST(Arm64AgentEntry, IsAlignedAndRings) {
    const AgentEntry entry = Arm64Detour::agent_entry();
    EXPECT_EQ(entry.bytes.size() % 16, 0u);
    const auto trap = Arm64::trap_bytes();
    EXPECT_TRUE(std::equal(trap.begin(), trap.end(), entry.bytes.begin() + static_cast<std::ptrdiff_t>(entry.bell)));
}

TEST(Arm64Rehearsal, HasSitesThatMayJump) {
    const RehearsalCode all = Arm64Detour::rehearsal_code();
    for (const std::size_t at : {all.inner, all.around, all.returns[0], all.returns[1], all.returns[2]})
        EXPECT_EQ(a64_word(all.bytes, at), 0xd503201fu) << at;
    for (const std::size_t behind : all.returns)
        EXPECT_EQ(a64_form(a64_word(all.bytes, behind - a64_size)), A64Form::branch_link) << behind;
}

} // namespace
} // namespace ktrace::arch::test
