// A thread in a counting stub is taken out of it before each of its instructions, on a stage. There it has to be where
// one is that never came to the stub, with the same registers, flags and memory; and from there it goes on through the
// original code to the same end, and is counted as often as the site is come to.
#if defined(__x86_64__)

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <gtest/gtest.h>
#include <sys/ptrace.h>

#include "tests/isa/x86_64/hex.h"
#include "tests/isa/x86_64/stage.h"
#include "x86_64/detour/detour.h"
#include "x86_64/x86_64.h"

namespace ktrace::test {

namespace {

using arch::OutOfStub;
using arch::Stub;
using arch::X86_64;
using arch::X86_64Detour;
using Registers = arch::X86_64Registers;

constexpr VirtAddr site{Stage::site}, stub_at{Stage::near_slot};
constexpr std::uint64_t sp_at_entry = Stage::stack_at + 0x1000, red_zone = 128, word = 8;
constexpr std::uint64_t number_at = Stage::data_at + 0x100, pointer_at = Stage::data_at + 0x200,
                        bytes_at = Stage::data_at + 0x800, counter_at = Stage::data_at + 0x3f00;
constexpr std::uint64_t target_at = Stage::site + 0x2000; // of jumps and calls through registers and memory

// Flags.
constexpr std::uint64_t always = 0x202, carry = 1, arithmetic = 0x8d5, direction = 0x400, identification = 0x200000;

/// A window: what is at the site, and what lies behind it.
struct Row {
    const char *what, *code;
    int size = -1; // of the function; behind it lies padding. -1: all
};

void PrintTo(const Row &row, std::ostream *out) { *out << test_name(row.what); }

/// The child: registers and memory.
struct Moment {
    Registers registers;
    std::vector<std::byte> memory;
};

/// Through the original code, before each instruction, and at its end.
using Course = std::vector<Moment>;

std::size_t offset_in_memory(std::uint64_t at) {
    return at >= Stage::stack_at ? at - Stage::stack_at + Stage::data_size : at - Stage::data_at;
}

std::uint64_t word_at(const std::vector<std::byte> &memory, std::uint64_t at) {
    std::uint64_t value = 0;
    std::memcpy(&value, memory.data() + offset_in_memory(at), sizeof value);
    return value;
}

void put(std::vector<std::byte> &memory, std::uint64_t at, std::uint64_t value) {
    std::memcpy(memory.data() + offset_in_memory(at), &value, sizeof value);
}

/// The memory as the program has it: without the counter, what lay below the red zone, and the word at `pushed`.
std::vector<std::byte> visible(std::vector<std::byte> memory, std::uint64_t pushed) {
    put(memory, counter_at, 0);
    if (pushed != 0) put(memory, pushed, 0);
    const auto below = memory.begin() + Stage::data_size;
    std::fill(below, memory.begin() + static_cast<std::ptrdiff_t>(offset_in_memory(sp_at_entry - red_zone)),
              std::byte{0});
    return memory;
}

std::string difference(const Moment &expected, const Moment &shown, std::uint64_t pushed) {
    constexpr std::uint64_t steps = 0x10100; // flags that a step leaves
    Registers a = expected.registers, b = shown.registers;
    a.flags &= ~steps;
    b.flags &= ~steps;
    for (const arch::RegisterInfo &each : X86_64::registers()) {
        if (each.file != arch::RegisterInfo::File::general) continue;
        std::uint64_t x = 0, y = 0;
        std::memcpy(&x, reinterpret_cast<const std::byte *>(&a) + each.offset, each.width);
        std::memcpy(&y, reinterpret_cast<const std::byte *>(&b) + each.offset, each.width);
        char text[128];
        std::snprintf(text, sizeof text, "%s is %#lx, not %#lx", std::string(each.name).c_str(), y, x);
        if (x != y) return text;
    }
    return visible(expected.memory, pushed) == visible(shown.memory, pushed) ? "" : "memory differs";
}

/// Where a thread counts, from the counter in the first row (stub.cc).
std::uint64_t row_of(std::uint64_t sp) {
    const auto mixed = static_cast<std::uint32_t>(sp >> 14) * 0x9e3779b1u;
    return std::uint64_t{mixed >> 28} * arch::counter_row_size;
}

class X86Leave : public ::testing::TestWithParam<Row> {
  protected:
    void SetUp() override {
        const std::vector<std::byte> code = hex(GetParam().code);
        const auto size = static_cast<std::int64_t>(code.size());
        arch::DetourSite asked;
        asked.at = site;
        asked.code = code;
        asked.function_end = site + (GetParam().size < 0 ? size : GetParam().size);
        asked.padding_end = site + size;
        const auto window = X86_64Detour::window(asked);
        ASSERT_TRUE(window) << static_cast<int>(window.error());
        const VirtAddr counter{counter_at - row_of(sp_at_entry)};
        const auto stub = X86_64Detour::counting_stub(*window, code, site, stub_at, counter);
        ASSERT_TRUE(stub) << static_cast<int>(stub.error());
        stub_ = *stub;
        stage_.set_code(code);
        stage_.set_slot(stub_at.value, stub_.bytes);
    }

