// A thread in a stub that calls the agent, in the agent's entry or in the agent is taken out before each of its
// instructions, on a stage. There it has to be at the site with its own registers and flags, and the answer counts
// once: where it was carried out, that is said.
#if defined(__x86_64__)

#include <array>
#include <csignal>
#include <cstring>
#include <gtest/gtest.h>
#include <sys/ptrace.h>

#include "tests/isa/x86_64/hex.h"
#include "tests/isa/x86_64/stage.h"
#include "x86_64/detour/detour.h"
#include "x86_64/x86_64.h"

namespace ktrace::test {

namespace {

using arch::X86_64Detour;
using Registers = arch::X86_64Registers;

constexpr VirtAddr site{Stage::site}, site_code{Stage::near_slot}, entry_at{Stage::near_slot + 0x100},
    stub_at{Stage::near_slot + 0x400};
constexpr std::uint64_t place_at = Stage::data_at + 0x100, sp_at_entry = Stage::stack_at + 0x1000, red_zone = 128;
constexpr std::uint64_t always = 0x202, arithmetic = 0x8d5, steps = 0x10100;
constexpr const char *window = "55 48 89 e5 90";

/// Of the agent.
struct Answer {
    const char *what;
    std::uint32_t value;
    std::uint32_t place;
    bool rings;
};
void PrintTo(const Answer &answer, std::ostream *out) { *out << answer.what; }

void put(std::vector<std::byte> &code, std::initializer_list<int> bytes) {
    for (int each : bytes) code.push_back(static_cast<std::byte>(each));
}
void put_word(std::vector<std::byte> &code, std::uint32_t word) {
    for (int i = 0; i < 4; i++) code.push_back(static_cast<std::byte>(word >> (8 * i)));
}

/// One that changes all that it may, and has the registers' address where the real one leaves it.
std::vector<std::byte> agent_of(const Answer &answer) {
    std::vector<std::byte> code;
    put(code, {0x53, 0x55});                                     // push rbx, rbp
    put(code, {0x31, 0xc9, 0x31, 0xdb, 0x31, 0xed, 0x31, 0xf6}); // clear cx, bx, bp, si
    put(code, {0x31, 0xff, 0x45, 0x31, 0xc0, 0x45, 0x31, 0xc9}); // di, r8, r9
    put(code, {0x45, 0x31, 0xd2, 0x45, 0x31, 0xdb});             // r10, r11
    put(code, {0x5d, 0x5b, 0xb8});                               // pop them, mov value, eax
    put_word(code, answer.value);
    put(code, {0xba});
    put_word(code, answer.place);
    put(code, {0x83, 0xfa, 0x01, 0xc3}); // cmp: flags; ret
    return code;
}

class X86AgentEntry : public ::testing::TestWithParam<Answer> {
  protected:
    void SetUp() override {
        const std::vector<std::byte> code = hex(window);
        arch::DetourSite asked;
        asked.at = site;
        asked.code = code;
        asked.function_end = asked.padding_end = site + static_cast<std::int64_t>(code.size());
        const auto found = X86_64Detour::window(asked);
        ASSERT_TRUE(found);
        const auto stub = X86_64Detour::agent_stub(*found, code, site, stub_at, site_code);
        ASSERT_TRUE(stub);
        stub_ = *stub;
        entry_ = X86_64Detour::agent_entry();
        std::vector<std::byte> slot(0x1000, std::byte{0xcc});
        auto copy = [&](VirtAddr at, const std::vector<std::byte> &bytes) {
            std::copy(bytes.begin(), bytes.end(), slot.begin() + (at - site_code));
        };
        const std::uint64_t words[] = {entry_at.value, site.value};
        std::memcpy(slot.data(), words, sizeof words);
        copy(entry_at, entry_.bytes);
        copy(entry_at + static_cast<std::int64_t>(entry_.bytes.size()), agent_of(GetParam()));
        copy(stub_at, stub_.bytes);
        stage_.set_code(code);
        stage_.set_slot(site_code.value, slot);
    }

    Registers at_site(std::uint64_t flags) const {
        Registers all = stage_.initial_registers();
        std::uint64_t seed = 0x1122334455667788;
        for (std::uint64_t *each : {&all.ax, &all.bx, &all.cx, &all.dx, &all.si, &all.di, &all.bp, &all.r8, &all.r9,
                                    &all.r10, &all.r11, &all.r12, &all.r13, &all.r14, &all.r15})
            *each = seed *= 0x9e3779b97f4a7c15;
        all.sp = sp_at_entry;
        all.ip = site.value;
        all.flags = always | flags;
        return all;
    }

