// Places: what variable() and entry_places() say is compared with what a running program holds, at every instruction.
#include <algorithm>

#include <gtest/gtest.h>

#include "arch/host.h"
#include "dwarf_program.h"
#include "dwarf_stopped.h"
#include "symbols/dwarf/places/places.h"

namespace ktrace::symbols::test {
namespace {

using value::Op;
using value::Piece;
using value::Place;

// No parameter and no `const` local is ever assigned, so that each has one value from the entry to the return.
const char *const source = R"(
#include <stdio.h>
struct pair { int x, y; };
struct big { long all[5]; };
static int unit_static = 11;
int program_global = 22;
int sink;
static inline __attribute__((always_inline)) int twice(int q) { const int twofold = q * 2; sink += q; return twofold; }
__attribute__((noinline)) int work(int n, const char *name, struct pair p, struct big b, unsigned char u, long seventh,
                                   long eighth, short ninth) {
    static int calls = 33;
    const int sum = n + p.y + u;
    const long far = eighth - seventh;
    for (int i = 0; i < 3; i++) sink += twice(sum + i) + name[0];
    {
        const int inner = sum * 3;
        sink += inner;
        printf("%d %d\n", sink, inner);
    }
    return sum + (int)far + calls + (int)b.all[3] + ninth + n + p.x + name[1] + unit_static;
}
int main(void) {
    struct pair p = {5, 6};
    struct big b = {{1, 2, 3, 444, 5}};
    return work(7, "abc", p, b, 200, 77, 88, -9) == 0;
}
)";

struct Truth {
    const char *name;
    std::int64_t value;
    std::size_t size;
};
constexpr Truth parameters[] = {{"n", 7, 4},        {"p", 5, 4},       {"b", 1, 8},     {"u", 200, 1},
                                {"seventh", 77, 8}, {"eighth", 88, 8}, {"ninth", -9, 2}};
constexpr Truth locals[] = {{"sum", 213, 4}, {"far", 11, 8}, {"inner", 639, 4}};

std::int64_t number(const std::vector<std::uint8_t> &bytes, bool is_signed) {
    std::uint64_t value = 0;
    for (std::size_t i = bytes.size(); i-- > 0;) value = value << 8 | bytes[i];
    if (is_signed && bytes.size() < 8 && (bytes.back() & 0x80) != 0) value |= ~std::uint64_t{0} << (8 * bytes.size());
    return static_cast<std::int64_t>(value);
}

class Places : public testing::TestWithParam<Build> {
  protected:
    void SetUp() override {
        Build build = GetParam();
        build.extra = "-no-pie";
        program_ = std::make_unique<Program>(Program::compile(build, source));
        entry_ = program_->symbol("work");
        ASSERT_NE(entry_, 0U);
        function_ = program_->dwarf().function_at(entry_);
        ASSERT_NE(function_, nullptr);
    }
    bool optimized() const { return GetParam().optimize != "-O0"; }

    std::optional<std::int64_t> read(const StoppedProgram &stopped, const Truth &truth) {
        auto variable = program_->dwarf().variable(truth.name, stopped.pc(), 0);
        if (!variable) return std::nullopt;
        auto bytes = stopped.bytes(variable->place, truth.size);
        return bytes ? std::optional(number(*bytes, truth.size != 1)) : std::nullopt;
    }

