// Records through the sinks: the payloads and the objects of the product contract, exactly.
#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "arch/host.h"
#include "make_types.h"
#include "output/sink.h"
#include "output/summary.h"

namespace ktrace::test {
namespace {

using program::Counters;
using program::Field;
using program::LocationInfo;
using program::Moment;
using program::RecordHeader;
using program::Tag;

/// A record, put together node by node.
class RecordOf {
  public:
    explicit RecordOf(Moment moment) {
        header_.moment = moment;
        header_.time_ns = 1'000'000'000'123'456'789;
        header_.pid = 100;
        header_.tid = 101;
        std::strcpy(header_.comm, "worker");
    }
    RecordOf &comm(const char *name) {
        std::strcpy(header_.comm, name);
        return *this;
    }
    RecordOf &took(std::uint64_t ns, std::uint64_t error_ns = 1, std::uint64_t taken_ns = 0) {
        header_.duration_ns = ns;
        header_.entry_ns = header_.time_ns - ns;
        header_.error_ns = error_ns;
        header_.taken_ns = taken_ns;
        return *this;
    }
    template <class... Values> RecordOf &node(Tag tag, const Values &...values) {
        auto bytes = bytes_of(tag, values...);
        nodes_.insert(nodes_.end(), bytes.begin(), bytes.end());
        return *this;
    }
    RecordOf &raw(const value::Type &type, const std::vector<std::byte> &bytes) {
        node(Tag::raw, type.index, static_cast<std::uint32_t>(bytes.size()));
        nodes_.insert(nodes_.end(), bytes.begin(), bytes.end());
        return *this;
    }
    RecordOf &string(std::string_view text, bool truncated = false) {
        node(Tag::string, std::uint64_t{0x1000}, static_cast<std::uint8_t>(truncated),
             static_cast<std::uint32_t>(text.size()));
        auto bytes = chars(text);
        nodes_.insert(nodes_.end(), bytes.begin(), bytes.end());
        return *this;
    }
    std::vector<std::byte> bytes() {
        header_.size = static_cast<std::uint32_t>(sizeof header_ + nodes_.size());
        auto all = bytes_of(header_);
        all.insert(all.end(), nodes_.begin(), nodes_.end());
        return all;
    }

  private:
    RecordHeader header_;
    std::vector<std::byte> nodes_;
};

class Sinks : public ::testing::Test {
  protected:
    void SetUp() override {
        setenv("TZ", "UTC", 1);
        tzset();
        location.probe = 1;
        location.kind = 'k';
        location.symbol = "do_work";
        location.offset = 4;
        location.module = "worker";
        location.types = &types.table;
    }

    std::vector<Field> &fields(Moment moment) { return location.fields[static_cast<std::size_t>(moment)]; }

    std::string text(RecordOf &record) {
        return line(output::make_text_sink(writer, nullptr, {exact_times, coloured}), record);
    }
    std::string json(RecordOf &record) { return line(output::make_json_sink(writer, nullptr), record); }

    std::string payload(RecordOf &record) {
        std::string all = text(record);
        constexpr std::string_view lead = "01:46:40.123456 worker/101 ";
        EXPECT_TRUE(all.starts_with(lead)) << all;
        EXPECT_TRUE(all.ends_with('\n'));
        return all.substr(lead.size(), all.size() - lead.size() - 1);
    }

    Types types;
    LocationInfo location;
    output::Writer writer{-1, "nowhere"};
    bool exact_times = false, coloured = false;