    /// No two registers, and no two words of the stack, have the same value.
    Moment entry(std::uint64_t flags) const {
        Moment entry{stage_.initial_registers(), std::vector<std::byte>(Stage::data_size + Stage::stack_size)};
        for (std::uint64_t at = Stage::stack_at; at < Stage::stack_at + Stage::stack_size; at += word)
            put(entry.memory, at, at * 0x9e3779b97f4a7c15);
        for (std::uint64_t i = 0; i < 16; ++i) put(entry.memory, sp_at_entry + i * word, target_at + 0x100 + i * word);
        put(entry.memory, number_at, 0x7ffffffffffffff0);
        put(entry.memory, pointer_at, target_at);
        Registers &all = entry.registers;
        std::uint64_t seed = 0x1122334455667788;
        for (std::uint64_t *each :
             {&all.ax, &all.dx, &all.r8, &all.r9, &all.r10, &all.r11, &all.r12, &all.r13, &all.r14, &all.r15})
            *each = seed *= 0x9e3779b97f4a7c15;
        all.bx = target_at;
        all.cx = 3;
        all.si = number_at;
        all.di = bytes_at;
        all.bp = sp_at_entry + 5 * word;
        all.sp = sp_at_entry;
        all.ip = site.value;
        all.flags = always | flags;
        return entry;
    }

    void set(const Moment &moment) {
        stage_.set_memory(moment.memory);
        stage_.set_registers(moment.registers);
    }
    Moment now() const { return {stage_.registers(), stage_.memory()}; }
    /// False: the instruction has faulted, and all is as it was.
    bool step() { return stage_.run(PTRACE_SINGLESTEP).signal == SIGTRAP; }

    bool is_in_stub(std::uint64_t pc) const { return pc >= stub_at.value && pc < stub_at.value + stub_.bytes.size(); }

    /// The stage holds int3 wherever there is no code.
    Course run_on() {
        Course run;
        for (bool goes_on = true; goes_on;) {
            run.push_back(now());
            std::byte next{};
            stage_.read(VirtAddr{run.back().registers.ip}, std::span(&next, 1));
            goes_on = next != std::byte{0xcc} && step();
        }
        return run;
    }

    /// How often the site is come to. A string instruction that is repeated is one.
    std::uint64_t hits(const Course &run, std::size_t first) const {
        const bool repeats = X86_64::plan(hex(GetParam().code), site).repeats;
        std::uint64_t count = 0;
        for (std::size_t i = first; i < run.size(); ++i) {
            const bool again = repeats && i != first && run[i - 1].registers.ip == site.value;
            if (run[i].registers.ip == site.value && !again) ++count;
        }
        return count;
    }

    /// Out of the stub, where it is in it.
    OutOfStub leave(Moment &moment) {
        Registers &registers = moment.registers;
        if (!is_in_stub(registers.ip)) return {VirtAddr{registers.ip}, false};
        std::array<std::byte, arch::saved_by_stub> saved{};
        stage_.read(VirtAddr{registers.sp}, saved);
        const OutOfStub out = X86_64Detour::leave(stub_, site, stub_at, registers, saved);
        EXPECT_EQ(out.pc.value, registers.ip);
        return out;
    }