    std::unique_ptr<Program> program_;
    std::uint64_t entry_ = 0;
    const Function *function_ = nullptr;
};

TEST_P(Places, ParametersHoldTheirValuesAtEveryInstruction) {
    StoppedProgram stopped(program_->path());
    ASSERT_TRUE(stopped.run_to(entry_));
    std::uint64_t return_address = stopped.word(stopped.sp());
    int seen = 0, wrong = 0, steps = 0;
    while (stopped.pc() != return_address) {
        if (function_->ranges[0].first > stopped.pc() || stopped.pc() >= function_->ranges[0].second) {
            std::uint64_t back = stopped.word(stopped.sp()); // a call: run to where it returns
            ASSERT_TRUE(stopped.run_to(back));
            continue;
        }
        ++steps;
        for (const Truth &truth : parameters) {
            auto value = read(stopped, truth);
            if (!value) continue;
            ++seen;
            EXPECT_EQ(*value, truth.value) << truth.name << " at entry + " << stopped.pc() - entry_;
            if (*value != truth.value && ++wrong > 5) return;
        }
        ASSERT_TRUE(stopped.step());
    }
    EXPECT_GT(steps, 20);
    EXPECT_GT(seen, optimized() ? steps : steps * 4) << "of " << steps << " instructions";
}

TEST_P(Places, LocalsHoldTheirValuesAtTheirLines) {
    int line = line_of(source, "printf(");
    auto addresses = program_->dwarf().addresses_of(program_->source_path(), line);
    ASSERT_FALSE(addresses.empty());
    StoppedProgram stopped(program_->path());
    ASSERT_TRUE(stopped.run_to(addresses[0].vaddr));
    int seen = 0;
    for (const Truth &truth : locals) {
        auto value = read(stopped, truth);
        if (!value) continue;
        ++seen;
        EXPECT_EQ(*value, truth.value) << truth.name;
    }
    EXPECT_GE(seen, optimized() ? 1 : 3);
}

TEST_P(Places, InlinedFunctionsHaveTheirOwnScope) {
    auto instances = program_->dwarf().inlined("twice");
    ASSERT_FALSE(instances.empty());
    EXPECT_EQ(instances[0].into, "work");
    StoppedProgram stopped(program_->path());
    ASSERT_TRUE(stopped.run_to(instances[0].entry));
    auto frames = program_->dwarf().frames_at(stopped.pc());
    ASSERT_GE(frames.size(), 2U);
    EXPECT_EQ(frames[0].function, "twice");
    EXPECT_TRUE(frames[0].inlined);
    EXPECT_EQ(frames[1].function, "work");
    EXPECT_EQ(frames[1].line, line_of(source, "sink += twice("));
    EXPECT_FALSE(frames[1].inlined);
    auto names = program_->dwarf().names_in_scope(stopped.pc());
    EXPECT_NE(std::find(names.begin(), names.end(), "q"), names.end());
    EXPECT_NE(std::find(names.begin(), names.end(), "n"), names.end());
}

TEST_P(Places, StaticsAndGlobals) {
    StoppedProgram stopped(program_->path());
    ASSERT_TRUE(stopped.run_to(entry_));
    for (auto [name, expected] : {std::pair{"unit_static", 11}, {"program_global", 22}, {"calls", 33}}) {
        auto variable = program_->dwarf().variable(name, stopped.pc(), 0);
        if (!variable && optimized()) continue; // a static that is never written becomes a constant, or nothing
        ASSERT_TRUE(variable) << name << ": " << variable.error().message;
        EXPECT_EQ(stopped.value<int>(variable->place), expected) << name;
    }
    auto global = program_->dwarf().global("program_global", 0x1000);
    ASSERT_TRUE(global);
    ASSERT_EQ(global->place.pieces.size(), 1U);
    ASSERT_EQ(global->place.pieces[0].ops.size(), 1U);
    EXPECT_EQ(static_cast<std::uint64_t>(global->place.pieces[0].ops[0].operand),
              program_->symbol("program_global") + 0x1000);
}

TEST_P(Places, AtTheEntryOnlyWhatIsCertain) {
    auto places = program_->dwarf().entry_places(*function_, 0);
    ASSERT_EQ(places.size(), 8U);
    StoppedProgram stopped(program_->path());
    ASSERT_TRUE(stopped.run_to(entry_));
    int told = 0;
    for (std::size_t i = 0; i < places.size(); ++i) {
        if (!places[i]) continue;
        ++told;
        for (const Truth &truth : parameters)
            if (function_->parameters[i].name == truth.name) {
                auto bytes = stopped.bytes(*places[i], truth.size);
                ASSERT_TRUE(bytes) << truth.name;
                EXPECT_EQ(number(*bytes, truth.size != 1), truth.value) << truth.name;
            }
    }
    if (!optimized()) {
        EXPECT_EQ(told, 0);
    }
}

TEST_P(Places, WhatIsNotThereIsNamed) {
    auto missing = program_->dwarf().variable("sun", entry_, 0);
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().kind, Error::Kind::not_found);
    EXPECT_NE(missing.error().hint, "");
}

INSTANTIATE_TEST_SUITE_P(Dwarf, Places, testing::ValuesIn(all_builds()),
                         [](const auto &each) { return each.param.name(); });

TEST(DwarfPlaces, ThreadLocalsAndConstants) {
    for (const std::string &compiler : compilers()) {
        if (compiler == "gcc" && arch::Host::name != "x86_64") continue; // it says no place there
        Program program = Program::compile({compiler, 5, "-O0", ""}, R"(
#ifdef __x86_64__
#define SAVED "ebx"
#else
#define SAVED "x19"
#endif
__thread long first = 1; __thread int each = 7;
int main(int argc, char **argv) { register int in_register asm(SAVED) = argc; return each + in_register; })");
        auto each = program.dwarf().global("each", 0x4000);
        ASSERT_TRUE(each) << each.error().message;
        const auto &ops = each->place.pieces.at(0).ops;
        ASSERT_EQ(ops.size(), 2U);
        EXPECT_EQ(ops[0].operand, 8); // not moved by the module's address
        EXPECT_EQ(ops[1].code, Op::Code::tls);
    }
    Program constant =
        Program::compile({"gcc", 5, "-O2", ""},
                         "enum { k = 1 }; int main(int c, char **v) { const int answer = 200; return c * answer; }");
    auto answer = constant.dwarf().variable("answer", constant.symbol("main"), 0);
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_EQ(answer->place.pieces.at(0).kind, Piece::Kind::bytes);
    EXPECT_EQ(answer->place.pieces.at(0).bytes, (std::vector<std::uint8_t>{200, 0, 0, 0}));
}