  private:
    std::string line(std::unique_ptr<output::Sink> sink, RecordOf &record) {
        sink->record(record.bytes(), location);
        return std::exchange(writer.buffer(), {});
    }
};

TEST_F(Sinks, ProbeWithPrintedValues) {
    fields(Moment::pre) = {{Field::Role::print, "args.n"},
                           {Field::Role::print, "arg1"},
                           {Field::Role::print, "args.n + 1"},
                           {Field::Role::print, "args.p->next"}};
    RecordOf record(Moment::pre);
    record.raw(types.integer(4, true), bytes_of(3)).node(Tag::hex, std::uint64_t{0x7ffd0000});
    record.node(Tag::sint, std::int64_t{4}).node(Tag::fault, std::uint64_t{0x10});
    EXPECT_EQ(payload(record), "do_work+0x4 n=3 arg1=0x7ffd0000 args.n + 1=4 p->next=<fault 0x10>");
    EXPECT_EQ(
        json(record),
        R"({"type":"pre","time_ns":1000000000123456789,"pid":100,"tid":101,"comm":"worker","probe":1,"symbol":"do_work",)"
        R"("offset":4,"module":"worker","values":{"args.n":3,"arg1":"0x7ffd0000","args.n + 1":4,)"
        R"("args.p->next":{"fault":"0x10"}}})"
        "\n");
}

TEST_F(Sinks, EntryWithTypedArguments) {
    location.kind = 'j';
    location.offset = 0;
    value::Type &i = types.integer(4, true);
    value::Type &point = types.structure({member("x", i, 0), member("y", i, 4)}, 8);
    fields(Moment::entry) = {
        {Field::Role::argument, "n"}, {Field::Role::argument, "name"}, {Field::Role::argument, "p"}};
    RecordOf record(Moment::entry);
    record.raw(i, bytes_of(3)).string("alice").raw(point, bytes_of(1, 2));
    EXPECT_EQ(payload(record), R"(do_work(n=3, name="alice", p={.x=1, .y=2}))");
    EXPECT_NE(json(record).find(R"("args":{"n":3,"name":"alice","p":{"x":1,"y":2}}})"), std::string::npos);
}

TEST_F(Sinks, ReturnOfAValue) {
    location.kind = 'r';
    location.offset = 0;
    value::Type &i = types.integer(4, true);
    fields(Moment::ret) = {{Field::Role::argument, "n"}, {Field::Role::retval, "retval"}};
    RecordOf record(Moment::ret);
    record.took(1234, 500).raw(i, bytes_of(3)).raw(i, bytes_of(42));
    EXPECT_EQ(payload(record), "do_work(n=3) returned 42 and took ~1.234 us");
    EXPECT_EQ(
        json(record),
        R"({"type":"return","time_ns":1000000000123456789,"pid":100,"tid":101,"comm":"worker","probe":1,)"
        R"("symbol":"do_work","offset":0,"module":"worker","retval":42,"entry_ns":1000000000123455555,"duration_ns":1234,"error_ns":500,"args":{"n":3}})"
        "\n");
}

TEST_F(Sinks, AResultOfNoTypeThatMayBeNegativeIsShownBothWays) {
    location.kind = 'r';
    location.offset = 0;
    fields(Moment::ret) = {{Field::Role::retval, "retval"}};
    auto shown = [&](std::int64_t result) {
        RecordOf record(Moment::ret);
        record.took(12'300).node(Tag::sint, result);
        return payload(record);
    };
    EXPECT_EQ(shown(4294967295), "do_work() returned 4294967295|-1 and took 12.30 us");
    EXPECT_EQ(shown(2147483648), "do_work() returned 2147483648|-2147483648 and took 12.30 us");
    for (std::int64_t result : {std::int64_t{2147483647}, std::int64_t{4294967296}, std::int64_t{-1}})
        EXPECT_EQ(shown(result), "do_work() returned " + std::to_string(result) + " and took 12.30 us");
}

TEST_F(Sinks, ErrnoStandsBehindAResultThatMeansOne) {
    location.kind = 'r';
    location.offset = 0;
    value::Type &i = types.integer(4, true);
    fields(Moment::ret) = {{Field::Role::retval, "retval"}, {Field::Role::error_number, "errno"}};
    RecordOf failed(Moment::ret);
    failed.took(12'300).raw(i, bytes_of(-1)).node(Tag::sint, std::int64_t{ENOENT});
    EXPECT_EQ(payload(failed), "do_work() returned -1 ENOENT and took 12.30 us");
    EXPECT_NE(json(failed).find(R"("retval":-1,"errno":"ENOENT","entry_ns")"), std::string::npos);
    RecordOf done(Moment::ret);
    done.took(12'300).raw(i, bytes_of(3)).node(Tag::sint, std::int64_t{0});
    EXPECT_EQ(payload(done), "do_work() returned 3 and took 12.30 us");
    EXPECT_EQ(json(done).find("errno"), std::string::npos);
}

TEST_F(Sinks, ValuesStandInPlaceOfTheArguments) {
    location.kind = 'r';
    location.offset = 0;
    fields(Moment::ret) = {
        {Field::Role::retval, "retval"}, {Field::Role::print, "args.n"}, {Field::Role::print, "tid"}};
    RecordOf record(Moment::ret);
    record.took(12'300)
        .node(Tag::sint, std::int64_t{42})
        .node(Tag::sint, std::int64_t{3})
        .node(Tag::sint, std::int64_t{7});
    EXPECT_EQ(payload(record), "do_work(n=3, tid=7) returned 42 and took 12.30 us");
    const std::string object = json(record);
    EXPECT_NE(object.find(R"("values":{"args.n":3,"tid":7})"), std::string::npos) << object;
    EXPECT_EQ(object.find("args\":{"), std::string::npos) << object;
}

TEST_F(Sinks, ValuesAreShortUnlessAllIsAskedFor) {
    fields(Moment::pre) = {{Field::Role::print, "v"}};
    const value::Type &point = types.structure({member("x", types.integer(4, true), 0)}, 4);
    RecordOf pointer(Moment::pre);
    pointer.node(Tag::pointee, std::uint64_t{0x7f00}, point.index, std::uint32_t{4}, std::int32_t{5});
    EXPECT_EQ(payload(pointer), "do_work+0x4 v=0x7f00");
    RecordOf text(Moment::pre);
    text.string(std::string(199, 'a') + "\xc3\xa9");
    EXPECT_EQ(payload(text), "do_work+0x4 v=\"" + std::string(199, 'a') + "...");
    RecordOf list(Moment::pre);
    const value::Type &ints = types.array(types.integer(2, true), 12);
    list.raw(ints, std::vector<std::byte>(24));
    EXPECT_EQ(payload(list), "do_work+0x4 v=[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, ...]");
    location.full = true;
    EXPECT_EQ(payload(pointer), "do_work+0x4 v={.x=5}");
    EXPECT_EQ(payload(text), "do_work+0x4 v=\"" + std::string(199, 'a') + "\xc3\xa9\"");
    EXPECT_EQ(payload(list), "do_work+0x4 v=[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]");
}

TEST_F(Sinks, ReturnsWithTimesThatAreNotKnown) {
    location.kind = 'r';
    location.result_void = true;
    const auto took = [this](std::uint64_t ns, std::uint64_t error_ns, std::uint64_t taken_ns) {
        RecordOf record(Moment::ret);
        return payload(record.took(ns, error_ns, taken_ns));
    };
    EXPECT_EQ(took(12'300, 1000, 4000), "do_work() returned and took 12.30 us");
    EXPECT_EQ(took(999, 1000, 0), "do_work() returned and took <1 us");
    EXPECT_EQ(took(12'300, 1000, 12'300), "do_work() returned and took ~12.30 us");
    EXPECT_EQ(took(12'300, 0, 0), "do_work() returned and took ~12.30 us");
    exact_times = true;
    EXPECT_EQ(took(12'300, 1000, 0), "do_work() returned and took 12300 ns");
    RecordOf unknown(Moment::ret);
    EXPECT_EQ(json(unknown.took(12'300, 0)).find("error_ns"), std::string::npos);
}

TEST_F(Sinks, ReturnOfNothing) {
    location.kind = 'r';
    location.result_void = true;
    RecordOf record(Moment::ret);
    record.took(7);
    EXPECT_EQ(payload(record), "do_work() returned and took 7 ns");
    EXPECT_EQ(json(record).find("retval"), std::string::npos);
}

TEST_F(Sinks, StringsCannotSteerTheTerminal) {
    fields(Moment::pre) = {{Field::Role::print, "str(arg0)"}, {Field::Role::print, "arg0"}};
    RecordOf record(Moment::pre);
    record.comm("a\x1b]0;b\n")
        .string("\x1b[2J\x7f\xc2\x9b"
                "caf\xc3\xa9",
                true)
        .node(Tag::unavailable);
    EXPECT_EQ(text(record),
              "01:46:40.123456 a\\x1b]0;b\\n/101 do_work+0x4 str(arg0)=\"\\x1b[2J\\x7f\\xc2\\x9bcaf\xc3\xa9\"... "
              "arg0=<optimized out>\n");
    for (char c : json(record)) EXPECT_FALSE(static_cast<unsigned char>(c) < 0x20 && c != '\n');
}

TEST_F(Sinks, EveryLineIsValidJson) {
    fields(Moment::post) = {{Field::Role::print, "a\"\\b"}, {Field::Role::print, "b"}, {Field::Role::print, "c"},
                            {Field::Role::print, "d"},      {Field::Role::regs, ""},   {Field::Role::stack, ""}};
    arch::Host::Registers registers{};
    RecordOf record(Moment::post);
    record.string(std::string("\0\x01\xff\xc3\"\\/", 7))
        .node(Tag::na)
        .node(Tag::floating, std::nan(""))
        .node(Tag::boolean, std::uint8_t{1});
    record.node(Tag::registers, static_cast<std::uint32_t>(sizeof registers), registers);
    record.node(Tag::stack, std::uint32_t{2}, std::uint64_t{0x10}, std::uint64_t{0x20});
    location.symbol.clear();
    location.address = 0x55aa;
    auto parsed = nlohmann::json::parse(json(record));
    EXPECT_EQ(parsed["type"], "post");
    EXPECT_EQ(parsed["address"], "0x55aa");
    EXPECT_EQ(parsed["values"]["a\"\\b"], std::string("\0\x01\\xff\\xc3\"\\/", 13));
    EXPECT_TRUE(parsed["values"]["b"].is_null());
    EXPECT_TRUE(parsed["values"]["c"].is_null());
    EXPECT_EQ(parsed["values"]["d"], true);
    EXPECT_EQ(parsed["stack"][1]["addr"], "0x20");
    EXPECT_EQ(parsed["regs"].size(), static_cast<std::size_t>(std::count_if(
                                         arch::Host::registers().begin(), arch::Host::registers().end(),
                                         [](auto &r) { return r.file == arch::RegisterInfo::File::general; })));
    EXPECT_TRUE(payload(record).starts_with("0x55aa post "));
}

TEST_F(Sinks, DamagedRecordsAreNotRead) {
    fields(Moment::pre) = {{Field::Role::print, "a"}, {Field::Role::print, "b"}};
    RecordOf record(Moment::pre);
    record.node(Tag::sint, std::int64_t{1}).node(Tag::string, std::uint64_t{0}, std::uint8_t{0}, std::uint32_t{1000});
    EXPECT_EQ(payload(record), "do_work+0x4 a=1");
    auto sink = output::make_text_sink(writer, nullptr, {exact_times, coloured});
    auto bytes = record.bytes();
    bytes.resize(bytes.size() - 1);
    sink->record(bytes, location);
    EXPECT_EQ(writer.buffer(), "");
}

TEST_F(Sinks, OnATerminalWhatIsInFrontOfAnEventIsFaintAndItsNameBold) {
    coloured = true;
    RecordOf record(Moment::pre);
    EXPECT_EQ(text(record), "\x1b[2m01:46:40.123456 worker/101\x1b[0m \x1b[1mdo_work\x1b[0m+0x4\n");
    program::Row row;
    row.count = 3;
    const std::vector<output::FunctionTable> functions{{&location, {program::Table::Kind::count, {}, "", {row}}}};
    auto sink = output::make_text_sink(writer, nullptr, {exact_times, coloured});
    sink->tables(functions, {}, 0);
    EXPECT_EQ(writer.buffer(), "\x1b[1m   count  function [worker]\x1b[0m\n       3  do_work+0x4\n");
}

TEST_F(Sinks, TablesOfIntervalsReplaceEachOtherOnATerminal) {
    program::Row row;
    row.count = 3;
    const std::vector<output::FunctionTable> tables{{&location, {program::Table::Kind::count, {}, "", {row}}}};
    const std::string table = "   count  function [worker]\n       3  do_work+0x4\n";
    output::TableLayout layout;
    layout.width = 80;
    layout.height = 24;
    for (bool in_place : {false, true}) {
        layout.in_place = in_place;
        auto sink = output::make_text_sink(writer, nullptr, {});
        sink->tables(tables, layout, 1);
        EXPECT_EQ(std::exchange(writer.buffer(), {}), table);
        sink->tables(tables, layout, 2);
        EXPECT_EQ(std::exchange(writer.buffer(), {}), (in_place ? "\x1b[2A\x1b[J" : "\n") + table);
        sink->tables(tables, layout, 0);
        EXPECT_EQ(std::exchange(writer.buffer(), {}), (in_place ? "\x1b[2A\x1b[J" : "\n") + table);
    }
}

TEST_F(Sinks, TheEndIsOneLine) {
    output::Totals totals;
    totals.counters = {15204, 15004, 197, 0, 1, 2, 0};
    totals.counters.in_flight = 1;
    totals.hit = 36;
    totals.places = 340;
    totals.ns = 10'000'000'000;
    EXPECT_EQ(output::totals_text(totals),
              "ktrace: 15204 hits at 36 of 340 places in 10.0 s: 15004 events, 197 filtered, "
              "1 in flight, 2 lost\n");
    totals.counters = {1, 1, 0, 0, 0, 0, 0};
    totals.hit = totals.places = 1;
    EXPECT_EQ(output::totals_text(totals), "ktrace: 1 hit at 1 of 1 place in 10.0 s: 1 event, none lost\n");
    totals.injects = true;
    totals.counters.injected = 1;
    EXPECT_TRUE(output::totals_text(totals).ends_with(": 1 event, none lost; 1 injected\n"));
    totals.counters.injected = 0;
    EXPECT_TRUE(output::totals_text(totals).ends_with(
        "; 0 injected\nktrace: nothing was injected: no hit passed the filters and was selected\n"));
    totals.counters = {};
    EXPECT_TRUE(
        output::totals_text(totals).ends_with("; 0 injected\nktrace: nothing was injected: no place was hit\n"));
}

TEST_F(Sinks, LostHitsHaveTheirReasons) {
    location.kind = 'r';
    location.offset = 0;
    Counters counters{10, 5, 1, 0, 1, 2, 0};
    counters.in_flight = 1;
    EXPECT_EQ(output::lost_text(location, counters, 64),
              "ktrace: do_work [worker]: 1 missed (more than 64 calls in flight), 1 unreturned (longjmp or an "
              "exception). Missed probing 1 instances of do_work\n");
    counters = {10, 5, 0, 0, 0, 2, 3};
    counters.ended = 2;
    EXPECT_EQ(output::lost_text(location, counters, 64),
              "ktrace: do_work [worker]: 2 unreturned (their thread ended), 3 dropped (not written)\n");
    counters = {10, 5, 0, 0, 0, 5, 0};
    counters.left = 4;
    EXPECT_EQ(
        output::lost_text(location, counters, 64),
        "ktrace: do_work [worker]: 4 unreturned (left by a jump to another function), 1 unreturned (longjmp or an "
        "exception)\n");
    counters = {1, 0, 0, 0, 1, 0, 0};
    counters.unfollowed = 1;
    EXPECT_EQ(
        output::lost_text(location, counters, 64),
        "ktrace: do_work [worker]: 1 missed (no way to see their return). Missed probing 1 instances of do_work\n");
}

TEST_F(Sinks, SummaryAddsUp) {
    location.kind = 'r';
    location.offset = 0;
    Counters counters{9, 5, 1, 0, 2, 1, 0};
    EXPECT_EQ(
        output::summary_text(location, counters),
        "do_work+0x0 [worker] r: 9 hits = 5 events + 1 filtered + 0 unselected + 2 missed + 1 unreturned + 0 dropped\n"
        "Missed probing 2 instances of do_work\n");
    output::make_json_sink(writer, nullptr)->summary(location, counters, nullptr);
    EXPECT_EQ(
        writer.buffer(),
        R"({"type":"summary","probe":1,"kind":"r","symbol":"do_work","offset":0,"module":"worker","hits":9,"events":5,)"
        R"("filtered":1,"unselected":0,"missed":2,"unreturned":1,"dropped":0})"
        "\n");
}

TEST_F(Sinks, SummaryOfAProbeHasNoMissedLine) {
    EXPECT_EQ(output::summary_text(location, Counters{}).find("Missed"), std::string::npos);
}

} // namespace
} // namespace ktrace::test
