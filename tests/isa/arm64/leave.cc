// A thread in a stub, in the agent's entry or in the agent is taken out before each of its instructions. There it has
// to be where one is that never came to the stub, with the same registers, flags and memory; and what the hit has left
// counts once.
#include "puppet.h"

#if defined(__aarch64__)

#include <algorithm>
#include <array>
#include <gtest/gtest.h>
#include <string>

#include "arm64/detour/detour.h"

namespace ktrace::arch::test {
namespace {

constexpr std::size_t site_offset = 0x8000, code_size = 0x10000, stub_offset = 0x11000, site_code_offset = 0x12000,
                      entry_offset = 0x12100, agent_end = 0x13000, data_offset = 0x20000, stack_offset = 0x30000,
                      stack_size = 0x4000, counters_offset = 0x100000;
constexpr std::size_t sp_offset = stack_offset + 0x2000, target_offset = site_offset + 0x40;
constexpr std::uint64_t flags_mask = 0xfull << 28;

/// Registers, and the memory from the data to the stack's end.
struct Moment {
    Arm64Registers registers;
    std::vector<std::byte> memory;
};

/// Through the original code, before each instruction, and at its end.
using Course = std::vector<Moment>;

std::string difference(const Moment &expected, const Moment &shown) {
    for (unsigned n = 0; n < 31; n++)
        if (expected.registers.x[n] != shown.registers.x[n]) return "x" + std::to_string(n);
    if (expected.registers.sp != shown.registers.sp) return "sp";
    if (expected.registers.pc != shown.registers.pc) return "pc";
    if (((expected.registers.pstate ^ shown.registers.pstate) & flags_mask) != 0) return "flags";
    // Below the stack pointer of the entry lies nothing of the program's, but what it has pushed since.
    auto visible = [](std::vector<std::byte> memory) {
        auto hide = [&](std::size_t from, std::size_t to) {
            std::fill(memory.begin() + static_cast<std::ptrdiff_t>(from - data_offset),
                      memory.begin() + static_cast<std::ptrdiff_t>(to - data_offset), std::byte{0});
        };
        hide(stack_offset, sp_offset - 0x100);
        hide(sp_offset - 16, sp_offset);
        return memory;
    };
    return visible(expected.memory) == visible(shown.memory) ? "" : "memory";
}

class Arm64Leaving : public testing::Test {
  protected:
    Puppet puppet;
    VirtAddr site = puppet.at(site_offset), stub_at = puppet.at(stub_offset), target = puppet.at(target_offset);

    Window window_of(std::uint32_t word) const {
        DetourSite asked;
        const auto bytes = code({word});
        asked.at = site;
        asked.code = bytes;
        asked.function_end = asked.padding_end = site + 4;
        const auto window = Arm64Detour::window(asked);
        EXPECT_TRUE(window);
        return window.value_or(Window{});
    }

    /// No two registers, and no two words of the stack, have the same value.
    Moment entry(std::uint64_t flags) {
        Moment made{puppet.registers(), {}};
        std::uint64_t seed = 0x1122334455667788;
        for (std::uint64_t &x : made.registers.x) x = seed *= 0x9e3779b97f4a7c15;
        made.registers.x[1] = puppet.at(data_offset).value;
        made.registers.x[3] = target.value;
        made.registers.x[4] = 0;
        made.registers.x[29] = puppet.at(sp_offset + 0x40).value;
        made.registers.x[30] = target.value + 0x20;
        made.registers.sp = puppet.at(sp_offset).value;
        made.registers.pc = site.value;
        made.registers.pstate = flags << 28;
        made.memory.resize(stack_offset + stack_size - data_offset);
        for (std::size_t i = 0; i + sizeof seed <= made.memory.size(); i += sizeof seed) {
            seed *= 0x9e3779b97f4a7c15;
            std::memcpy(made.memory.data() + i, &seed, sizeof seed);
        }
        return made;
    }

