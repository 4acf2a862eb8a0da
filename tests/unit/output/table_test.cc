// Tables of --count, --stats and --hist: their layout by the width, what is left out, their JSON.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "make_types.h"
#include "output/table.h"
#include "output/table_json.h"
#include "output/table_lines.h"
#include "tests/unit/output/rows.h"

namespace ktrace::test {
namespace {

using program::counted;
using program::KeyPart;
using program::Number;
using program::Row;
using program::Table;
using program::Tag;

program::LocationInfo function(std::string symbol, std::string module = "worker", char kind = 'r') {
    program::LocationInfo made;
    made.kind = kind;
    made.probe = 1;
    made.symbol = std::move(symbol);
    made.module = std::move(module);
    return made;
}

Number sint(std::int64_t value) { return {Number::Kind::sint, static_cast<std::uint64_t>(value)}; }
Number nanoseconds(std::uint64_t value) { return {Number::Kind::uint, value}; }

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

/// A row of durations; all figures but the total are given as the others follow from them.
Row timed(std::uint64_t count, double avg, std::uint64_t least, std::uint64_t p50, std::uint64_t p99,
          std::uint64_t most, double error) {
    Row row = counted({}, count);
    program::Stats &stats = row.stats;
    stats.count = count;
    stats.total = stats.self = avg * static_cast<double>(count);
    stats.avg = avg;
    stats.min = nanoseconds(least);
    stats.p50 = nanoseconds(p50);
    stats.p90 = nanoseconds(p50 * 2);
    stats.p99 = nanoseconds(p99);
    stats.max = nanoseconds(most);
    stats.has_percentiles = true;
    stats.errors = {error, error, error, error * 20};
    stats.min_error = error;
    stats.max_error = error * 20;
    return row;
}

/// Functions with one table each.
class Tables : public ::testing::Test {
  protected:
    void add(program::LocationInfo location, Table table) {
        locations.push_back(std::make_unique<program::LocationInfo>(std::move(location)));
        functions.push_back({locations.back().get(), std::move(table)});
    }
    void add_times(const char *symbol, Row row) {
        add(function(symbol, "redis-server"), {Table::Kind::stats, {}, "duration", {std::move(row)}});
    }
    void add_redis() {
        add_times("pingCommand", timed(4112, 90, 80, 90, 4000, 61'000, 200));
        add_times("getCommand", timed(15204, 3410, 1020, 3100, 21'300, 402'000, 180));
        Row rough = timed(37, 212'000, 180'000, 207'000, 311'000, 311'000, 180);
        rough.stats.self = 7'770'000;
        rough.stats.taken = rough.stats.taken_of_totals = 8'000'000;
        add_times("geosearchGenericCommand", std::move(rough));
    }
    std::string text() {
        std::string out;
        output::append_tables(out, functions, layout, nullptr);
        return out;
    }
    std::vector<nlohmann::json> rows() {
        std::string out;
        output::append_rows_json(out, functions, layout.sort, interval, nullptr);
        std::vector<nlohmann::json> all;
        for (std::size_t at = 0; at < out.size(); at = out.find('\n', at) + 1)
            all.push_back(nlohmann::json::parse(out.substr(at, out.find('\n', at) - at)));
        return all;
    }
    nlohmann::json summary() {
        std::string out;
        output::append_table_json(out, *functions[0].location, functions[0].table, nullptr);
        EXPECT_TRUE(out.starts_with(',')) << out;
        return nlohmann::json::parse('{' + out.substr(1) + '}');
    }

    std::vector<std::unique_ptr<program::LocationInfo>> locations;
    std::vector<output::FunctionTable> functions;
    output::TableLayout layout;
    std::uint64_t interval = 0;
};

TEST_F(Tables, AllFunctionsAreOneTable) {
    add_redis();
    const char *whole =
        "   total     self    count      avg      min      p50      p90      p99      max  function [redis-server]\n"
        "  51.8ms   51.8ms    15204   3.41us   1.02us   3.10us   6.20us   21.3us    402us  getCommand\n"
        " ~7.84ms  ~7.77ms       37   ~212us    180us    207us    414us    311us    311us  geosearchGenericCommand\n"
        "  <822us   <822us     4112   <200ns   <200ns   <200ns   <200ns     <5us   61.0us  pingCommand\n";
    EXPECT_EQ(text(), whole);
    layout.width = 120;
    EXPECT_EQ(text(), whole);
}

TEST_F(Tables, ColumnsGoWhereTheWidthIsShort) {
    add_redis();
    layout.width = 80;
    EXPECT_EQ(text(), "   total     self    count      avg      p99      max  function [redis-server]\n"
                      "  51.8ms   51.8ms    15204   3.41us   21.3us    402us  getCommand\n"
                      " ~7.84ms  ~7.77ms       37   ~212us    311us    311us  geosearchGenericCommand\n"
                      "  <822us   <822us     4112   <200ns     <5us   61.0us  pingCommand\n");
    layout.width = 50;
    EXPECT_EQ(text(), "   total    count      avg      p99      max  function\n"
                      "  51.8ms    15204   3.41us   21.3us    402us  get..and\n"
                      " ~7.84ms       37   ~212us    311us    311us  geo..and\n"
                      "  <822us     4112   <200ns     <5us   61.0us  pin..and\n");
}

TEST_F(Tables, TheRestIsOneRow) {
    add_redis();
    layout.top = 1;
    EXPECT_EQ(
        text(),
        "   total     self    count      avg      min      p50      p90      p99      max  function [redis-server]\n"
        "  51.8ms   51.8ms    15204   3.41us   1.02us   3.10us   6.20us   21.3us    402us  getCommand\n"
        "  8.21ms   8.14ms     4149   1.98us                                               2 more\n");
}

TEST_F(Tables, AreSortedByTheColumnThatWasAskedFor) {
    add_redis();
    const std::tuple<const char *, const char *> rows_of[] = {{"count", "getCommand"},
                                                              {"avg", "geosearchGenericCommand"},
                                                              {"max", "getCommand"},
                                                              {"p50", "geosearchGenericCommand"},
                                                              {"function", "geosearchGenericCommand"}};
    for (const auto &[column, first] : rows_of) {
        layout.sort = column;
        EXPECT_EQ(rows()[0]["symbol"], first) << column;
        EXPECT_TRUE(output::is_sort_column(column));
    }
    EXPECT_FALSE(output::is_sort_column("size"));
}

TEST_F(Tables, CountsByKeys) {
    const std::vector<std::string> by{"args.op", "comm"};
    KeyPart nothing;
    add(function("submit"), {Table::Kind::count, by, "", {counted({name("READ"), name("a\x1b")}, 9120)}});
    add(function("sync"), {Table::Kind::count, by, "", {counted({nothing, name("bio_aof")}, 12)}});
    EXPECT_EQ(text(), "   count  function  args.op  comm\n"
                      "    9120  submit    READ     a\\x1b\n"
                      "      12  sync      -        bio_aof\n");
    EXPECT_EQ(rows()[0], nlohmann::json::parse(R"({"type":"row","probe":1,"kind":"r","symbol":"submit","offset":0,)"
                                               R"("module":"worker","key":["READ","a\u001b"],"count":9120})"));
    EXPECT_EQ(summary(), nlohmann::json::parse(R"({"by":[{"key":["READ","a\u001b"],"count":9120}]})"));
}

TEST_F(Tables, NamesSayWhatDiffers) {
    add(function("work", "a", 'k'), {Table::Kind::count, {}, "", {counted({}, 3)}});
    add(function("work", "a", 'r'), {Table::Kind::count, {}, "", {counted({}, 2)}});
    add(function("other", "b", 'r'), {Table::Kind::count, {}, "", {counted({}, 1)}});
    EXPECT_EQ(text(), "   count  function\n"
                      "       3  work (-k) [a]\n"
                      "       2  work (-r) [a]\n"
                      "       1  other (-r) [b]\n");
    program::LocationInfo place = function("f");
    place.offset = 4;
    EXPECT_EQ(output::function_text(place, false, false), "f+0x4");
    place.offset = 0;
    place.which = "f(int)";
    EXPECT_EQ(output::function_text(place, false, false), "f(int)");
    place.which = "at a.c:7";
    EXPECT_EQ(output::function_text(place, false, true), "f at a.c:7 [worker]");
}

TEST_F(Tables, LongNamesAreCutInTheMiddle) {
    EXPECT_EQ(output::cut_in_the_middle("geosearchGenericCommand", 15), "geosear..ommand");
    EXPECT_EQ(output::cut_in_the_middle("short", 5), "short");
}

TEST_F(Tables, FormsAreTablesOfTheirOwn) {
    add(function("f"), {Table::Kind::count, {}, "", {counted({}, 3)}});
    Row row = counted({}, 4);
    row.stats.count = 4;
    row.stats.total = 10;
    row.stats.avg = 2.5;
    row.stats.min = sint(1);
    row.stats.max = {Number::Kind::uint, ~std::uint64_t{0}};
    add(function("g"), {Table::Kind::stats, {}, "args.n", {row}});
    EXPECT_EQ(text(), "   count  function [worker]\n"
                      "       3  f\n"
                      "\n"
                      "   total    count      avg      min      p50      p90      p99                  max  function "
                      "[worker]  (args.n)\n"
                      "      10        4     2.50        1        -        -        - 18446744073709551615  g\n"
                      "  percentiles are not known of 1 row: all tables together have used up their memory\n");
    EXPECT_EQ(rows()[1]["stats"],
              nlohmann::json::parse(R"({"count":4,"total":10,"avg":2.5,"min":1,"max":18446744073709551615})"));
}

TEST_F(Tables, TimesAsJsonHaveTheirErrors) {
    add_redis();
    EXPECT_EQ(rows()[2]["stats"],
              nlohmann::json::parse(R"({"count":4112,"total":370080,"self":370080,"avg":90,"min":80,"max":61000,)"
                                    R"("p50":90,"p90":180,"p99":4000,"error":{"total":822400,"self":822400,"avg":200,)"
                                    R"("min":200,"max":5000,"p50":200,"p90":200,"p99":5000}})"));
    EXPECT_FALSE(rows()[0].contains("interval"));
    interval = 3;
    EXPECT_EQ(rows()[0]["interval"], 3);
}

TEST_F(Tables, FiguresOfNoHitAreLeftOut) {
    add(function("f"), {Table::Kind::stats, {}, "args.n", {}});
    EXPECT_EQ(text(), "");
    EXPECT_TRUE(rows().empty());
    EXPECT_EQ(summary(), nlohmann::json::parse(R"({"stats":{"count":0}})"));
    Row row = counted({}, 3);
    row.unread = 2;
    row.nans = 1;
    functions[0].table.rows = {row};
    EXPECT_EQ(text(), "   total    count      avg      min      p50      p90      p99      max  function [worker]  "
                      "(args.n)\n"
                      "       -        0        -        -        -        -        -        -  f\n"
                      "  2 more could not be read\n"
                      "  1 more was NaN\n");
}

TEST_F(Tables, KeysBeyondTheRoomAreOthers) {
    Table table{Table::Kind::count, {"tid"}, "", {counted({tid(7)}, 5)}};
    Row others = counted({}, 30);
    others.other = true;
    table.rows.push_back(others);
    add(function("f"), table);
    EXPECT_EQ(text(), "   count  function  tid\n"
                      "       5  f         7\n"
                      "      30  f         (others)\n");
    EXPECT_TRUE(rows()[1]["key"].is_null());
}

TEST_F(Tables, TypedKeysAreAsInEvents) {
    Types types;
    const value::Type &type = types.array(types.integer(2, true), 3);
    program::LocationInfo where = function("f");
    where.types = &types.table;
    KeyPart key;
    key.tag = Tag::raw;
    key.type = type.index;
    key.text = std::string("\1\0\xff\xff\3\0", 6);
    add(where, {Table::Kind::count, {"args.a"}, "", {counted({key}, 5)}});
    EXPECT_EQ(text(), "   count  function  args.a\n"
                      "       5  f         [1, -1, 3]\n");
    EXPECT_EQ(rows()[0]["key"], nlohmann::json::parse("[1,-1,3]"));
}

/// Names 0x10 and 0x20.
class Named : public output::Symbolizer {
    std::vector<output::NamedFrame> name(std::int32_t, std::uint64_t address, bool) override {
        output::NamedFrame frame;
        frame.symbol = address == 0x10 ? "malloc" : "zmalloc";
        frame.offset = address - 0x10;
        frame.module = address == 0x10 ? "libc.so.6" : "redis-server";
        if (address != 0x10) frame.file = "zmalloc.c", frame.line = 102;
        return {frame};
    }
};

TEST_F(Tables, StacksAreBlocks) {
    KeyPart stack;
    stack.tag = Tag::stack;
    stack.stack = {0x10, 0x20};
    add(function("malloc"), {Table::Kind::count, {"stack(2)"}, "", {counted({stack}, 81234)}});
    Named names;
    std::string out;
    output::append_tables(out, functions, layout, &names);
    EXPECT_EQ(out, "   81234  malloc+0x0 [libc.so.6]\n"
                   "          zmalloc+0x10 [redis-server] zmalloc.c:102\n");
    functions[0].table.by = {"comm", "stack(2)"};
    functions[0].table.rows[0].key = {name("redis"), stack};
    out.clear();
    output::append_tables(out, functions, layout, &names);
    EXPECT_EQ(out, "   81234  redis  malloc+0x0 [libc.so.6]\n"
                   "                 zmalloc+0x10 [redis-server] zmalloc.c:102\n");
}

Row of_buckets(std::vector<program::Bucket> hist) {
    Row row;
    for (const program::Bucket &bucket : hist) row.count += bucket.count;
    row.hist = std::move(hist);
    return row;
}

class Histograms : public Tables {
  protected:
    void add_hist(const char *symbol, Row row) {
        add(function(symbol), {Table::Kind::hist, {}, "duration", {std::move(row)}});
    }
    void add_three() {
        add_hist("setCommand", of_buckets({{1000, 1999, 820}, {2000, 3999, 7810}}));
        add_hist("getCommand",
                 of_buckets({{0, 199, 402}, {1000, 1999, 9120}, {2000, 3999, 4011}, {64'000, 127'999, 1}}));
        add_hist("hgetallCommand", of_buckets({{64'000, 127'999, 61}}));
    }
};

TEST_F(Histograms, HaveCommonRows) {
    add_three();
    for (std::size_t width : {0U, 80U, 120U}) {
        layout.width = width;
        EXPECT_EQ(text(), "                 getCommand           setCommand           hgetallCommand\n"
                          "<200ns              402 @\n"
                          "[1us, 2us)         9120 @@@@@@@@@@@@     820 @\n"
                          "[2us, 4us)         4011 @@@@@           7810 @@@@@@@@@@@@\n"
                          "[64us, 128us)         1 .                                      61 @@@@@@@@@@@@\n");
    }
}

TEST_F(Histograms, OneAloneHasALongBar) {
    add_hist("getCommand", of_buckets({{1000, 1999, 9120}, {2000, 3999, 4011}}));
    layout.width = 40;
    EXPECT_EQ(text(), "                 getCommand\n"
                      "[1us, 2us)         9120 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|\n"
                      "[2us, 4us)         4011 |@@@@@@@@@@@@@@@@@@                      |\n");
}

TEST_F(Histograms, ShowWhatTheWidthHasRoomFor) {
    add_three();
    add_hist("lpushCommand", of_buckets({{1000, 1999, 5}}));
    layout.width = 80;
    const std::string two = text();
    EXPECT_TRUE(two.starts_with("                 getCommand           setCommand           2 more\n")) << two;
    EXPECT_NE(two.find("\n[1us, 2us)         9120 @@@@@@@@@@@@     820 @                  5 @\n"), two.npos) << two;
    layout.top = 1;
    EXPECT_TRUE(text().starts_with("                 getCommand           3 more\n")) << text();
    layout.width = 0;
    layout.top.reset();
    EXPECT_TRUE(text().find("lpushCommand") != std::string::npos) << text();
}

TEST_F(Histograms, OfOtherValuesAreByPowersOfTwo) {
    Row row = of_buckets({{INT64_MIN, INT64_MIN, 1}, {0, 0, 1}, {2, 3, 4}, {1024, 2047, 2}});
    row.key = {tid(7)};
    add(function("f"), {Table::Kind::hist, {"tid"}, "arg0", {row}});
    const std::string out = text();
    EXPECT_TRUE(out.starts_with("                 7\n")) << out;
    EXPECT_NE(out.find("\n[0]                   1 |@@@@@@@@@@ "), out.npos) << out;
    EXPECT_NE(out.find("\n[2, 4)                4 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|\n"), out.npos) << out;
    EXPECT_NE(out.find("\n[1K, 2K)              2 |@@@@@@@@@@@@@@@@@@@@  "), out.npos) << out;
}

TEST_F(Histograms, AsJsonHaveWhatIsBelow) {
    add_hist("f", of_buckets({{0, 199, 4}, {1000, 1999, 9}}));
    EXPECT_EQ(rows()[0]["hist"],
              nlohmann::json::parse(R"([{"low":0,"high":199,"count":4},{"low":1000,"high":1999,"count":9}])"));
}

} // namespace
} // namespace ktrace::test