TEST(DwarfFunctions, CopiesWithASignatureOfTheirOwn) {
    for (const std::string &compiler : compilers()) {
        SCOPED_TRACE(compiler);
        Program program = Program::compile({compiler, 5, "-O2", ""}, R"(
#include <stdio.h>
static __attribute__((noinline)) int changed(int n, int unused, int k) { printf("%d\n", n); return n * k + 1; }
__attribute__((noinline)) int plain(int n, int unused) { printf("%d\n", n); return n; }
int main(int c, char **v) { return changed(c, 5, 7) + changed(c + 1, c, 7) + plain(c, 2); })");
        auto changed = program.dwarf().functions_named("changed");
        ASSERT_EQ(changed.size(), 1U);
        EXPECT_TRUE(changed[0]->own_convention);
        auto places = program.dwarf().entry_places(*changed[0], 0);
        ASSERT_EQ(places.size(), 3U);
        ASSERT_TRUE(places[0]);
        EXPECT_EQ(places[0]->pieces[0].kind, Piece::Kind::register_);
        EXPECT_FALSE(places[1]);
        ASSERT_TRUE(places[2]);
        EXPECT_EQ(places[2]->pieces[0].bytes, (std::vector<std::uint8_t>{7, 0, 0, 0}));
        auto plain = program.dwarf().functions_named("plain");
        ASSERT_EQ(plain.size(), 1U);
        EXPECT_FALSE(plain[0]->own_convention);
    }
}

TEST(DwarfFunctions, ParameterPacksAndParametersThatTheCompilerLeftOut) {
    Program gcc = Program::compile({"gcc", 5, "-O0", ""}, R"(
template <class... T> __attribute__((noinline)) int sum(int first, T... rest) { return (first + ... + rest); }
int main() { return sum(1, 2L, char(3)); })",
                                   true);
    auto sums = gcc.dwarf().functions_named("sum<long int, char>");
    ASSERT_EQ(sums.size(), 1U);
    ASSERT_EQ(sums[0]->parameters.size(), 3U);
    EXPECT_EQ(sums[0]->parameters[1].type->name, "long int");
    EXPECT_EQ(sums[0]->parameters[2].type->name, "char");
    EXPECT_FALSE(sums[0]->own_convention);
    if (std::ranges::count(compilers(), "clang") == 0) return;
    Program clang = Program::compile({"clang", 4, "-O0", ""}, R"(
struct Owner { Owner() {} ~Owner(); int *p = nullptr; };
__attribute__((noinline)) Owner::~Owner() { p = nullptr; }
int use(int n, Owner unnamed_here, int m) { return n + m; }
int main() { return use(1, Owner(), 2); })",
                                     true);
    auto used = clang.dwarf().functions_named("use");
    ASSERT_EQ(used.size(), 1U);
    EXPECT_EQ(used[0]->own_convention, used[0]->parameters.size() != 3);
}

// ── expressions, as bytes of a location would give them
// ───────────────────────────────────────────────────────────────

Dwarf_Op op(std::uint8_t atom, std::uint64_t number = 0, std::uint64_t number2 = 0, std::uint64_t offset = 0) {
    return Dwarf_Op{atom, number, number2, offset};
}

Place translated(const std::vector<Dwarf_Op> &ops) {
    Frames frames(nullptr, nullptr);
    Viewpoint view{0x100, 0x1000, std::nullopt, false};
    return translate(nullptr, ops.data(), ops.size(), view, frames);
}

std::optional<std::uint64_t> computed(const std::vector<Dwarf_Op> &ops) {
    Place place = translated(ops);
    if (!place.why.empty() || place.pieces.size() != 1) return std::nullopt;
    return run_ops(
        place.pieces[0].ops, [](unsigned reg) { return reg * 1000; },
        [](std::uint64_t address, unsigned size) { return address * 10 + size; });
}

