// Objects of libraries by what they hold: read by the members that their types have, from memory that may hold
// anything.
#include <gtest/gtest.h>

#include "bench.h"
#include "program/contents/contents.h"

namespace ktrace::program::test {
namespace {

using Kind = Type::Kind;

class Contents : public testing::Test {
  protected:
    Bench bench;
    FakeScope &scope = bench.scope;
    const Type *int_ = scope.scalar(Kind::integer, 4, true, "int");
    const Type *long_ = scope.scalar(Kind::integer, 8, false, "unsigned long");
    const Type *char_ = scope.scalar(Kind::char_, 1, true, "char");
    const Type *bool_ = scope.scalar(Kind::bool_, 1, false, "bool");
    const Type *string =
        scope.record("std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >", 32, {});

    static Member member(const char *name, const Type *type, std::uint64_t offset) {
        Member made;
        made.name = name;
        made.type = type;
        made.offset = offset;
        return made;
    }
    /// libstdc++'s: a base class that has the pointers in a member.
    const Type *vector(const Type *element) {
        const Type *pointer = scope.pointer(element);
        const Type *data =
            scope.record("_Vector_impl_data", 24, {member("_M_start", pointer, 0), member("_M_finish", pointer, 8)});
        Member base = member("", scope.record("_Vector_base", 24, {member("_M_impl", data, 0)}), 0);
        base.is_base = true;
        return scope.record("std::vector<" + element->name + ", std::allocator<" + element->name + "> >", 24, {base});
    }
    const Type *made_with(const Type *type, std::vector<const Type *> parameters) {
        const_cast<Type *>(type)->parameters = std::move(parameters);
        return type;
    }
    const Type *list(const Type *element) {
        const Type *node = scope.record("_List_node_header", 24, {member("_M_size", long_, 16)});
        return made_with(scope.record("std::list<" + element->name + ">", 24, {member("_M_node", node, 0)}), {element});
    }
    const Type *set(const Type *element) {
        const Type *header = scope.record("_Rb_tree_node_base", 32, {});
        return made_with(scope.record("std::set<" + element->name + ">", 48,
                                      {member("_M_header", header, 8), member("_M_node_count", long_, 40)}),
                         {element});
    }
    void at_address(const char *name, const Type *type, std::int64_t address) {
        Place place;
        place.pieces.resize(1);
        place.pieces[0].ops.push_back({value::Op::Code::push, 8, 0, address});
        scope.variables[name] = {type, place};
    }
    static std::vector<Node> nodes_of(const Node &group) {
        std::vector<Node> all;
        RecordReader reader(group.bytes);
        while (auto node = reader.next()) all.push_back(*node);
        EXPECT_TRUE(reader.ok());
        return all;
    }
    static std::vector<int> ints_of(const Node &group) {
        EXPECT_EQ(group.tag, Tag::group);
        std::vector<int> all;
        for (const Node &node : nodes_of(group)) {
            EXPECT_EQ(node.tag, Tag::raw);
            int value = 0;
            std::memcpy(&value, node.bytes.data(), std::min<std::size_t>(node.bytes.size(), 4));
            all.push_back(value);
        }
        return all;
    }
    struct Words {
        std::uint64_t a, b, c;
    };
};

TEST_F(Contents, AVectorIsItsElements) {
    at_address("v", vector(int_), 0x1000);
    bench.memory.put(0x1000, Words{0x2000, 0x200c, 0x2010});
    bench.memory.put(0x2000, std::array<int, 4>{5, -6, 7, 8});
    const Node node = bench.print("var.v");
    EXPECT_EQ(static_cast<Form>(node.number), Form::list);
    EXPECT_EQ(ints_of(node), (std::vector{5, -6, 7}));
    EXPECT_FALSE(node.truncated);
}

TEST_F(Contents, TenElementsAndAWordThatThereAreMore) {
    at_address("v", vector(int_), 0x1000);
    bench.memory.put(0x1000, Words{0x2000, 0x202c, 0x2030});
    bench.memory.put(0x2000, std::array<int, 11>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
    const Node node = bench.print("var.v");
    EXPECT_EQ(ints_of(node), (std::vector{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
    EXPECT_TRUE(node.truncated);
}

TEST_F(Contents, WhatCannotBeReadIsAFault) {
    at_address("v", vector(int_), 0x1000);
    EXPECT_EQ(bench.print("var.v").tag, Tag::fault);
    bench.memory.put(0x1000, Words{0x2000, 0x2008, 0x2008});
    const Node node = bench.print("var.v");
    ASSERT_EQ(nodes_of(node).size(), 2U);
    EXPECT_EQ(nodes_of(node)[1].tag, Tag::fault);
}

TEST_F(Contents, ACountThatIsNoneIsNotKnown) {
    at_address("v", vector(int_), 0x1000);
    bench.memory.put(0x1000, Words{0x2000, 0xdeadbeefcafe0000, 0});
    EXPECT_EQ(bench.print("var.v").tag, Tag::not_known);
    bench.memory.put(0x1000, Words{0x2000, 0x1000, 0}); // its end is before its beginning
    EXPECT_EQ(bench.print("var.v").tag, Tag::not_known);
    at_address("s", string, 0x3000);
    bench.memory.put(0x3000, Words{0x2000, 0xffffffffffffff00, 0});
    EXPECT_EQ(bench.print("var.s").tag, Tag::not_known);
}

TEST_F(Contents, AListThatLeadsToItselfEnds) {
    at_address("l", list(int_), 0x1000);
    bench.memory.put(0x1000, Words{0x2000, 0x2000, 1000000});
    bench.memory.put(0x2000, Words{0x2000, 0x1000, 7});
    const Node node = bench.print("var.l");
    EXPECT_EQ(ints_of(node), std::vector<int>(10, 7));
    EXPECT_TRUE(node.truncated);
}

struct TreeNode {
    std::uint64_t color, up, left, right;
    std::uint64_t value;
};

TEST_F(Contents, ASetIsInOrder) {
    at_address("s", set(int_), 0x1000);
    // 2 at the top, 1 and 4 below it, 3 to the left of 4.
    bench.memory.put(0x1000, std::array<std::uint64_t, 6>{0, 0, 0x2000, 0x3000, 0x4000, 4});
    bench.memory.put(0x2000, TreeNode{1, 0x1008, 0x3000, 0x4000, 2});
    bench.memory.put(0x3000, TreeNode{1, 0x2000, 0, 0, 1});
    bench.memory.put(0x4000, TreeNode{1, 0x2000, 0x5000, 0, 4});
    bench.memory.put(0x5000, TreeNode{0, 0x4000, 0, 0, 3});
    EXPECT_EQ(ints_of(bench.print("var.s")), (std::vector{1, 2, 3, 4}));
}

TEST_F(Contents, ATreeThatIsACircleIsNotKnown) {
    at_address("s", set(int_), 0x1000);
    bench.memory.put(0x1000, std::array<std::uint64_t, 6>{0, 0, 0x2000, 0x2000, 0x2000, 1000});
    bench.memory.put(0x2000, TreeNode{1, 0x2000, 0x2000, 0x2000, 2});
    const std::vector<Node> nodes = nodes_of(bench.print("var.s"));
    ASSERT_GE(nodes.size(), 2U);
    EXPECT_EQ(nodes[0].tag, Tag::raw);
    EXPECT_EQ(nodes[1].tag, Tag::not_known);
}

TEST_F(Contents, TextsOfBothLibraries) {
    at_address("s", string, 0x1000);
    bench.memory.put(0x1000, Words{0x2000, 5, 0});
    bench.memory.put_text(0x2000, "hello, world");
    EXPECT_EQ(bench.print("var.s").text(), "hello");
    EXPECT_EQ(bench.print("str(var.s, 3)").text(), "hel");
    EXPECT_TRUE(bench.passes("var.s == \"hello\""));
    const Type *other = scope.record("std::__1::basic_string<char, std::__1::char_traits<char> >", 24, {});
    at_address("o", other, 0x3000);
    bench.memory.put(0x3000, Words{0x31, 12, 0x2000}); // where it is long, bit 0 is set
    EXPECT_EQ(bench.print("var.o").text(), "hello, world");
    bench.memory.put(0x3000, std::array<char, 24>{4, 'h', 'i', 0});
    EXPECT_EQ(bench.print("var.o").text(), "hi");
}

TEST_F(Contents, AVectorOfBoolIsItsBits) {
    const Type *iterator =
        scope.record("std::_Bit_iterator", 16, {member("_M_p", scope.pointer(long_), 0), member("_M_offset", int_, 8)});
    const Type *bits = made_with(scope.record("std::vector<bool, std::allocator<bool> >", 40,
                                              {member("_M_start", iterator, 0), member("_M_finish", iterator, 16)}),
                                 {bool_});
    at_address("v", bits, 0x1000);
    bench.memory.put(0x1000, std::array<std::uint64_t, 5>{0x2000, 0, 0x2000, 3, 0});
    bench.memory.put(0x2000, std::uint64_t{0b101});
    std::vector<std::uint64_t> shown;
    for (const Node &node : nodes_of(bench.print("var.v"))) shown.push_back(node.number);
    EXPECT_EQ(shown, (std::vector<std::uint64_t>{1, 0, 1}));
    bench.memory.put(0x1000, std::array<std::uint64_t, 5>{0x2000, 0, 0x2008, 3, 0});
    EXPECT_TRUE(bench.print("var.v").truncated);
    bench.memory.put(0x1000, std::array<std::uint64_t, 5>{0x2000, 0, 0x1000, 3, 0});
    EXPECT_EQ(bench.print("var.v").tag, Tag::not_known);
}

TEST_F(Contents, AnObjectInARegisterIsReadThere) {
    const Type *optional = made_with(
        scope.record("std::optional<int>", 8, {member("_M_payload", int_, 0), member("_M_engaged", bool_, 4)}), {int_});
    scope.arguments["o"] = {optional, Place::in_register(5)};
    bench.reg(5) = 0x1'0000'0007;
    EXPECT_EQ(bench.print("args.o").tag, Tag::raw);
    bench.reg(5) = 7;
    const Node node = bench.print("args.o");
    EXPECT_EQ(static_cast<Form>(node.number), Form::nothing);
}

TEST_F(Contents, PartsStandBehindTheBytesOfTheirObject) {
    const Type *person = scope.record(
        "Person", 64, {member("id", int_, 0), member("name", string, 8), member("scores", vector(int_), 40)});
    at_address("p", person, 0x1000);
    bench.memory.put(0x1000, std::array<std::uint64_t, 8>{9, 0x2000, 3, 0, 0, 0x3000, 0x3004, 0});
    bench.memory.put_text(0x2000, "bob");
    bench.memory.put(0x3000, 80);
    const std::vector<Node> nodes = nodes_of(bench.print("var.p"));
    ASSERT_EQ(nodes.size(), 5U);
    EXPECT_EQ(nodes[0].bytes.size(), 64U);
    EXPECT_EQ(nodes[1].number & 0xffffffff, 8U);
    EXPECT_EQ(nodes[2].text(), "bob");
    EXPECT_EQ(nodes[3].number & 0xffffffff, 40U);
    EXPECT_EQ(ints_of(nodes[4]), std::vector{80});
}

TEST_F(Contents, WhatIsTooDeepIsLeftOut) {
    const Type *type = int_;
    for (int i = 0; i < 6; ++i) type = vector(type);
    at_address("v", type, 0x1000);
    for (std::uint64_t at = 0x1000; at < 0x7000; at += 0x1000) bench.memory.put(at, Words{at + 0x1000, at + 0x1018, 0});
    Node node = bench.print("var.v");
    int depth = 0;
    while (node.tag == Tag::group) {
        const std::vector<Node> inner = nodes_of(node);
        ASSERT_EQ(inner.size(), 1U);
        node = inner[0];
        ++depth;
    }
    EXPECT_EQ(depth, 5);
    EXPECT_EQ(node.tag, Tag::elided);
}

TEST_F(Contents, ATypeThatIsMadeInAnotherWayIsShownAsItIs) {
    const Type *mine =
        scope.record("std::vector<int, std::allocator<int> >", 8, {member("first", int_, 0), member("last", int_, 4)});
    at_address("v", mine, 0x1000);
    bench.memory.put(0x1000, Words{1, 2, 3});
    EXPECT_EQ(bench.print("var.v").tag, Tag::raw);
    EXPECT_FALSE(contents::is_known(*scope.record("std::vector<int, std::allocator<int> >::iterator", 8, {})));
    EXPECT_FALSE(contents::is_known(*scope.record("my::vector<int>", 8, {})));
}

} // namespace
} // namespace ktrace::program::test