    std::span<std::byte> memory() {
        return puppet.bytes(puppet.at(data_offset), stack_offset + stack_size - data_offset);
    }
    void set(const Moment &moment) {
        std::copy(moment.memory.begin(), moment.memory.end(), memory().begin());
        puppet.set_registers(moment.registers);
    }
    Moment now() { return {puppet.registers(), {memory().begin(), memory().end()}}; }

    bool is_breakpoint(VirtAddr at) {
        std::array<std::byte, a64_size> there{};
        return puppet.read(at, there) == there.size() && a64_word(there) == Puppet::breakpoint;
    }

    /// There are breakpoints wherever there is no code.
    Course run_on() {
        Course run;
        for (bool goes_on = true; goes_on;) {
            run.push_back(now());
            goes_on = !is_breakpoint(VirtAddr{run.back().registers.pc}) && puppet.step();
        }
        return run;
    }

    std::uint64_t word_at(VirtAddr at) {
        std::uint64_t value = 0;
        puppet.read(at, std::as_writable_bytes(std::span(&value, 1)));
        return value;
    }
};

struct Row {
    const char *what;
    std::uint32_t word;
};

class Arm64LeaveStub : public Arm64Leaving, public testing::WithParamInterface<Row> {
  protected:
    void SetUp() override {
        const std::uint32_t word = GetParam().word;
        const auto window = window_of(word);
        // Where a thread counts, from the counter in the first row (stub.cc).
        const auto row = static_cast<std::uint32_t>((puppet.at(sp_offset).value - 16) >> 14) * 0x9e3779b1u >> 28;
        counter_ = puppet.at(counters_offset + row * counter_row_size);
        const auto stub = Arm64Detour::counting_stub(window, code({word}), site, stub_at, puppet.at(counters_offset));
        ASSERT_TRUE(stub) << static_cast<int>(stub.error());
        stub_ = *stub;
        puppet.clear(puppet.at(0), code_size);
        puppet.put(site, code({word}));
        puppet.put(target, code({0x91000400, 0xd65f03c0})); // add x0, x0, #1 | ret
        puppet.put(stub_at, stub_.bytes);
    }

    bool is_in_stub(std::uint64_t pc) const { return pc >= stub_at.value && pc < stub_at.value + stub_.bytes.size(); }

    std::uint64_t hits(const Course &run, std::size_t first) const {
        return static_cast<std::uint64_t>(
            std::count_if(run.begin() + static_cast<std::ptrdiff_t>(first), run.end(),
                          [&](const Moment &each) { return each.registers.pc == site.value; }));
    }

    OutOfStub leave(Moment &moment) {
        std::array<std::byte, saved_by_stub> saved{};
        puppet.read(VirtAddr{moment.registers.sp}, saved);
        return Arm64Detour::leave(stub_, site, stub_at, moment.registers, saved);
    }

    /// `reached`, of those of the run that never came to the stub, is where it was before.
    void check(const Moment &here, const Course &expected, std::size_t &reached) {
        Moment shown = here;
        const OutOfStub out =
            is_in_stub(here.registers.pc) ? leave(shown) : OutOfStub{VirtAddr{here.registers.pc}, false};
        EXPECT_EQ(out.pc.value, shown.registers.pc);
        EXPECT_TRUE(!out.is_undone || out.pc == site);
        const auto is_this = [&](const Moment &each) { return difference(each, shown).empty(); };
        const auto found =
            std::find_if(expected.begin() + static_cast<std::ptrdiff_t>(reached), expected.end(), is_this);
        ASSERT_NE(found, expected.end()) << "against the last one: " << difference(expected[reached], shown);
        reached = static_cast<std::size_t>(found - expected.begin());
        const std::uint64_t counted = word_at(counter_);
        if (reached == 0) {
            EXPECT_EQ(counted, out.is_undone) << "it comes to the site again";
            return;
        }
        set(shown);
        const Course rest = run_on();
        EXPECT_EQ(difference(expected.back(), rest.back()), "");
        EXPECT_EQ(counted - out.is_undone + hits(rest, 0), hits(expected, 0));
        set(here);
    }