    /// It is taken out at `here`; `reached`, of those of the run that never came to the stub, is where it was before.
    void check(const Moment &here, const Course &expected, std::size_t first, std::size_t &reached) {
        Moment shown = here;
        const OutOfStub out = leave(shown);
        // A call's copy pushes before it jumps, into what is still the red zone.
        const std::uint64_t pc = here.registers.ip;
        const bool is_in_copies = is_in_stub(pc) && pc >= stub_at.value + stub_.copies_at;
        const bool has_pushed = is_in_copies && shown.registers.sp != here.registers.sp;
        const std::uint64_t pushed = has_pushed ? here.registers.sp : 0;
        const std::size_t last = is_in_stub(pc) && !is_in_copies ? first + 1 : expected.size();
        const auto is_this = [&](const Moment &each) { return difference(each, shown, pushed).empty(); };
        const auto found = std::find_if(expected.begin() + static_cast<std::ptrdiff_t>(reached),
                                        expected.begin() + static_cast<std::ptrdiff_t>(last), is_this);
        EXPECT_NE(found, expected.begin() + static_cast<std::ptrdiff_t>(last))
            << "no such state; against the last one: " << difference(expected[reached], shown, pushed);
        if (::testing::Test::HasFailure()) return;
        reached = static_cast<std::size_t>(found - expected.begin());

        const std::uint64_t counter = word_at(here.memory, counter_at);
        EXPECT_TRUE(!out.is_undone || out.pc == site);
        if (reached == first) {
            EXPECT_EQ(counter, out.is_undone) << "it comes to the site again";
            return;
        }
        set(shown);
        const Course rest = run_on();
        EXPECT_EQ(difference(expected.back(), rest.back(), pushed), "");
        EXPECT_EQ(counter - out.is_undone + hits(rest, 0), hits(expected, first));
        set(here);
    }

    /// A thread that comes to `first` of the run goes on in the stub instead.
    void leave_everywhere_from(const Course &expected, std::size_t first, std::size_t offset) {
        set(expected[first]);
        Registers registers = expected[first].registers;
        registers.ip = stub_at.value + offset;
        stage_.set_registers(registers);
        std::size_t reached = first;
        for (bool goes_on = true; goes_on;) {
            const Moment here = now();
            SCOPED_TRACE("at " + std::to_string(static_cast<std::int64_t>(here.registers.ip - stub_at.value)));
            check(here, expected, first, reached);
            goes_on = !HasFailure() && is_in_stub(here.registers.ip) && step();
        }
    }

    /// From the stub's start, and from the copy of each boundary that is come to.
    void leave_everywhere(std::uint64_t flags) {
        SCOPED_TRACE("flags " + std::to_string(flags));
        set(entry(flags));
        const Course expected = run_on();
        leave_everywhere_from(expected, 0, 0);
        for (const arch::Copies::Entry &each : stub_.copies.entries) {
            const auto comes = std::find_if(expected.begin() + 1, expected.end(), [&](const Moment &moment) {
                return each.offset != 0 && moment.registers.ip == site.value + each.offset;
            });
            if (comes == expected.end()) continue;
            SCOPED_TRACE("from the boundary " + std::to_string(each.offset));
            leave_everywhere_from(expected, static_cast<std::size_t>(comes - expected.begin()),
                                  static_cast<std::size_t>(stub_.copies_at + each.at));
        }
    }