    bool is_in_agent(std::uint64_t pc) const { return pc >= entry_at.value && pc < stub_at.value; }
    bool is_in_head(std::uint64_t pc) const { return pc >= stub_at.value && pc < stub_at.value + stub_.copies_at; }

    /// Gives whether the answer counts.
    bool leave(Registers &registers) {
        const std::uint64_t pc = registers.ip;
        if (is_in_agent(pc)) {
            const auto out = X86_64Detour::leave_agent(pc - entry_at.value, registers, stage_);
            EXPECT_TRUE(out);
            if (!out) return false;
            EXPECT_EQ(out->in_stub.value, stub_at.value + 29) << "behind the stub's call";
            registers.ip = site.value;
            return out->has_effect;
        }
        std::array<std::byte, arch::saved_by_stub> saved{};
        stage_.read(VirtAddr{registers.sp}, saved);
        return X86_64Detour::leave(stub_, site, stub_at, registers, saved).is_undone;
    }

    std::uint64_t answered() {
        std::uint64_t value = 0;
        stage_.read(VirtAddr{place_at}, std::as_writable_bytes(std::span(&value, 1)));
        return value;
    }

    Stage stage_;
    arch::Stub stub_;
    arch::AgentEntry entry_;
};

TEST_P(X86AgentEntry, IsLeftAsIfItHadNeverCome) {
    for (const std::uint64_t flags : {std::uint64_t{0}, arithmetic, std::uint64_t{0x801}, std::uint64_t{0xc4}}) {
        std::vector<std::byte> memory(Stage::data_size + Stage::stack_size);
        stage_.set_memory(memory);
        const Registers expected = at_site(flags);
        Registers registers = expected;
        registers.ip = stub_at.value;
        stage_.set_registers(registers);
        bool has_rung = false;
        int count = 0;
        for (;; count++) {
            const Registers here = stage_.registers();
            if (!is_in_agent(here.ip) && !is_in_head(here.ip)) break;
            SCOPED_TRACE("at " + std::to_string(here.ip - site_code.value));
            Registers shown = here;
            const bool counts = leave(shown);
            shown.flags &= ~steps;
            EXPECT_EQ(shown, expected) << "is " << shown.sp << ' ' << shown.flags << ' ' << shown.ax << ' ' << shown.dx;
            EXPECT_EQ(counts, answered() != 0);
            if (HasFailure()) return;
            has_rung = here.ip == entry_at.value + entry_.bell;
            if (has_rung) break; // its tracer takes it away
            ASSERT_EQ(stage_.run(PTRACE_SINGLESTEP).signal, SIGTRAP);
        }
        EXPECT_EQ(has_rung, GetParam().rings);
        if (has_rung) continue;
        Registers end = stage_.registers();
        EXPECT_EQ(end.ip, stub_at.value + stub_.copies_at);
        end.ip = expected.ip;
        end.flags &= ~steps;
        EXPECT_EQ(end, expected);
        EXPECT_EQ(answered(), GetParam().value != 0 ? GetParam().value : 1);
        EXPECT_GT(count, 50);
        const std::vector<std::byte> after = stage_.memory();
        const std::size_t above = Stage::data_size + sp_at_entry - Stage::stack_at - red_zone;
        EXPECT_TRUE(std::equal(after.begin() + static_cast<std::ptrdiff_t>(above), after.end(),
                               memory.begin() + static_cast<std::ptrdiff_t>(above)))
            << "the stack above the red zone's end was written to";
    }
}

INSTANTIATE_TEST_SUITE_P(Answers, X86AgentEntry,
                         ::testing::Values(Answer{"a value is stored", 0x1234, place_at, false},
                                           Answer{"one is added", 0, place_at, false}, Answer{"it rings", 1, 0, true}));

/// The agent lies behind them.
TEST(X86AgentEntryBytes, AreAligned) {
    const arch::AgentEntry entry = X86_64Detour::agent_entry();
    EXPECT_EQ(entry.bytes.size() % 16, 0u);
    EXPECT_EQ(entry.bytes[entry.bell], std::byte{0xcc});
}

} // namespace

} // namespace ktrace::test

#endif
