// Values of the target: typed loads, members, strings, faults, and how they are encoded in a record.
#include <gtest/gtest.h>

#include "bench.h"

namespace ktrace::program::test {
namespace {

using Kind = Type::Kind;

class Values : public testing::Test {
  protected:
    Bench bench;
    FakeScope &scope = bench.scope;
    const Type *int_ = scope.scalar(Kind::integer, 4, true, "int");
    const Type *uchar = scope.scalar(Kind::integer, 1, false, "uint8_t");
    const Type *char_ = scope.scalar(Kind::char_, 1, true, "char");
    const Type *float_ = scope.scalar(Kind::floating, 4, true, "float");
    const Type *double_ = scope.scalar(Kind::floating, 8, true, "double");
    const Type *bool_ = scope.scalar(Kind::bool_, 1, false, "bool");
    const Type *string = scope.pointer(char_);
    const Type *op = scope.enumeration({{"OP_READ", 0}, {"OP_WRITE", 1}, {"OP_NONE", -1}});
    const Type *point = scope.record("struct point", 8, {member("x", int_, 0), member("y", int_, 4)});

    static Member member(const char *name, const Type *type, std::uint64_t offset) {
        Member made;
        made.name = name;
        made.type = type;
        made.offset = offset;
        return made;
    }
    static Member bits(const char *name, const Type *type, std::uint64_t offset, unsigned first, unsigned count) {
        Member made = member(name, type, offset);
        made.bit_offset = first;
        made.bit_size = count;
        return made;
    }
    void in_register(const char *name, const Type *type, std::uint16_t dwarf) {
        scope.arguments[name] = {type, Place::in_register(dwarf)};
    }
    void at_address(const char *name, const Type *type, std::int64_t address) {
        Place place;
        place.pieces.resize(1);
        place.pieces[0].ops.push_back({value::Op::Code::push, 8, 0, address});
        scope.variables[name] = {type, place};
    }
    int raw_int(const Node &node) {
        int value = 0;
        EXPECT_EQ(node.bytes.size(), 4U);
        std::memcpy(&value, node.bytes.data(), std::min<std::size_t>(node.bytes.size(), 4));
        return value;
    }
};

TEST_F(Values, NarrowArgumentsTakeTheirWidthOnly) {
    in_register("n", int_, 5);
    bench.reg(5) = 0xdeadbeef'ffffffff; // the upper half is noise, by the psABI
    Node node = bench.print("args.n");
    EXPECT_EQ(node.tag, Tag::raw);
    EXPECT_EQ(node.type, int_->index);
    EXPECT_EQ(raw_int(node), -1);
    EXPECT_TRUE(bench.passes("args.n == -1"));
    EXPECT_TRUE(bench.passes("n == -1")); // a bare name
    EXPECT_EQ(bench.print("args.n + 1").sint(), 0);
    EXPECT_EQ(bench.print("args.n > 3 ? 1 : 2").sint(), 2);
}

TEST_F(Values, UntypedRegistersAreSigned64Bit) {
    bench.reg(5) = static_cast<std::uint64_t>(-5);
    EXPECT_EQ(bench.print("arg0").tag, Tag::sint);
    EXPECT_TRUE(bench.passes("arg0 < 0"));
    bench.reg(0) = 0xffff000000000000;
    const std::string name = bench.reg_name(0);
    EXPECT_EQ(bench.print("reg(\"" + name + "\")").tag, Tag::hex);
    EXPECT_EQ(bench.print("reg(\"" + name + "\")").number, 0xffff000000000000);
    EXPECT_NE(bench.misfit("reg(\"foo\")").hint.find(name), std::string::npos);
}

TEST_F(Values, StringsOfPointers) {
    in_register("name", string, 4);
    bench.reg(4) = 0x2000;
    bench.memory.put_text(0x2000, "alice");
    Node node = bench.print("args.name");
    EXPECT_EQ(node.tag, Tag::string);
    EXPECT_EQ(node.text(), "alice");
    EXPECT_EQ(node.number, 0x2000U);
    EXPECT_FALSE(node.truncated);
    EXPECT_TRUE(bench.passes("args.name == \"alice\""));
    EXPECT_TRUE(bench.passes("\"bob\" != args.name"));
    EXPECT_TRUE(bench.passes("str(args.name, 3) == \"ali\""));
    EXPECT_TRUE(bench.passes("args.name[1] == 'l'"));
    EXPECT_TRUE(bench.passes("*args.name == 'a'"));
    EXPECT_EQ(bench.print("str(arg1)").text(), "alice");
    EXPECT_EQ(bench.print("str((char *)arg1 + 2)").text(), "ice");
    Node part = bench.print("str(args.name, 2)");
    EXPECT_EQ(part.text(), "al");
    EXPECT_TRUE(part.truncated);
    EXPECT_FALSE(bench.print("str(args.name, 5)").truncated);
}

TEST_F(Values, StringsEndAtUnmappedMemory) {
    in_register("name", string, 4);
    bench.reg(4) = 0x2000;
    bench.memory.blocks[0x2000] = {std::byte{'a'}, std::byte{'b'}}; // then nothing is mapped
    Node node = bench.print("args.name");
    EXPECT_EQ(node.text(), "ab");
    EXPECT_TRUE(node.truncated);
    bench.reg(4) = 0x9000;
    node = bench.print("args.name");
    EXPECT_EQ(node.tag, Tag::fault);
    EXPECT_EQ(node.number, 0x9000U);
    bench.reg(4) = 0;
    EXPECT_EQ(bench.print("args.name").tag, Tag::raw); // a null pointer is a value
    EXPECT_EQ(bench.print("str(args.name)").tag, Tag::fault);
}

TEST_F(Values, FaultsMakeComparisonsFalse) {
    in_register("p", scope.pointer(int_), 5);
    bench.reg(5) = 0x9000;
    Node node = bench.print("*args.p + 1");
    EXPECT_EQ(node.tag, Tag::fault);
    EXPECT_EQ(node.number, 0x9000U);
    for (const char *text : {"*args.p == 0", "*args.p != 0", "*args.p < 1", "*args.p", "*args.p && 1", "0 || *args.p",
                             "str(args.p) == \"x\"", "str(args.p) != \"x\"", "-*args.p >= 0"})
        EXPECT_FALSE(bench.passes(text)) << text;
    EXPECT_TRUE(bench.passes("*args.p || 1"));
    EXPECT_TRUE(bench.passes("!(*args.p == 0)"));
    EXPECT_EQ(bench.print("*args.p ? 1 : 2").tag, Tag::fault);
}

TEST_F(Values, MembersThroughPointersAndInRegisters) {
    struct Point {
        int x = 7, y = -8;
    } there;
    bench.memory.put(0x3000, there);
    in_register("p", scope.pointer(point), 5);
    bench.reg(5) = 0x3000;
    EXPECT_EQ(raw_int(bench.print("args.p->y")), -8);
    EXPECT_EQ(raw_int(bench.print("(*args.p).x")), 7);
    EXPECT_EQ(bench.print("args.p").tag, Tag::raw); // --print shows a pointer as one
    EXPECT_EQ(bench.print("args.p").bytes.size(), 8U);
    Node object = bench.print("*args.p");
    EXPECT_EQ(object.type, point->index);
    EXPECT_EQ(object.bytes.size(), 8U);
    EXPECT_EQ(bench.print("&args.p->y").number, 0x3004U);
    EXPECT_EQ(bench.print("args.p + 1").number, 0x3008U);
    EXPECT_EQ(bench.print("&args.p[2] - args.p").sint(), 2);
    in_register("q", point, 4); // by value: both members in one register
    bench.reg(4) = 0x00000005'00000004;
    EXPECT_EQ(raw_int(bench.print("args.q.y")), 5);
    EXPECT_EQ(bench.print("args.q").bytes.size(), 8U);
    EXPECT_NE(bench.misfit("args.p.x").hint.find("->"), std::string::npos);
    EXPECT_NE(bench.misfit("args.q->x").hint.find("."), std::string::npos);
    Error error = bench.misfit("1 + args.p->z");
    EXPECT_EQ(error.column, 4);
    EXPECT_EQ(error.width, 9);
    EXPECT_NE(error.hint.find("x, y"), std::string::npos);
    EXPECT_NE(bench.misfit("args.q + 1").message.find("struct point"), std::string::npos);
}

TEST_F(Values, NearbyMembersCostOneRead) {
    bench.memory.put(0x3000, std::array<int, 2>{1, 2});
    in_register("p", scope.pointer(point), 5);
    bench.reg(5) = 0x3000;
    EXPECT_TRUE(bench.passes("args.p->x == 1 && args.p->y == 2"));
    EXPECT_EQ(bench.memory.reads, 1);
    EXPECT_TRUE(bench.passes("tid == 101"));
    EXPECT_EQ(bench.memory.reads, 1);
    EXPECT_FALSE(bench.passes("tid == 102"));
    EXPECT_EQ(bench.thread.asked, 2); // for its name, once for each of the two events
}

TEST_F(Values, AnonymousMembersBasesAndBitFields) {
    const Type *inner =
        scope.record("", 8, {member("a", int_, 0), bits("low", int_, 4, 0, 3), bits("high", uchar, 4, 3, 5)});
    Member base = member("Base", point, 0);
    base.is_base = true;
    const Type *outer = scope.record("struct outer", 16, {base, member("", inner, 8)});
    in_register("o", scope.pointer(outer), 5);
    bench.reg(5) = 0x3000;
    bench.memory.put(0x3000, std::array<std::uint32_t, 4>{1, 2, 3, 0b11111'101});
    EXPECT_EQ(raw_int(bench.print("args.o->y")), 2);
    EXPECT_EQ(raw_int(bench.print("args.o->a")), 3);
    EXPECT_TRUE(bench.passes("args.o->low == -3"));
    EXPECT_TRUE(bench.passes("args.o->high == 31"));
    in_register("v", inner, 4);
    bench.reg(4) = 0b11111'101UL << 32;
    EXPECT_TRUE(bench.passes("args.v.low == -3 && args.v.high == 31"));
}

TEST_F(Values, ArraysInMemoryAndInRegisters) {
    const Type *three = scope.array(int_, 3);
    at_address("table", three, 0x4000);
    bench.memory.put(0x4000, std::array<int, 3>{10, 20, 30});
    bench.reg(5) = 2;
    EXPECT_EQ(raw_int(bench.print("var.table[1]")), 20);
    EXPECT_EQ(raw_int(bench.print("var.table[arg0]")), 30);
    EXPECT_EQ(raw_int(bench.print("*var.table")), 10);
    EXPECT_EQ(bench.print("var.table").bytes.size(), 12U);
    at_address("label", scope.array(char_, 8), 0x5000);
    bench.memory.put(0x5000, std::array<char, 8>{'h', 'i'});
    EXPECT_TRUE(bench.passes("var.label == \"hi\""));
    EXPECT_EQ(bench.print("str(var.label)").text(), "hi");
    EXPECT_EQ(bench.print("var.label").tag, Tag::raw);
    in_register("pair", scope.array(int_, 2), 5);
    bench.reg(5) = 9UL << 32 | 8;
    EXPECT_EQ(raw_int(bench.print("args.pair[1]")), 9);
    EXPECT_NE(bench.misfit("args.pair[arg1]").message.find("not in memory"), std::string::npos);
    EXPECT_NE(bench.misfit("args.pair[2]").message.find("within"), std::string::npos);
}

/// An array whose size is a variable's is one of size 0 here.
TEST_F(Values, RowsWhoseSizeIsNotKnownAreNotCounted) {
    in_register("rows", scope.pointer(scope.array(int_, 0)), 5);
    bench.reg(5) = 0x5000;
    bench.memory.put(0x5000, std::array<int, 3>{7, 8, 9});
    EXPECT_EQ(raw_int(bench.print("(*args.rows)[2]")), 9);
    EXPECT_NE(bench.misfit("args.rows[1][0]").message.find("the size of"), std::string::npos);
    EXPECT_NE(bench.misfit("args.rows + 1").message.find("the size of"), std::string::npos);
}

TEST_F(Values, FloatsInRegistersAndMemory) {
    const auto [first, first_at] = bench.vector(0);
    const auto [second, second_at] = bench.vector(1);
    in_register("d", double_, first);
    in_register("f", float_, second);
    double d = 2.5;
    float f = -0.5F;
    std::memcpy(first_at, &d, 8);
    std::memcpy(second_at, &f, 4);
    EXPECT_TRUE(bench.passes("args.d == 2.5 && args.f == -0.5"));
    EXPECT_EQ(bench.print("args.d * 2").floating, 5.0);
    Node node = bench.print("args.f");
    EXPECT_EQ(node.type, float_->index);
    ASSERT_EQ(node.bytes.size(), 4U);
    EXPECT_EQ(std::memcmp(node.bytes.data(), &f, 4), 0);
    bench.thread.has_fp = false;
    EXPECT_EQ(bench.print("args.d").tag, Tag::unavailable);
}

TEST_F(Values, LongDoubles) {
    const Type *wide = scope.scalar(Kind::floating, 16, true, "long double");
    at_address("ld", wide, 0x6000);
    bench.memory.put(0x6000, 1.25L);
    EXPECT_TRUE(bench.passes("var.ld == 1.25"));
    EXPECT_EQ(bench.print("var.ld").bytes.size(), 16U);
    EXPECT_EQ(bench.print("var.ld * 2").floating, 2.5);
}

TEST_F(Values, EnumsByName) {
    in_register("op", op, 5);
    bench.reg(5) = 1;
    EXPECT_TRUE(bench.passes("args.op == OP_WRITE"));
    EXPECT_TRUE(bench.passes("OP_WRITE == args.op"));
    EXPECT_TRUE(bench.passes("args.op != OP_READ"));
    EXPECT_EQ(bench.print("args.op").type, op->index);
    Error error = bench.misfit("args.op == OP_FOO");
    EXPECT_EQ(error.column, 11);
    EXPECT_EQ(error.width, 6);
}

TEST_F(Values, ReferencesAreWhatTheyReferTo) {
    Type &reference = scope.table.make();
    reference.kind = Kind::reference;
    reference.size = 8;
    reference.target = point;
    in_register("r", &reference, 5);
    bench.reg(5) = 0x3000;
    bench.memory.put(0x3000, std::array<int, 2>{4, 5});
    EXPECT_EQ(raw_int(bench.print("args.r.y")), 5);
    EXPECT_EQ(bench.print("args.r").type, point->index);
    EXPECT_EQ(bench.print("args.r").bytes.size(), 8U);
}

TEST_F(Values, CastsGiveTypesToMemory) {
    bench.reg(5) = 0x3000;
    scope.named_types["struct point"] = point;
    bench.memory.put(0x3000, std::array<std::uint32_t, 2>{0xfffffffe, 5});
    EXPECT_EQ(bench.print("*(int32 *)arg0").sint(), -2);
    EXPECT_EQ(bench.print("*(uint8*)arg0").number, 0xfeU);
    EXPECT_EQ(bench.print("((uint32_t *)arg0)[1]").number, 5U);
    EXPECT_EQ(raw_int(bench.print("((struct point *)arg0)->y")), 5);
    EXPECT_EQ(bench.print("*arg0").sint(), 0x5'fffffffe);
    EXPECT_NE(bench.misfit("((struct foo *)arg0)->y").message.find("struct foo"), std::string::npos);
    EXPECT_NE(bench.misfit("(struct point)arg0").message.find("a number or a pointer"), std::string::npos);
    EXPECT_NE(bench.misfit("*(void *)arg0").message.find("no known type"), std::string::npos);
}

TEST_F(Values, Buffers) {
    bench.reg(5) = 0x3000;
    bench.reg(4) = 3;
    bench.memory.put(0x3000, std::array<std::uint8_t, 4>{1, 0, 255, 9});
    Node node = bench.print("buf(arg0, arg1)");
    EXPECT_EQ(node.tag, Tag::buffer);
    ASSERT_EQ(node.bytes.size(), 3U);
    EXPECT_EQ(node.bytes[2], std::byte{255});
    EXPECT_EQ(bench.print("buf(arg0, 0 - 1)").bytes.size(), 0U);
    EXPECT_EQ(bench.print("str(arg0, 0 - 1)").bytes.size(), 0U);
    bench.reg(4) = 1UL << 40;
    EXPECT_EQ(bench.print("buf(arg0, arg1)").bytes.size(), 4U); // as far as memory goes
    EXPECT_NE(bench.misfit("buf(arg0, 2000)").message.find("1024"), std::string::npos);
}

TEST_F(Values, BuiltIns) {
    bench.thread.frames = {1, 2, 3};
    EXPECT_EQ(bench.print("tid").sint(), 101);
    EXPECT_EQ(bench.print("pid").sint(), 100);
    EXPECT_EQ(bench.print("comm").text(), "worker");
    EXPECT_EQ(bench.print("func").text(), "do_work");
    EXPECT_EQ(bench.print("nsecs").number, 6000U);
    EXPECT_EQ(bench.print("stack").frames(), 3U);
    EXPECT_TRUE(bench.passes("comm == \"worker\" && func != \"x\" && comm < \"x\""));
    EXPECT_NE(bench.misfit("duration").message.find("return probe"), std::string::npos);
    EXPECT_NE(bench.misfit("retval").message.find("return probe"), std::string::npos);
}

TEST_F(Values, PlacesOfSeveralPieces) {
    Place place;
    place.pieces.resize(2);
    place.pieces[0].kind = value::Piece::Kind::register_;
    place.pieces[0].reg = 5;
    place.pieces[0].size = 4;
    place.pieces[1].kind = value::Piece::Kind::value;
    place.pieces[1].size = 4;
    place.pieces[1].ops = {
        {value::Op::Code::push_register, 8, 4, 1}, {value::Op::Code::push, 8, 0, 3}, {value::Op::Code::mul, 8, 0, 0}};
    scope.arguments["p"] = {point, place};
    bench.reg(5) = 11;
    bench.reg(4) = 3;
    EXPECT_TRUE(bench.passes("args.p.x == 11 && args.p.y == 12"));
    place.pieces[1].kind = value::Piece::Kind::unavailable;
    scope.arguments["p"] = {point, place};
    EXPECT_EQ(bench.print("args.p").tag, Tag::unavailable);
    EXPECT_FALSE(bench.passes("args.p.y == 0"));
}

TEST_F(Values, DwarfExpressionsWithBranchesEnd) {
    using Code = value::Op::Code;
    Place place;
    place.pieces.resize(1);
    place.pieces[0].kind = value::Piece::Kind::value;
    // x = di; while (x > 10) x -= 3; leaves x
    place.pieces[0].ops = {
        {Code::push_register, 8, 5, 0}, {Code::dup, 8, 0, 0},  {Code::push, 8, 0, 10}, {Code::le, 8, 0, 0},
        {Code::bra, 8, 0, 3},           {Code::push, 8, 0, 3}, {Code::minus, 8, 0, 0}, {Code::skip, 8, 0, -7}};
    scope.arguments["x"] = {int_, place};
    bench.reg(5) = 20;
    EXPECT_EQ(raw_int(bench.print("args.x")), 8);
    place.pieces[0].ops = {{Code::push, 8, 0, 1}, {Code::skip, 8, 0, -2}}; // for ever
    scope.arguments["x"] = {int_, place};
    EXPECT_EQ(bench.print("args.x").tag, Tag::na);
    place.pieces[0].ops = {{Code::push, 8, 0, 1}, {Code::skip, 8, 0, 100}}; // to nowhere
    scope.arguments["x"] = {int_, place};
    EXPECT_EQ(bench.print("args.x").tag, Tag::unavailable);
    place.pieces[0].ops = {{Code::plus, 8, 0, 0}}; // of nothing
    scope.arguments["x"] = {int_, place};
    EXPECT_EQ(bench.print("args.x").tag, Tag::na);
}

TEST_F(Values, VariablesInTls) {
    Place place;
    place.pieces.resize(1);
    place.pieces[0].ops = {{value::Op::Code::push, 8, 0, 16}, {value::Op::Code::tls, 8, 0, 1}};
    scope.variables["errno_"] = {int_, place};
    bench.memory.put(0x7010, 42);
    EXPECT_TRUE(bench.passes("var.errno_ == 42"));
}

TEST_F(Values, LargeObjectsAreCutOff) {
    const Type *large = scope.array(int_, 1000);
    at_address("large", large, 0x10000);
    bench.memory.put(0x10000, std::array<int, 1000>{1, 2});
    Node node = bench.print("var.large");
    EXPECT_EQ(node.bytes.size(), max_value);
    EXPECT_EQ(bench.print("var.large[999]").tag, Tag::raw);
}

} // namespace
} // namespace ktrace::program::test
