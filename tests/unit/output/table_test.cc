// Tables of --count, --stats and --hist, as text and JSON.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "make_types.h"
#include "output/table.h"

namespace ktrace::test {
namespace {

using program::KeyPart;
using program::Number;
using program::Row;
using program::Table;
using program::Tag;

program::LocationInfo location() {
    program::LocationInfo made;
    made.kind = 'r';
    made.symbol = "do_work";
    made.module = "worker";
    return made;
}

std::string text(const Table &table) {
    std::string out;
    output::append_table(out, location(), table, nullptr);
    return out;
}

nlohmann::json json(const Table &table) {
    std::string out;
    output::append_table_json(out, location(), table, nullptr);
    EXPECT_TRUE(out.starts_with(',')) << out;
    return nlohmann::json::parse('{' + out.substr(1) + '}');
}

KeyPart tid(std::int64_t value) {
    KeyPart part;
    part.tag = Tag::sint;
    part.number = static_cast<std::uint64_t>(value);
    return part;
}

KeyPart name(std::string value) {
    KeyPart part;
    part.tag = Tag::string;
    part.text = std::move(value);
    return part;
}

Row counted(std::vector<KeyPart> key, std::uint64_t count) {
    Row row;
    row.key = std::move(key);
    row.count = count;
    return row;
}

Number sint(std::int64_t value) { return {Number::Kind::sint, static_cast<std::uint64_t>(value)}; }

Table stats_table() {
    Row row = counted({}, 4);
    row.stats = {4, 2.5, sint(1), sint(4), sint(2), sint(4), sint(4), true};
    return {Table::Kind::stats, {}, "duration", {row}};
}

TEST(Tables, ACountIsALine) {
    Table table{Table::Kind::count, {}, "", {counted({}, 100000)}};
    EXPECT_EQ(text(table), "      100000 do_work+0x0 [worker] r\n");
    EXPECT_EQ(json(table), nlohmann::json::parse(R"({"count":100000})"));
}

TEST(Tables, NothingCountedIsZero) {
    Table table{Table::Kind::count, {}, "", {}};
    EXPECT_EQ(text(table), "           0 do_work+0x0 [worker] r\n");
    EXPECT_EQ(json(table), nlohmann::json::parse(R"({"count":0})"));
}

TEST(Tables, CountsByKeys) {
    Table table{Table::Kind::count,
                {"tid", "comm"},
                "",
                {counted({tid(7), name("a\x1b")}, 5), counted({tid(1234), name("bb")}, 12)}};
    EXPECT_EQ(text(table), "do_work+0x0 [worker] r: count by tid, comm\n"
                           "  tid  comm  count\n"
                           "  7    a\\x1b     5\n"
                           "  1234 bb       12\n");
    EXPECT_EQ(json(table),
              nlohmann::json::parse(R"({"by":[{"key":[7,"a\u001b"],"count":5},{"key":[1234,"bb"],"count":12}]})"));
}

TEST(Tables, TypedKeysAreAsInEvents) {
    Types types;
    const value::Type &type = types.array(types.integer(2, true), 3);
    program::LocationInfo where = location();
    where.types = &types.table;
    KeyPart key;
    key.tag = Tag::raw;
    key.type = type.index;
    key.text = std::string("\1\0\xff\xff\3\0", 6);
    Table table{Table::Kind::count, {"args.a"}, "", {counted({key}, 5)}};
    std::string out;
    output::append_table(out, where, table, nullptr);
    EXPECT_EQ(out, "do_work+0x0 [worker] r: count by args.a\n"
                   "  a          count\n"
                   "  [1, -1, 3]     5\n");
    out.clear();
    output::append_table_json(out, where, table, nullptr);
    EXPECT_EQ(out, R"(,"by":[{"key":[1,-1,3],"count":5}])");
}

TEST(Tables, OneKeyStandsForItself) {
    Table table{Table::Kind::count, {"args.op"}, "", {counted({name("READ")}, 5)}};
    Row others = counted({}, 3);
    others.other = true;
    table.rows.push_back(others);
    EXPECT_EQ(text(table), "do_work+0x0 [worker] r: count by args.op\n"
                           "  op       count\n"
                           "  READ         5\n"
                           "  (others)     3\n");
    EXPECT_EQ(json(table), nlohmann::json::parse(R"({"by":[{"key":"READ","count":5},{"key":null,"count":3}]})"));
}

TEST(Tables, Statistics) {
    EXPECT_EQ(text(stats_table()), "do_work+0x0 [worker] r: duration in ns\n"
                                   "  count  avg min max p50 p90 p99\n"
                                   "      4 2.50   1   4   2   4   4\n");
    EXPECT_EQ(json(stats_table()),
              nlohmann::json::parse(R"({"stats":{"count":4,"avg":2.5,"min":1,"max":4,"p50":2,"p90":4,"p99":4}})"));
}

TEST(Tables, LargeIntegersStayExact) {
    Table table = stats_table();
    table.rows[0].stats.max = {Number::Kind::uint, ~std::uint64_t{0}};
    EXPECT_NE(text(table).find(" 18446744073709551615 "), std::string::npos);
    EXPECT_EQ(json(table)["stats"]["max"].get<std::uint64_t>(), ~std::uint64_t{0});
}

TEST(Tables, StatisticsOfNothing) {
    Table table = stats_table();
    table.rows[0].stats = {};
    table.rows[0].unread = 3;
    EXPECT_NE(text(table).find("0   -   -"), std::string::npos);
    EXPECT_NE(text(table).find("3 more could not be read"), std::string::npos);
    EXPECT_TRUE(json(table)["stats"]["avg"].is_null());
    table.rows.clear();
    EXPECT_NE(text(table).find("nothing was measured"), std::string::npos);
    EXPECT_EQ(json(table)["stats"]["count"], 0);
}

TEST(Tables, PercentilesMayBeUnknown) {
    Table table = stats_table();
    table.rows[0].stats.has_percentiles = false;
    EXPECT_EQ(text(table), "do_work+0x0 [worker] r: duration in ns\n"
                           "  count  avg min max p50 p90 p99\n"
                           "      4 2.50   1   4   -   -   -\n"
                           "  percentiles are not known of 1 row: all tables together have used up their memory\n");
    EXPECT_EQ(json(table), nlohmann::json::parse(
                               R"({"stats":{"count":4,"avg":2.5,"min":1,"max":4,"p50":null,"p90":null,"p99":null}})"));
}

TEST(Tables, WhatIsNaNCouldBeRead) {
    Row row = counted({}, 4);
    row.hist = {{0, 0, 1}};
    row.unread = 1;
    row.nans = 2;
    Table table{Table::Kind::hist, {}, "retval", {row}};
    EXPECT_TRUE(text(table).ends_with("|\n  1 more could not be read\n  2 more were NaN\n")) << text(table);
    table.rows[0].unread = 0;
    table.rows[0].nans = 1;
    EXPECT_TRUE(text(table).ends_with("|\n  1 more was NaN\n")) << text(table);
}

TEST(Tables, HistogramBarsAreProportional) {
    Row row = counted({}, 7);
    row.hist = {{0, 0, 1}, {1, 1, 0}, {2, 3, 4}, {1024, 2047, 2}};
    Table table{Table::Kind::hist, {}, "duration", {row}};
    EXPECT_EQ(text(table), "do_work+0x0 [worker] r: duration in ns\n"
                           "[0]                       1 |@@@@@@@@@@@@@                                       |\n"
                           "[1]                       0 |                                                    |\n"
                           "[2, 4)                    4 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|\n"
                           "[1K, 2K)                  2 |@@@@@@@@@@@@@@@@@@@@@@@@@@                          |\n");
    EXPECT_EQ(json(table)["hist"][2], nlohmann::json::parse(R"({"low":2,"high":3,"count":4})"));
}

TEST(Tables, HistogramsByKey) {
    Row row = counted({tid(7)}, 1);
    row.hist = {{INT64_MIN, -1, 1}};
    Table table{Table::Kind::hist, {"tid"}, "arg0", {row}};
    EXPECT_TRUE(text(table).starts_with("do_work+0x0 [worker] r: arg0 by tid\ntid=7\n(..., 0) ")) << text(table);
    EXPECT_EQ(json(table)["by"][0]["key"], 7);
}

} // namespace
} // namespace ktrace::test
