// Images: what is in them, and that equal code is equal bytes. That they run anywhere is shown by all tests of
// programs: Bench::run runs each image in two places.
#include <gtest/gtest.h>

#include "bench.h"
#include "program/lower/code.h"
#include "program/run/machine.h"

namespace ktrace::program::test {
namespace {

using Kind = Type::Kind;

Code some_code(const std::string &text) {
    Code code;
    MomentCode &pre = code.moment(Moment::pre);
    pre.has_condition = pre.runs = pre.needs.runs = true;
    pre.condition = {{.op = Opcode::push, .imm = 1}};
    pre.body = {{{.op = Opcode::push_text, .index = 1}, {.op = Opcode::emit_text}},
                {{.op = Opcode::push_text, .index = 7}, {.op = Opcode::emit_text}}};
    code.constants = {"other", text};
    code.destinations = {{.offset = 8, .displacement = -16}};
    code.selection_at = 24;
    return code;
}

TEST(Images, HoldWhatTheCodeSays) {
    auto bytes = flatten(some_code("text"));
    Image image(bytes);
    EXPECT_EQ(image.header().magic, image_magic);
    EXPECT_EQ(image.header().version, image_version);
    EXPECT_EQ(image.bytes().size(), bytes.size());
    EXPECT_EQ(image.header().selection_at, 24U);
    EXPECT_EQ(image.header().payload_limit, max_value);
    const MomentImage &pre = image.moment(Moment::pre);
    EXPECT_TRUE(pre.has_condition);
    EXPECT_TRUE(pre.needs.runs);
    EXPECT_FALSE(image.moment(Moment::post).needs.runs);
    EXPECT_EQ(image[pre.condition].size(), 1U);
    auto body = image[pre.body];
    ASSERT_EQ(body.size(), 2U);
    EXPECT_EQ(image[body[0]].back().op, Opcode::emit_text);
    EXPECT_EQ(image.constant(1).size(), 4U);
    EXPECT_EQ(image.constant(2).size(), 0U);
    auto destinations = image[image.header().destinations];
    ASSERT_EQ(destinations.size(), 1U);
    EXPECT_EQ(destinations[0].displacement, -16);
}

TEST(Images, AreEqualBytesWhereTheCodeIsEqual) {
    EXPECT_EQ(flatten(some_code("text")), flatten(some_code("text")));
    EXPECT_NE(flatten(some_code("text")), flatten(some_code("Text")));
}

TEST(Images, OfEqualExpressionsAreEqual) {
    Bench bench;
    bench.scope.arguments["n"] = {bench.scope.scalar(Kind::integer, 4, true, "int"), Place::in_register(5)};
    auto program_of = [&](const std::string &text) {
        Recipe wanted = bench.recipe();
        wanted.print = {bench.tree(text)};
        return build(wanted).program;
    };
    Program one = program_of("args.n + 1"), same = program_of("args.n + 1"), other = program_of("args.n + 2");
    EXPECT_FALSE(one < same || same < one);
    EXPECT_TRUE(one < other || other < one);
}

/// Aligned, and beginning at once behind something else: as good a place as any.
TEST(Images, RunBehindOtherBytes) {
    Bench bench;
    Recipe wanted = bench.recipe();
    wanted.print = {bench.tree("\"text\"")};
    Built built = build(wanted);
    auto state = bench.state(wanted);
    auto original = built.program.image().bytes();
    auto expected = bench.hit(built.program.image(), Moment::pre, *state);
    EXPECT_EQ(expected.outcome, Outcome::event);
    for (std::size_t offset = image_alignment; offset <= 64; offset += image_alignment) {
        std::vector<std::byte> bytes(offset, std::byte{0xcc});
        bytes.insert(bytes.end(), original.begin(), original.end());
        EXPECT_EQ(bench.hit(Image(std::span(bytes).subspan(offset)), Moment::pre, *state), expected) << offset;
    }
}

/// An index that no compiler of ours writes ends the run.
TEST(Images, ChecksTheIndexOfADestination) {
    Code code;
    MomentCode &pre = code.moment(Moment::pre);
    pre.body = {{{.op = Opcode::push, .imm = 1}, {.op = Opcode::inject, .index = 1}, {.op = Opcode::emit_sint}}};
    code.destinations = {{.offset = 8}};
    auto bytes = flatten(code);
    Bench bench;
    Changes changes;
    HitView view{bench.registers, &bench.memory, &bench.thread, Pid{1}, Tid{1}, 0, 0, 0, {}, &changes};
    Machine machine(Image(bytes), view);
    NodeWriter nothing({}, 0, false);
    auto body = Image(bytes)[Image(bytes).moment(Moment::pre).body];
    EXPECT_EQ(machine.run(Image(bytes)[body[0]], nothing).state, Slot::State::na);
    EXPECT_FALSE(changes.any());
}

} // namespace
} // namespace ktrace::program::test