    Stage stage_;
    Stub stub_;
};

TEST_P(X86Leave, IsAsIfItHadNeverCome) {
    for (const std::uint64_t flags : {std::uint64_t{0}, arithmetic, direction | identification | carry})
        leave_everywhere(flags);
}

const Row rows[] = {
    {"moves between the registers that count", "48 89 c2 48 89 c8"},
    {"moves of sixteen and eight bits", "66 89 c8 88 d4 88 f5"},
    {"a long move", "48 b8 f0 de bc 9a 78 56 34 12"},
    {"pushes", "50 51 52 41 57"},
    {"pops", "58 59 5a 41 5f"},
    {"push sp, pop", "54 58 48 29 e0"},
    {"a frame is made", "55 48 89 e5 48 83 ec 20"},
    {"enter", "c8 20 00 00 5d"},
    {"leave and return", "c9 c3 0f 1f 40 00", 2},
    {"the red zone is read and written", "48 8b 4c 24 f8 48 89 44 24 80"},
    {"the stack pointer as a base", "48 03 04 24 48 8d 64 24 08"},
    {"a load relative to rip", "48 8b 05 f9 80 1f 00"},
    {"an increment relative to rip", "48 ff 05 f9 80 1f 00"},
    {"a store relative to rip behind a move", "89 c1 c7 05 f4 80 1f 00 78 56 34 12"},
    {"an address relative to rip", "48 8d 15 f9 80 1f 00"},
    {"a push relative to rip", "ff 35 fa 80 1f 00"},
    {"flags are added", "48 11 d8 19 c9"},
    {"flags are changed", "f5 d1 d0 f9 d1 da"},
    {"flags are loaded", "9e 48 19 c0 f8"},
    {"flags are read one by one", "9f 0f 90 c0 f5"},
    {"flags are pushed", "9c 59 48 01 c8"},
    {"the direction is set", "fd 48 a5 fc 90"},
    {"flags choose a value", "48 0f 40 c2 0f 92 c1"},
    {"an atomic increment", "f0 48 ff 06 0f 94 c0"},
    {"a branch over a lock prefix", "74 01 f0 48 ff 06"},
    {"a string instruction", "f3 aa 0f 94 c0"},
    {"a string instruction behind another", "89 c2 f3 48 ab"},
    {"a search", "f2 ae 90 90 90"},
    {"a short jump", "89 c8 90 eb 20"},
    {"a near jump", "e9 00 01 00 00"},
    {"a jump through a register", "48 89 d9 ff e1 90"},
    {"a jump through memory relative to rip", "ff 25 fa 81 1f 00"},
    {"a jump through the stack", "90 ff 64 24 10"},
    {"a jump through a null pointer", "ff 24 25 00 00 00 00"},
    {"a branch if equal", "89 c8 90 74 20"},
    {"a branch if there is overflow", "0f 80 00 01 00 00"},
    {"a branch by a comparison", "48 39 c8 72 20"},
    {"branches to one another", "78 02 7a fc 90"},
    {"a branch back to the site", "ff c9 90 75 fb"},
    {"a jump to itself, up to a count", "e2 fe 0f 94 c0"},
    {"loop to the site", "ff c0 90 e2 fb"},
    {"loop while equal", "83 c0 07 e1 fb"},
    {"a branch if the count is zero", "ff c9 90 e3 20"},
    {"a call", "e8 00 01 00 00"},
    {"a call behind a move", "89 c8 e8 00 01 00 00"},
    {"a call through a register", "ff c0 90 ff d3"},
    {"a call through memory relative to rip", "ff 15 fa 81 1f 00"},
    {"a call through the stack", "90 ff 54 24 10"},
    {"a call through the red zone", "89 c8 ff 94 24 80 ff ff ff"},
    {"a call through a null pointer", "ff 14 25 00 00 00 00"},
    {"a call through a null pointer behind a move", "89 c8 ff 14 25 00 00 00 00"},
    {"a load from a null pointer", "48 8b 04 25 00 00 00 00"},
    {"a return", "90 90 90 5d c3"},
    {"a return that takes arguments away", "89 c8 c2 10 00"},
    {"a return, and nops", "31 c0 c3 0f 1f 00", 3},
    {"a return, and int3", "31 c0 c3 cc cc", 3},
    {"control comes to an int3 that stays", "31 c0 90 cc cc", 3},
};
INSTANTIATE_TEST_SUITE_P(Windows, X86Leave, ::testing::ValuesIn(rows));

class X86LeaveByFlags : public X86Leave {};

TEST_P(X86LeaveByFlags, EachIsKept) {
    for (std::uint64_t flag = 1; flag <= arithmetic; flag <<= 1) {
        if ((arithmetic & flag) == 0) continue;
        leave_everywhere(flag);
        leave_everywhere(arithmetic & ~flag);
    }
}

INSTANTIATE_TEST_SUITE_P(Windows, X86LeaveByFlags, ::testing::Values(Row{"no flags", "b8 01 00 00 00"}));

} // namespace

} // namespace ktrace::test

#endif
