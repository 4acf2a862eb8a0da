// Groups of nodes: they have the room of one node, and what does not fit is left out from its end.
#include <array>

#include <gtest/gtest.h>

#include "program/run/node_writer.h"
#include "program/tables/record_reader.h"

namespace ktrace::program::test {
namespace {

std::vector<Node> nodes_of(std::span<const std::byte> bytes) {
    std::vector<Node> all;
    RecordReader reader(bytes);
    while (auto node = reader.next()) all.push_back(*node);
    EXPECT_TRUE(reader.ok());
    return all;
}

class Groups : public testing::Test {
  protected:
    std::array<std::byte, 200> bytes{};
    std::span<const std::byte> written(const NodeWriter &writer) const { return std::span(bytes).first(writer.size()); }
};

TEST_F(Groups, HoldNodesAndGroups) {
    NodeWriter writer(bytes, 100, false);
    writer.begin_group(Form::tuple, 3, 0);
    writer.number(Tag::uint, 7);
    writer.begin_group(Form::list, 4, 0);
    writer.number(Tag::uint, 8);
    writer.end_group();
    writer.end_group();
    writer.number(Tag::uint, 9);
    const auto outer = nodes_of(written(writer));
    ASSERT_EQ(outer.size(), 2U);
    EXPECT_EQ(outer[0].type, 3U);
    EXPECT_EQ(outer[1].number, 9U);
    const auto inner = nodes_of(outer[0].bytes);
    ASSERT_EQ(inner.size(), 2U);
    EXPECT_EQ(nodes_of(inner[1].bytes).at(0).number, 8U);
}

TEST_F(Groups, LeaveOutWhatHasNoRoomAndAllBehindIt) {
    NodeWriter writer(bytes, 28, false);
    writer.begin_group(Form::list, 3, 0);
    writer.number(Tag::uint, 1);
    writer.begin_group(Form::list, 3, 0);
    writer.number(Tag::uint, 2); // one byte too many
    writer.end_group();
    writer.boolean(true); // which would fit
    writer.end_group();
    EXPECT_FALSE(writer.overflowed());
    writer.number(Tag::uint, 9);
    const auto outer = nodes_of(written(writer));
    ASSERT_EQ(outer.size(), 2U);
    EXPECT_TRUE(outer[0].truncated);
    const auto inner = nodes_of(outer[0].bytes);
    ASSERT_EQ(inner.size(), 2U);
    EXPECT_TRUE(inner[1].truncated);
    EXPECT_TRUE(inner[1].bytes.empty());
}

TEST_F(Groups, NestNoDeeperThanTheyMay) {
    NodeWriter writer(bytes, 200, false);
    for (int i = 0; i < 20; ++i) writer.begin_group(Form::list, 0, 0);
    for (int i = 0; i < 20; ++i) writer.end_group();
    EXPECT_FALSE(writer.in_group());
    writer.boolean(true);
    EXPECT_EQ(nodes_of(written(writer)).size(), 2U);
}

TEST_F(Groups, AreNotThereWhereTheyDidNotEnd) {
    NodeWriter writer(bytes, 100, false);
    writer.boolean(true);
    writer.begin_group(Form::list, 0, 0);
    writer.number(Tag::uint, 1);
    writer.abandon_groups();
    EXPECT_EQ(nodes_of(written(writer)).size(), 1U);
}

} // namespace
} // namespace ktrace::program::test
