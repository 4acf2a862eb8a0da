// The contract of arch/isa.h, asked of every instruction set alike: what the rooms above rely on without knowing which
// ISA they trace. Each ISA gives a few instructions by their bytes; the questions are the same.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "arm64/arm64.h"
#include "x86_64/x86_64.h"

namespace ktrace::arch::test {
namespace {

using Bytes = std::vector<std::byte>;

Bytes bytes(std::initializer_list<int> values) {
    Bytes all;
    for (int value : values) all.push_back(std::byte(value));
    return all;
}

constexpr VirtAddr site{0x7f0000400000}, slot{0x7f0000c00040};

/// One or two instructions of each kind, as a disassembler would show them.
template <class Isa> struct Sample;

template <> struct Sample<X86_64> {
    static Bytes nop() { return bytes({0x90}); }
    static Bytes plain() { return bytes({0x48, 0x83, 0xec, 0x40}); }      // sub $0x40, %rsp
    static Bytes jump() { return bytes({0xe9, 0xfb, 0x0f, 0x00, 0x00}); } // jmp .+0x1000
    static Bytes call() { return bytes({0xe8, 0xfb, 0x0f, 0x00, 0x00}); } // call .+0x1000
    static Bytes indirect_call() { return bytes({0xff, 0xd0}); }          // call *%rax
    static Bytes ret() { return bytes({0xc3}); }
    static Bytes syscall() { return bytes({0x0f, 0x05}); }
    static Bytes breakpoint() { return bytes({0xcc}); }
};

template <> struct Sample<Arm64> {
    static Bytes nop() { return bytes({0x1f, 0x20, 0x03, 0xd5}); }
    static Bytes plain() { return bytes({0xff, 0x03, 0x01, 0xd1}); }         // sub sp, sp, #0x40
    static Bytes jump() { return bytes({0x00, 0x04, 0x00, 0x14}); }          // b .+0x1000
    static Bytes call() { return bytes({0x00, 0x04, 0x00, 0x94}); }          // bl .+0x1000
    static Bytes indirect_call() { return bytes({0x00, 0x01, 0x3f, 0xd6}); } // blr x8
    static Bytes ret() { return bytes({0xc0, 0x03, 0x5f, 0xd6}); }
    static Bytes syscall() { return bytes({0x01, 0x00, 0x00, 0xd4}); }
    static Bytes breakpoint() { return bytes({0x00, 0x00, 0x20, 0xd4}); }
};

/// A page of stack at 0x1000.
class Stack : public Memory {
  public:
    static constexpr std::uint64_t start = 0x1000, size = 0x1000;

    std::size_t read(VirtAddr at, std::span<std::byte> into) override {
        for (std::size_t i = 0; i < into.size(); ++i) {
            if (!holds(at.value + i)) return i;
            into[i] = bytes_[at.value + i - start];
        }
        return into.size();
    }
    bool write(VirtAddr at, std::span<const std::byte> from) override {
        for (std::size_t i = 0; i < from.size(); ++i) {
            if (!holds(at.value + i)) return false;
            bytes_[at.value + i - start] = from[i];
        }
        return true;
    }