    Stub stub_;
    VirtAddr counter_;
};

TEST_P(Arm64LeaveStub, IsAsIfItHadNeverCome) {
    for (const std::uint64_t flags : {0, 5, 10, 15}) {
        SCOPED_TRACE("flags " + std::to_string(flags));
        set(entry(flags));
        const Course expected = run_on();
        Moment begins = entry(flags);
        begins.registers.pc = stub_at.value;
        set(begins);
        const std::uint64_t nothing = 0;
        puppet.put(counter_, std::as_bytes(std::span(&nothing, 1)));
        std::size_t reached = 0;
        for (bool goes_on = true; goes_on;) {
            const Moment here = now();
            SCOPED_TRACE("at " + std::to_string(static_cast<std::int64_t>(here.registers.pc - stub_at.value)));
            check(here, expected, reached);
            goes_on = !HasFailure() && is_in_stub(here.registers.pc) && puppet.step();
        }
        EXPECT_EQ(word_at(counter_), 1u);
        if (HasFailure()) return;
    }
}

const Row rows[] = {
    {"a frame is made", 0xa9be7bfd},
    {"the stack is lowered", 0xd10103ff},
    {"the return address is signed, perhaps", 0xd503233f},
    {"a landing pad", 0xd503245f},
    {"a move", 0xaa0103e0},
    {"a move between the registers that count", 0xaa1003f1},
    {"a load through the stack pointer", 0xf94007e0},
    {"a load into a register that counts", 0xf9400030},
    {"a frame is left", 0xa8c27bfd},
    {"flags are set", 0xab010000},
    {"flags are added", 0xba010000},
    {"flags choose a value", 0x9a820020},
    {"an atomic addition", 0xf8220023},
    {"a store", 0xf9000020},
    {"a load from a null pointer", 0xf9400080},
    {"an address", 0x10000045},
    {"the address of a page", 0xb0000005},
    {"an address into the link register", 0x1000005e},
    {"a literal's load", 0x58000045},
    {"a branch", 0x14000010},
    {"a branch if equal", 0x54000200},
    {"a branch if less", 0x5400020b},
    {"a branch if there is overflow", 0x54000206},
    {"a branch by a register that is zero", 0xb4000204},
    {"a branch by a register that is not", 0xb4000203},
    {"a branch by a bit", 0x37180203},
    {"a call", 0x94000010},
    {"a call through a register", 0xd63f0060},
    {"a jump through a register", 0xd61f0060},
    {"a return", 0xd65f03c0},
};
INSTANTIATE_TEST_SUITE_P(Instructions, Arm64LeaveStub, testing::ValuesIn(rows));

/// Of the agent.
struct Answer {
    const char *what;
    std::uint64_t value;
    bool rings;
};

class Arm64LeaveAgent : public Arm64Leaving, public testing::WithParamInterface<Answer> {
  protected:
    VirtAddr site_code = puppet.at(site_code_offset), entry_at = puppet.at(entry_offset),
             place = puppet.at(data_offset + 0x100);

    void SetUp() override {
        const std::uint32_t word = 0xa9be7bfd;
        const auto stub = Arm64Detour::agent_stub(window_of(word), code({word}), site, stub_at, site_code);
        ASSERT_TRUE(stub);
        stub_ = *stub;
        entry_ = Arm64Detour::agent_entry();
        puppet.clear(puppet.at(0), code_size);
        puppet.put(site, code({word}));
        puppet.put(stub_at, stub_.bytes);
        const std::uint64_t words[] = {entry_at.value, site.value};
        puppet.put(site_code, std::as_bytes(std::span(words)));
        puppet.put(entry_at, entry_.bytes);
        const VirtAddr agent_at = entry_at + static_cast<std::int64_t>(entry_.bytes.size());
        auto agent = code({0xa9be7bfd, 0xf9000bf3}); // stp x29, x30, [sp, #-32]! | str x19, [sp, #16]
        for (std::uint32_t n = 0; n < 20; n++)       // mov xN, #0xdead
            for (std::byte each : a64_bytes(0xd29bd5a0 | n)) agent.push_back(each);
        // ldr x19, [sp, #16] | ldp x29, x30, [sp], #32 | cmp x0, #5 | ldr x0, x1 of literals | ret
        const auto end = code({0xf9400bf3, 0xa8c27bfd, 0xf100141f, 0x58000060, 0x58000081, 0xd65f03c0});
        agent.insert(agent.end(), end.begin(), end.end());
        const std::uint64_t answer[] = {GetParam().value, GetParam().rings ? 0 : place.value};
        const auto literals = std::as_bytes(std::span(answer));
        agent.insert(agent.end(), literals.begin(), literals.end());
        puppet.put(agent_at, agent);
    }

