// The formats for other programs: csv with quotes and intervals, stacks of one name as one line, calls that nest.
#include <cstring>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "export/sinks.h"
#include "tests/unit/output/rows.h"

namespace ktrace::test {
namespace {

using program::counted;
using program::KeyPart;
using program::LocationInfo;
using program::Moment;
using program::Row;
using program::Table;
using program::Tag;

KeyPart text_key(std::string text) {
    KeyPart part;
    part.tag = Tag::string;
    part.text = std::move(text);
    return part;
}

KeyPart stack_key(std::vector<std::uint64_t> addresses) {
    KeyPart part;
    part.tag = Tag::stack;
    part.stack = std::move(addresses);
    return part;
}

/// Addresses of one hundred are one function's.
class Names final : public output::Symbolizer {
    std::vector<output::NamedFrame> name(std::int32_t, std::uint64_t address, bool) override {
        output::NamedFrame frame;
        frame.address = address;
        frame.module = "worker";
        frame.offset = address;
        if (address < 1000) frame.symbol = address < 200 ? "main" : "ns::f;g";
        return {frame};
    }
};

class Exports : public ::testing::Test {
  protected:
    Exports() {
        location.kind = 'r';
        location.symbol = "work";
        location.module = "worker";
    }
    std::string taken() { return std::exchange(writer.buffer(), {}); }
    void add(output::Sink &sink, Table table, std::uint64_t interval = 0) {
        sink.tables({{&location, std::move(table)}}, layout, interval);
    }
    /// A call of thread 7.
    void add_call(output::Sink &sink, std::uint64_t begin_ns, std::uint64_t end_ns) {
        program::RecordHeader header;
        header.moment = Moment::ret;
        header.size = sizeof header;
        header.pid = 5;
        header.tid = 7;
        header.set_name("worker");
        header.time_ns = end_ns;
        header.entry_ns = begin_ns;
        header.duration_ns = 1;
        std::vector<std::byte> bytes(sizeof header);
        std::memcpy(bytes.data(), &header, sizeof header);
        sink.record(bytes, location);
    }

    LocationInfo location;
    output::Writer writer{-1, "nowhere"};
    output::TableLayout layout;
    Names names;
};

TEST_F(Exports, CsvQuotesWhatPartsFields) {
    auto sink = exports::make_csv_sink(writer, nullptr);
    add(*sink, {Table::Kind::count, {"str(arg0)", "comm"}, "", {counted({text_key("a,b"), text_key("c")}, 3)}});
    EXPECT_EQ(taken(), "count,function,module,str(arg0),comm\n3,work,worker,\"a,b\",c\n");
    layout.top = 1;
    add(*sink, {Table::Kind::count,
                {"str(arg0)", "comm"},
                "",
                {counted({text_key("x"), text_key("y")}, 1), counted({text_key("z"), text_key("y")}, 2)}});
    EXPECT_EQ(taken(), "2,work,worker,z,y\n"); // the heading stands already
}

TEST_F(Exports, CsvHasTheNumberOfAnInterval) {
    auto sink = exports::make_csv_sink(writer, nullptr);
    const Table table{Table::Kind::count, {}, "", {counted({}, 4)}};
    add(*sink, table, 1);
    add(*sink, table, 2);
    add(*sink, table);
    EXPECT_EQ(taken(), "interval,count,function,module\n1,4,work,worker\n2,4,work,worker\n0,4,work,worker\n");
}

TEST_F(Exports, CsvOfAHistogramHasALineARange) {
    auto sink = exports::make_csv_sink(writer, nullptr);
    Row row = counted({}, 6);
    row.hist = {{0, 199, 2}, {256, 511, 3}, {512, 999, 1}};
    add(*sink, {Table::Kind::hist, {}, "duration", {row}});
    EXPECT_EQ(taken(),
              "function,module,low,high,count\nwork,worker,0,199,2\nwork,worker,256,511,3\nwork,worker,512,999,1\n");
}

TEST_F(Exports, FoldedStacksOfTheSameFunctionsAreOne) {
    auto sink = exports::make_folded_sink(writer, &names);
    const Table table{Table::Kind::count,
                      {"comm", "stack"},
                      "",
                      {counted({text_key("w"), stack_key({201, 101})}, 3),
                       counted({text_key("w"), stack_key({202, 102})}, 4),
                       counted({text_key("w"), stack_key({0x1234, 101})}, 5)}};
    add(*sink, table, 1); // the last table has all of them
    EXPECT_EQ(taken(), "");
    add(*sink, table);
    EXPECT_EQ(taken(), "w;main;ns::f:g 7\nw;main;worker+0x1234 5\n");
}

TEST_F(Exports, ChromesCallsAreWithinEachOther) {
    auto sink = exports::make_chrome_sink(writer, nullptr, 1000);
    add_call(*sink, 3000, 4000);
    add_call(*sink, 4000, 5000);
    add_call(*sink, 3001, 6000); // their caller, by a clock that is 1 ns late
    add_call(*sink, 7000, 8000);
    sink->end();
    const auto events = nlohmann::json::parse(taken());
    ASSERT_EQ(events.size(), 5U);
    EXPECT_EQ(events[0]["args"]["name"], "worker");
    EXPECT_EQ(events[1]["ts"], 2.0);
    EXPECT_EQ(events[3]["ts"], 2.0);
    EXPECT_EQ(events[3]["dur"], 3.0);
    EXPECT_EQ(events[4]["ts"], 6.0);
    EXPECT_EQ(events[4]["name"], "work");
    EXPECT_EQ(events[4]["args"]["duration_ns"], 1);
}

TEST_F(Exports, ChromesListIsOneWithoutEvents) {
    auto sink = exports::make_chrome_sink(writer, nullptr, 0);
    sink->end();
    EXPECT_EQ(taken(), "[]\n");
}

} // namespace
} // namespace ktrace::test