  private:
    static bool holds(std::uint64_t address) { return address >= start && address < start + size; }
    std::byte bytes_[size] = {};
};

template <class Isa> class Contract : public testing::Test {
  protected:
    Contract() {
        set_by_dwarf(Isa::stack_pointer_dwarf, Stack::start + Stack::size - 64);
        Isa::set_pc(regs, site);
    }
    void set_by_dwarf(int number, std::uint64_t value) {
        for (const RegisterInfo &info : Isa::registers())
            if (info.dwarf == number && info.file == RegisterInfo::File::general)
                std::memcpy(reinterpret_cast<std::byte *>(&regs) + info.offset, &value, sizeof value);
    }
    static auto plan(const Bytes &code) { return Isa::plan(code, site); }

    typename Isa::Registers regs;
    Stack stack;
};

using Isas = testing::Types<X86_64, Arm64>;

struct IsaNames {
    template <class Isa> static std::string GetName(int) { return std::string(Isa::name); }
};
TYPED_TEST_SUITE(Contract, Isas, IsaNames);

TYPED_TEST(Contract, RegistersAreDistinctAndInTheirStructs) {
    std::set<std::string_view> names;
    for (const RegisterInfo &info : TypeParam::registers()) {
        bool general = info.file == RegisterInfo::File::general;
        std::size_t size = general ? sizeof(typename TypeParam::Registers) : sizeof(typename TypeParam::FpRegisters);
        EXPECT_LE(std::size_t{info.offset} + info.width, size) << info.name;
        EXPECT_FALSE(info.name.empty());
        EXPECT_TRUE(names.insert(info.name).second) << info.name;
        if (!info.alias.empty() && info.alias != info.name) {
            EXPECT_TRUE(names.insert(info.alias).second) << info.alias;
        }
    }
}

TYPED_TEST(Contract, PcAndStackPointerAreInTheTable) {
    EXPECT_EQ(TypeParam::pc(this->regs), site);
    EXPECT_EQ(TypeParam::sp(this->regs), VirtAddr{Stack::start + Stack::size - 64});
}

TYPED_TEST(Contract, TrapCannotBeProbedAndReportsItsSite) {
    auto trap = TypeParam::trap_bytes();
    auto planned = TypeParam::plan(trap, site);
    EXPECT_EQ(planned.method, Method::refuse);
    EXPECT_NE(planned.why, nullptr);
    EXPECT_EQ(TypeParam::plan(Sample<TypeParam>::breakpoint(), site).method, Method::refuse);
    EXPECT_LE(trap.size(), Sample<TypeParam>::nop().size()) << "a trap never reaches into the next instruction";
    VirtAddr reported = TypeParam::trap_address(site);
    EXPECT_TRUE(reported == site || site - reported == static_cast<std::int64_t>(trap.size()));
}

TYPED_TEST(Contract, EmptyAndCutOffCodeIsRefusedWithAReason) {
    EXPECT_EQ(TypeParam::plan({}, site).method, Method::refuse);
    Bytes cut = Sample<TypeParam>::call();
    cut.pop_back();
    auto planned = this->plan(cut);
    EXPECT_EQ(planned.method, Method::refuse);
    EXPECT_NE(planned.why, nullptr);
}

TYPED_TEST(Contract, PlanTellsLengthAndFlow) {
    using S = Sample<TypeParam>;
    struct {
        Bytes code;
        Flow flow;
    } rows[] = {{S::nop(), Flow::next},       {S::plain(), Flow::next},         {S::jump(), Flow::jump},
                {S::call(), Flow::call},      {S::indirect_call(), Flow::call}, {S::ret(), Flow::ret},
                {S::syscall(), Flow::syscall}};
    for (const auto &row : rows) {
        auto planned = this->plan(row.code);
        EXPECT_NE(planned.method, Method::refuse);
        EXPECT_EQ(planned.length, row.code.size());
        EXPECT_EQ(planned.flow, row.flow);
        EXPECT_LE(planned.length, TypeParam::longest);
    }
    EXPECT_EQ(this->plan(S::syscall()).method, Method::syscall);
    EXPECT_EQ(this->plan(S::plain()).method, Method::boost);
}

TYPED_TEST(Contract, JumpEmulatesToItsTarget) {
    auto planned = this->plan(Sample<TypeParam>::jump());
    ASSERT_EQ(planned.method, Method::emulate);
    EXPECT_EQ(planned.target, site + 0x1000);
    auto expected = this->regs;
    TypeParam::set_pc(expected, site + 0x1000);
    EXPECT_EQ(TypeParam::emulate(planned, site, this->regs, this->stack).outcome, Emulated::Outcome::done);
    EXPECT_EQ(this->regs, expected);
}

TYPED_TEST(Contract, CallEmulatesToItsTargetAndCanReturn) {
    auto code = Sample<TypeParam>::call();
    auto planned = this->plan(code);
    ASSERT_EQ(planned.method, Method::emulate);
    EXPECT_EQ(planned.target, site + 0x1000);
    VirtAddr behind = site + static_cast<std::int64_t>(code.size());
    EXPECT_EQ(TypeParam::emulate(planned, site, this->regs, this->stack).outcome, Emulated::Outcome::done);
    EXPECT_EQ(TypeParam::pc(this->regs), site + 0x1000);
    EXPECT_EQ(TypeParam::return_address(this->regs, this->stack), behind);
    Frame frame = TypeParam::frame(this->regs, behind);
    EXPECT_EQ(frame.return_address, behind);
    EXPECT_TRUE(TypeParam::redirect_return(this->regs, this->stack, slot));
    EXPECT_EQ(TypeParam::return_address(this->regs, this->stack), slot);
}

TYPED_TEST(Contract, CallerEndsWithTheCall) {
    auto code = Sample<TypeParam>::nop();
    auto call = Sample<TypeParam>::call();
    code.insert(code.end(), call.begin(), call.end());
    VirtAddr end = site + static_cast<std::int64_t>(code.size());
    auto before = TypeParam::call_before(code, end);
    ASSERT_TRUE(before);
    EXPECT_EQ(before->length, call.size());
    EXPECT_EQ(before->target, end - static_cast<std::int64_t>(call.size()) + 0x1000);

    auto indirect = Sample<TypeParam>::indirect_call();
    before = TypeParam::call_before(indirect, site);
    ASSERT_TRUE(before);
    EXPECT_EQ(before->length, indirect.size());
    EXPECT_FALSE(before->target);
    EXPECT_FALSE(TypeParam::call_before(Sample<TypeParam>::plain(), site));
    EXPECT_FALSE(TypeParam::call_before({}, site));
}

TYPED_TEST(Contract, FrameLivesWhileItsCalleesRunAndEndsWithItsReturn) {
    Frame frame{VirtAddr{0x7000}, site};
    for (When when : {When::at_entry, When::at_return}) {
        EXPECT_TRUE(TypeParam::frame_alive(frame, VirtAddr{0x6f00}, when));
        EXPECT_FALSE(TypeParam::frame_alive(frame, VirtAddr{0x7100}, when));
    }
    EXPECT_TRUE(TypeParam::frame_alive(frame, frame.sp, When::at_entry)) << "a tail call";
    // Where a return leaves sp: x86 pops the address, arm64 has none on the stack.
    bool pops = Sample<TypeParam>::ret().size() == 1;
    EXPECT_FALSE(TypeParam::frame_alive(frame, frame.sp + (pops ? 8 : 0), When::at_return));
}

TYPED_TEST(Contract, CallHasReturnedByAReturn) {
    auto code = Sample<TypeParam>::call();
    VirtAddr behind = site + static_cast<std::int64_t>(code.size());
    EXPECT_EQ(TypeParam::emulate(this->plan(code), site, this->regs, this->stack).outcome, Emulated::Outcome::done);
    Frame frame = TypeParam::frame(this->regs, behind);
    EXPECT_TRUE(TypeParam::return_at_once(this->regs, this->stack));
    EXPECT_EQ(TypeParam::pc(this->regs), behind);
    EXPECT_TRUE(TypeParam::has_returned(this->regs, frame, this->stack));
    frame.return_address = behind + 4;
    EXPECT_FALSE(TypeParam::has_returned(this->regs, frame, this->stack));
    EXPECT_FALSE(TypeParam::is_on_stack(frame, this->stack));
}

TYPED_TEST(Contract, PlacementIsTheCopyThenTheWayBack) {
    auto code = Sample<TypeParam>::plain();
    Placement placed = TypeParam::place(this->plan(code), site, slot);
    EXPECT_EQ(placed.method, Method::boost);
    EXPECT_LE(placed.size, slot_size);
    ASSERT_EQ(placed.copy_end - placed.copy_at, code.size());
    EXPECT_TRUE(std::equal(code.begin(), code.end(), placed.bytes + placed.copy_at));
    // The way back is itself a jump that the same plan can read.
    VirtAddr back = slot + placed.copy_end;
    auto jump = TypeParam::plan(std::span(placed.bytes).subspan(placed.copy_end, placed.size - placed.copy_end), back);
    EXPECT_EQ(jump.flow, Flow::jump);
    EXPECT_EQ(jump.target, site + static_cast<std::int64_t>(code.size()));
}

TYPED_TEST(Contract, PlacementAnywhereWithinReachIsBoosted) {
    auto planned = this->plan(Sample<TypeParam>::plain());
    auto reach = static_cast<std::int64_t>(TypeParam::reach);
    for (VirtAddr far : {site + reach, site - reach})
        EXPECT_EQ(TypeParam::place(planned, site, VirtAddr{far.value & ~std::uint64_t{63}}).method, Method::boost);
    EXPECT_NE(TypeParam::place(planned, site, VirtAddr{0x100000}).method, Method::boost);
}

TYPED_TEST(Contract, RefusedPlanIsNotPlaced) {
    Placement placed = TypeParam::place(this->plan(Sample<TypeParam>::breakpoint()), site, slot);
    EXPECT_EQ(placed.method, Method::refuse);
    EXPECT_NE(placed.why, nullptr);
}

TYPED_TEST(Contract, SlotPositions) {
    Placement placed = TypeParam::place(this->plan(Sample<TypeParam>::plain()), site, slot);
    auto position = [&](std::int64_t offset) { return TypeParam::slot_position(placed, slot, slot + offset); };
    EXPECT_EQ(position(placed.copy_at), SlotPosition::at_start);
    EXPECT_EQ(position(placed.copy_end), SlotPosition::after);
    EXPECT_EQ(position(slot_size), SlotPosition::elsewhere);
    EXPECT_EQ(position(-1), SlotPosition::elsewhere);
    EXPECT_EQ(TypeParam::slot_position(placed, slot, site), SlotPosition::elsewhere);
}

TYPED_TEST(Contract, StepGoesInComesOutAndChangesNothingElse) {
    auto code = Sample<TypeParam>::plain();
    auto planned = this->plan(code);
    Placement placed = TypeParam::place(planned, site, slot);
    auto before = this->regs;
    std::uint64_t old = TypeParam::begin_step(placed, slot, this->regs);
    EXPECT_EQ(TypeParam::pc(this->regs), slot + placed.copy_at);

    auto aborted = this->regs;
    TypeParam::abort_step(placed, site, slot, old, aborted);
    EXPECT_EQ(aborted, before);

    TypeParam::set_pc(this->regs, slot + placed.copy_end); // as the CPU leaves it
    EXPECT_EQ(TypeParam::finish_step(planned, placed, site, slot, old, this->regs, this->stack), Stepped::done);
    TypeParam::set_pc(before, site + static_cast<std::int64_t>(code.size()));
    EXPECT_EQ(this->regs, before);
}

TYPED_TEST(Contract, ProbeableAtStartsOnly) {
    auto function = Sample<TypeParam>::plain();
    std::uint64_t second = function.size();
    auto ret = Sample<TypeParam>::ret();
    function.insert(function.end(), ret.begin(), ret.end());
    EXPECT_TRUE(TypeParam::probeable(function, site, 0).ok);
    EXPECT_TRUE(TypeParam::probeable(function, site, second).ok);
    Probeable inside = TypeParam::probeable(function, site, 1);
    EXPECT_FALSE(inside.ok);
    EXPECT_NE(inside.why, nullptr);
    EXPECT_EQ(inside.before, 0u);
    EXPECT_EQ(inside.after, second);
    Probeable behind = TypeParam::probeable(function, site, function.size());
    EXPECT_FALSE(behind.ok);
    EXPECT_NE(behind.why, nullptr);
}

TYPED_TEST(Contract, GoPassesItsFirstArgumentWhereItsFirstResultIs) {
    TypeParam::set_return_value(this->regs, 0xc000012345);
    EXPECT_EQ(TypeParam::go_argument(this->regs), 0xc000012345u);
}

TYPED_TEST(Contract, GoReturnsInRegistersWhatFitsAndNothingOfTheRest) {
    value::Type word, real, flag, text, pair, row;
    word.kind = value::Type::Kind::integer;
    word.size = 8;
    flag.kind = value::Type::Kind::bool_;
    flag.size = 1;
    real.kind = value::Type::Kind::floating;
    real.size = 8;
    text.kind = pair.kind = value::Type::Kind::structure;
    text.size = pair.size = 16;
    text.members = {{.name = "str", .type = &word}, {.name = "len", .type = &word, .offset = 8}};
    pair.members = {{.name = "yes", .type = &flag}, {.name = "x", .type = &real, .offset = 8}};
    row.kind = value::Type::Kind::array;
    row.target = &word;
    row.count = 2;
    row.size = 16;
    const std::vector<const value::Type *> results = {&word, &pair, &row, &text};
    const auto places = TypeParam::go_result_places(results);
    ASSERT_EQ(places.size(), 4u);
    ASSERT_EQ(places[0].pieces.size(), 1u);
    EXPECT_EQ(places[0].pieces[0].reg, TypeParam::result_place(&word).pieces[0].reg);
    ASSERT_EQ(places[1].pieces.size(), 3u); // with the bytes between the two
    EXPECT_EQ(places[1].pieces[1].kind, value::Piece::Kind::bytes);
    EXPECT_EQ(places[1].pieces[1].size, 7u);
    EXPECT_EQ(places[1].pieces[2].reg, TypeParam::result_place(&real).pieces[0].reg);
    EXPECT_EQ(places[2].pieces[0].kind, value::Piece::Kind::not_known); // arrays of several are never in registers
    ASSERT_EQ(places[3].pieces.size(), 2u);
    EXPECT_NE(places[3].pieces[0].reg, places[3].pieces[1].reg);
    const std::vector<const value::Type *> many(12, &text);
    EXPECT_EQ(TypeParam::go_result_places(many).back().pieces[0].kind, value::Piece::Kind::not_known);
}

TYPED_TEST(Contract, StackedArgumentsComeFromMemoryOrNotAtAll) {
    EXPECT_TRUE(TypeParam::argument(this->regs, this->stack, 0));
    EXPECT_TRUE(TypeParam::argument(this->regs, this->stack, 9));
    EXPECT_FALSE(TypeParam::argument(this->regs, this->stack, 1000)) << "beyond the stack";
}

TYPED_TEST(Contract, PlacesNameRegistersOfTheTable) {
    value::Type number, real, none;
    number.kind = value::Type::Kind::integer;
    real.kind = value::Type::Kind::floating;
    none.kind = value::Type::Kind::void_;
    number.size = real.size = 8;
    const value::Type *parameters[] = {&number, &real, &number};
    auto places = TypeParam::parameter_places(parameters, &none);
    ASSERT_EQ(places.size(), 3u);
    std::map<int, RegisterInfo::File> files;
    for (const RegisterInfo &info : TypeParam::registers())
        if (info.dwarf >= 0) files[info.dwarf] = info.file;
    for (std::size_t i = 0; i < 3; ++i) {
        ASSERT_EQ(places[i].pieces.size(), 1u);
        ASSERT_EQ(places[i].pieces[0].kind, value::Piece::Kind::register_);
        ASSERT_TRUE(files.count(places[i].pieces[0].reg));
        EXPECT_EQ(files[places[i].pieces[0].reg], i == 1 ? RegisterInfo::File::floating : RegisterInfo::File::general);
    }
    EXPECT_NE(places[0].pieces[0].reg, places[2].pieces[0].reg);
    value::Place nothing = TypeParam::result_place(&none);
    ASSERT_EQ(nothing.pieces.size(), 1u);
    EXPECT_EQ(nothing.pieces[0].kind, value::Piece::Kind::unavailable);
    EXPECT_FALSE(nothing.why.empty());
    ASSERT_EQ(TypeParam::result_place(&number).pieces.size(), 1u);
    EXPECT_EQ(files[TypeParam::result_place(&real).pieces.at(0).reg], RegisterInfo::File::floating);
}

TYPED_TEST(Contract, SystemCallIsMadeAndItsResultSigned) {
    const std::uint64_t arguments[] = {11, 22, 33, 44, 55, 66};
    auto before = this->regs;
    TypeParam::set_syscall(this->regs, 9, arguments);
    EXPECT_NE(this->regs, before);
    EXPECT_EQ(TypeParam::pc(this->regs), TypeParam::pc(before)) << "the caller sets the pc";
    EXPECT_EQ(TypeParam::sp(this->regs), TypeParam::sp(before));
    EXPECT_EQ(TypeParam::plan(TypeParam::syscall_bytes(), site).method, Method::syscall);
    typename TypeParam::Registers failed{};
    EXPECT_EQ(TypeParam::syscall_result(failed), 0);
}

} // namespace
} // namespace ktrace::arch::test