    bool is_in_agent(std::uint64_t pc) const { return pc >= entry_at.value && pc < puppet.at(agent_end).value; }
    bool is_in_head(std::uint64_t pc) const { return pc >= stub_at.value && pc < stub_at.value + stub_.copies_at; }

    /// Gives whether the answer counts.
    bool leave(Arm64Registers &registers) {
        const std::uint64_t pc = registers.pc;
        if (is_in_agent(pc)) {
            const auto out = Arm64Detour::leave_agent(pc - entry_at.value, registers, puppet);
            EXPECT_TRUE(out);
            if (!out) return false;
            EXPECT_EQ(out->in_stub, stub_at + 16) << "behind the stub's call";
            registers.pc = site.value;
            return out->has_effect;
        }
        std::array<std::byte, saved_by_stub> saved{};
        puppet.read(VirtAddr{registers.sp}, saved);
        return Arm64Detour::leave(stub_, site, stub_at, registers, saved).is_undone;
    }

    Stub stub_;
    AgentEntry entry_;
};

TEST_P(Arm64LeaveAgent, IsAsIfItHadNeverCome) {
    for (const std::uint64_t flags : {0, 5, 10, 15}) {
        Moment begins = entry(flags);
        const std::uint64_t nothing = 0;
        std::memcpy(begins.memory.data() + (place - puppet.at(data_offset)), &nothing, sizeof nothing);
        const Moment expected = begins;
        begins.registers.pc = stub_at.value;
        set(begins);
        bool has_rung = false;
        int count = 0;
        for (;; count++) {
            const Arm64Registers here = puppet.registers();
            if (!is_in_agent(here.pc) && !is_in_head(here.pc)) break;
            SCOPED_TRACE("at " + std::to_string(static_cast<std::int64_t>(here.pc - entry_at.value)));
            Moment shown{here, expected.memory};
            const bool counts = leave(shown.registers);
            ASSERT_EQ(difference(expected, shown), "");
            ASSERT_EQ(counts, word_at(place) != 0);
            has_rung = here.pc == entry_at.value + entry_.bell;
            if (has_rung) break; // its tracer takes it away
            ASSERT_TRUE(puppet.step());
        }
        EXPECT_EQ(has_rung, GetParam().rings);
        if (has_rung) continue;
        EXPECT_GT(count, 60);
        Moment end = now();
        EXPECT_EQ(end.registers.pc, stub_at.value + stub_.copies_at);
        EXPECT_EQ(word_at(place), GetParam().value != 0 ? GetParam().value : 1);
        end.registers.pc = expected.registers.pc;
        std::memcpy(end.memory.data() + (place - puppet.at(data_offset)), &nothing, sizeof nothing);
        std::copy_n(expected.memory.begin(), sp_offset - data_offset, end.memory.begin()); // below the stack pointer
        EXPECT_EQ(difference(expected, end), "");
    }
}

INSTANTIATE_TEST_SUITE_P(Answers, Arm64LeaveAgent,
                         testing::Values(Answer{"a value is stored", 0x1234, false}, Answer{"one is added", 0, false},
                                         Answer{"it rings", 1, true}));

} // namespace
} // namespace ktrace::arch::test

#endif