TEST(DwarfExpressions, Arithmetic) {
    EXPECT_EQ(computed({op(DW_OP_addr, 0x20)}), 0x1020U);
    EXPECT_EQ(computed({op(DW_OP_breg7, 8)}), 7008U);
    EXPECT_EQ(computed({op(DW_OP_bregx, 40, static_cast<std::uint64_t>(-8))}), 39992U);
    EXPECT_EQ(computed({op(DW_OP_lit7), op(DW_OP_lit3), op(DW_OP_minus)}), 4U);
    EXPECT_EQ(computed({op(DW_OP_lit7), op(DW_OP_plus_uconst, 5)}), 12U);
    EXPECT_EQ(computed({op(DW_OP_const1u, 9), op(DW_OP_deref)}), 98U);
    EXPECT_EQ(computed({op(DW_OP_const1u, 9), op(DW_OP_deref_size, 2)}), 92U);
    EXPECT_EQ(computed({op(DW_OP_lit1), op(DW_OP_lit2), op(DW_OP_lit3), op(DW_OP_rot)}), 2U);
    EXPECT_EQ(computed({op(DW_OP_lit1), op(DW_OP_lit2), op(DW_OP_over)}), 1U);
    EXPECT_EQ(computed({op(DW_OP_lit4), op(DW_OP_lit5), op(DW_OP_lit6), op(DW_OP_pick, 2)}), 4U);
    EXPECT_EQ(computed({op(DW_OP_consts, static_cast<std::uint64_t>(-9)), op(DW_OP_lit2), op(DW_OP_div)}),
              static_cast<std::uint64_t>(-4));
    EXPECT_EQ(computed({op(DW_OP_lit3), op(DW_OP_lit4), op(DW_OP_lt)}), 1U);
}

TEST(DwarfExpressions, BranchesGoForwardToAnOperation) {
    // offsets: lit1 0, bra 1 (3 bytes), lit2 4, skip 5 (3 bytes), lit3 8
    std::vector<Dwarf_Op> choice = {op(DW_OP_lit1, 0, 0, 0), op(DW_OP_bra, 4, 0, 1), op(DW_OP_lit2, 0, 0, 4),
                                    op(DW_OP_skip, 1, 0, 5), op(DW_OP_lit3, 0, 0, 8)};
    EXPECT_EQ(computed(choice), 3U);
    choice[0].atom = DW_OP_lit0;
    EXPECT_EQ(computed(choice), 2U);
    choice[1].number = 2; // into the middle of skip
    EXPECT_EQ(computed(choice), std::nullopt);
    choice[1].number = static_cast<std::uint64_t>(-4); // back to the start
    EXPECT_EQ(computed(choice), std::nullopt);
}

TEST(DwarfExpressions, LocationsAndPieces) {
    Place place = translated({op(DW_OP_reg5)});
    EXPECT_EQ(place.pieces.at(0).kind, Piece::Kind::register_);
    EXPECT_EQ(place.pieces.at(0).reg, 5);
    place = translated({op(DW_OP_breg3, 1), op(DW_OP_stack_value)});
    EXPECT_EQ(place.pieces.at(0).kind, Piece::Kind::value);
    place =
        translated({op(DW_OP_reg1), op(DW_OP_piece, 4), op(DW_OP_piece, 2), op(DW_OP_breg7, 8), op(DW_OP_piece, 10)});
    ASSERT_EQ(place.pieces.size(), 3U);
    EXPECT_EQ(place.pieces[0].size, 4U);
    EXPECT_EQ(place.pieces[1].kind, Piece::Kind::unavailable);
    EXPECT_EQ(place.pieces[2].kind, Piece::Kind::memory);
    EXPECT_EQ(place.why, "");
    place = translated({op(DW_OP_reg1), op(DW_OP_bit_piece, 16, 8)});
    EXPECT_EQ(place.pieces.at(0).reg_offset, 1);
    EXPECT_EQ(place.pieces.at(0).size, 2U);
}

TEST(DwarfExpressions, WhatMakesNoSenseIsUnavailable) {
    const std::vector<std::vector<Dwarf_Op>> cases = {
        {},
        {op(DW_OP_plus)},
        {op(DW_OP_deref)},
        {op(DW_OP_stack_value)},
        {op(DW_OP_reg1), op(DW_OP_lit1)},
        {op(DW_OP_lit1), op(DW_OP_reg1)},
        {op(DW_OP_call_frame_cfa)},
        {op(DW_OP_fbreg, 8)},
        {op(DW_OP_push_object_address)},
        {op(DW_OP_xderef)},
        {op(DW_OP_implicit_pointer)},
        {op(DW_OP_lit1), op(DW_OP_deref_size, 9)},
        {op(0xff)},
        {op(DW_OP_lit1), op(DW_OP_bit_piece, 3, 0)},
        std::vector<Dwarf_Op>(100000, op(DW_OP_lit1)),
    };
    for (const auto &ops : cases) {
        Place place = translated(ops);
        EXPECT_NE(place.why, "") << (ops.empty() ? 0 : ops.front().atom);
        EXPECT_FALSE(place.pieces.empty());
    }
}

} // namespace
} // namespace ktrace::symbols::test
