// Values within interfaces of Go, by descriptors in memory that may hold anything.
#include <gtest/gtest.h>

#include "bench.h"

namespace ktrace::program::test {
namespace {

using Kind = Type::Kind;

constexpr std::uint64_t types_at = 0x10000, interface_at = 0x1000, value_at = 0x2000, pointed_at = 0x3000;
constexpr std::uint64_t integer_kind = 4, pointer_kind = 22, structure_kind = 25; // int16
constexpr std::uint64_t extra_star = 2;

class Interfaces : public testing::Test {
  protected:
    Bench bench;
    FakeScope &scope = bench.scope;
    const Type *short_ = scope.scalar(Kind::integer, 2, true, "short");
    const Type *pointer_ = scope.pointer(short_);

    void SetUp() override {
        scope.held = {.begin = types_at, .end = types_at + 0x1000, .types = {}};
        Place place;
        place.pieces.resize(1);
        place.pieces[0].ops.push_back({value::Op::Code::push, 8, 0, interface_at});
        scope.variables["v"] = {record("runtime.eface", {"_type", "data"}), place};
    }
    const Type *record(const std::string &name, std::vector<std::string> words) {
        std::vector<Member> members;
        for (const std::string &word : words) {
            Member &made = members.emplace_back();
            made.name = word;
            made.type = pointer_;
            made.offset = 8 * (members.size() - 1);
        }
        return scope.record(name, 8 * members.size(), members);
    }
    /// A descriptor `at` bytes behind the start of all, with its name behind it.
    void describe(std::uint64_t at, std::uint64_t kind, const std::string &name, std::uint64_t flags = 0,
                  std::uint64_t element = 0) {
        const std::uint64_t name_at = at + 0x800; // not in what is read at once
        bench.memory.put(types_at + at, std::array<std::uint64_t, 7>{0, 0, flags << 32 | kind << 56, 0, 0, name_at,
                                                                     types_at + element});
        const bool is_long = name.size() >= 128;
        std::string text(1, '\1');
        text += static_cast<char>(is_long ? name.size() % 128 + 128 : name.size());
        if (is_long) text += static_cast<char>(name.size() / 128);
        bench.memory.put_text(types_at + name_at, text + name);
    }
    void hold(std::uint64_t descriptor, std::uint64_t data) {
        bench.memory.put(interface_at, std::array<std::uint64_t, 2>{descriptor, data});
    }
    /// The name and the value of what it holds.
    std::pair<std::string, Node> held() {
        const Node group = bench.print("var.v");
        EXPECT_EQ(group.tag, Tag::group);
        EXPECT_EQ(static_cast<Form>(group.number), Form::named);
        std::vector<Node> nodes;
        RecordReader reader(group.bytes);
        while (auto node = reader.next()) nodes.push_back(*node);
        EXPECT_TRUE(reader.ok());
        EXPECT_EQ(nodes.size(), 2U);
        if (nodes.size() != 2) return {};
        return {std::string(nodes[0].text()), nodes[1]};
    }
};

TEST_F(Interfaces, NumbersAreShownByTheirKind) {
    describe(0x40, integer_kind, "int16");
    hold(types_at + 0x40, value_at);
    bench.memory.put(value_at, std::int16_t{-3});
    const auto [name, value] = held();
    EXPECT_EQ(name, "int16");
    EXPECT_EQ(value.tag, Tag::sint);
    EXPECT_EQ(value.sint(), -3);
}

TEST_F(Interfaces, ANameMayBeLongAndHaveAStarTooMany) {
    const std::string name(150, 'n');
    describe(0x40, integer_kind, "*" + name, extra_star);
    hold(types_at + 0x40, value_at);
    bench.memory.put(value_at, std::int16_t{1});
    EXPECT_EQ(held().first, name);
}

TEST_F(Interfaces, StructuresAreShownByTheirTypeAlsoBehindPointers) {
    const Type *pair = record("main.pair", {"first", "second"});
    scope.held.types = {{types_at + 0x40, pair}};
    describe(0x40, structure_kind, "main.pair");
    describe(0x400, pointer_kind, "*main.pair", 0, 0x40);
    bench.memory.put(value_at, std::array<std::uint64_t, 2>{5, 6});
    for (std::uint64_t descriptor : {types_at + 0x40, types_at + 0x400}) {
        hold(descriptor, value_at);
        const auto [name, value] = held();
        EXPECT_EQ(name, descriptor == types_at + 0x40 ? "main.pair" : "*main.pair");
        EXPECT_EQ(value.tag, Tag::raw);
        EXPECT_EQ(value.type, pair->index);
        EXPECT_EQ(value.bytes.size(), 16U);
    }
}

TEST_F(Interfaces, AStructureOfOnePointerLiesInTheInterface) {
    const Type *holder = record("main.holder", {"p"});
    scope.held.types = {{types_at + 0x40, holder}};
    describe(0x40, structure_kind, "main.holder");
    describe(0x400, pointer_kind, "*main.holder", 0, 0x40);
    bench.memory.put(value_at, std::uint64_t{pointed_at});
    for (const auto &[descriptor, data] :
         {std::pair(types_at + 0x40, pointed_at), std::pair(types_at + 0x400, value_at)}) {
        hold(descriptor, data);
        const Node value = held().second;
        ASSERT_EQ(value.bytes.size(), 8U);
        std::uint64_t pointer = 0;
        std::memcpy(&pointer, value.bytes.data(), sizeof pointer);
        EXPECT_EQ(pointer, pointed_at);
    }
}

TEST_F(Interfaces, WhatIsNotKnownIsShownByItsAddress) {
    describe(0x40, structure_kind, "main.other");
    hold(types_at + 0x40, value_at);
    const auto [name, value] = held();
    EXPECT_EQ(name, "main.other");
    EXPECT_EQ(value.tag, Tag::hex);
    EXPECT_EQ(value.number, value_at);
    for (std::uint64_t descriptor : {types_at - 8, types_at + 0x1000}) { // not of the program's
        hold(descriptor, value_at);
        EXPECT_EQ(bench.print("var.v").tag, Tag::hex);
    }
    hold(0, 0);
    EXPECT_EQ(static_cast<Form>(bench.print("var.v").number), Form::nothing);
    describe(0x40, pointer_kind, "*main.other");
    hold(types_at + 0x40, 0);
    EXPECT_EQ(static_cast<Form>(held().second.number), Form::nothing);
}

} // namespace
} // namespace ktrace::program::test
