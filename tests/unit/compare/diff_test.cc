// Two runs beside each other: what is read of their files, the table to the letter, verdicts.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "compare/diff.h"
#include "compare/json.h"

namespace ktrace::test {
namespace {

using compare::RowKey;

TEST(Compare, Json) {
    auto json = compare::parse_json(R"( {"a":[1,-2.5e1,null,true],"b":"x\n\u00e9\ud83d\ude00\"","c":{"d":{}}} )");
    ASSERT_TRUE(json);
    EXPECT_EQ(json->find("a")->list.size(), 4U);
    EXPECT_EQ(json->find("a")->list[1].number, -25.0);
    EXPECT_EQ(json->text_of("b"), "x\n\u00e9\U0001f600\"");
    EXPECT_EQ(json->find("none"), nullptr);
    for (const char *wrong :
         {"", "{", "{\"a\"}", "[1,]", "\"a", "nul", "+1", "nan", "1 2", "{\"a\":1,}", "\"\\u12\"", "\"\\x\""})
        EXPECT_FALSE(compare::parse_json(wrong)) << wrong;
    EXPECT_FALSE(compare::parse_json(std::string(200, '[') + std::string(200, ']')));
}

/// As ktrace writes it.
std::string timed(const char *symbol, int count, long total, long p99, const char *more = "") {
    return R"({"type":"row","probe":1,"kind":"r","symbol":")" + std::string(symbol) +
           R"(","offset":0,"module":"redis-server")" + more + R"(,"stats":{"count":)" + std::to_string(count) +
           ",\"total\":" + std::to_string(total) + ",\"self\":" + std::to_string(total) +
           ",\"p99\":" + std::to_string(p99) + R"(,"error":{"total":1000,"p99":500}}})" + "\n";
}

compare::Run run_of(const std::string &text) {
    auto run = compare::parse_run(text, "a.json");
    EXPECT_TRUE(run) << run.error().message;
    return run ? *run : compare::Run();
}

TEST(Compare, RowsOfAFile) {
    const compare::Run run =
        run_of(R"({"type":"return","symbol":"f","module":"m"})"
               "\n"
               R"({"type":"row","interval":1,"kind":"j","symbol":"f","module":"m","count":7})"
               "\n\n"
               R"({"type":"row","kind":"j","symbol":"f","offset":4,"module":"m","key":[5,"x"],"count":7})"
               "\n"
               R"x({"type":"row","kind":"j","symbol":"g","offset":0,"module":"m","which":"g(int)",)x"
               R"("key":[{"addr":"0x1","symbol":"g"},{"addr":"0x2","symbol":"main"}],)"
               R"("hist":[{"low":0,"high":1,"count":2},{"low":2,"high":3,"count":3}]})"
               "\n"
               R"x({"type":"summary","symbol":"g","which":"g(int)","module":"m","missed":2,"dropped":1})x");
    ASSERT_EQ(run.rows.size(), 2U);
    EXPECT_EQ(run.rows.at({"m", "f+0x4", "j", "5  x"}).figures.at("count").value, 7);
    EXPECT_EQ(run.rows.at({"m", "g(int)", "j", "g < main"}).figures.at("count").value, 5);
    EXPECT_EQ(run.lost.at({"m", "g(int)"}), 3U);
    EXPECT_FALSE(compare::parse_run("{}\n[]\n", "a.json"));
    EXPECT_EQ(compare::parse_run("{}\n[]\n", "a.json").error().message, "a.json: line 2 is no JSON object");
    EXPECT_EQ(compare::parse_run("{}\n", "a.json").error().message, "a.json has no row of a table");
}

TEST(Compare, TheTable) {
    const compare::Run old =
        run_of(timed("getCommand", 15204, 51'800'000, 21'300) + timed("goneCommand", 1, 2'000'000, 2'000'000) +
               timed("pingCommand", 10, 100'000, 9'000));
    const compare::Run now = run_of(timed("getCommand", 15204, 61'200'000, 35'100) +
                                    timed("newCommand", 2, 1'000'000, 600'000) + timed("pingCommand", 10, 90'000, 400));
    const auto rows = compare::diff(old, now);
    EXPECT_EQ(compare::text_of(rows), "   total      old   change    count      old      p99      old  function\n"
                                      "  61.2ms   51.8ms     +18%    15204    15204   35.1us   21.3us  getCommand\n"
                                      "           2.00ms     gone                 1            2.00ms  goneCommand\n"
                                      "  1.00ms               new        2             600us           newCommand\n"
                                      "  90.0us    100us     -10%       10       10   <500ns   9.00us  pingCommand\n");
    EXPECT_TRUE(
        compare::csv_of(rows).starts_with("total,old_total,change,count,old_count,p99,old_p99,function,module,key\n"
                                          "61200000,51800000,+18%,15204,15204,35100,21300,getCommand,redis-server,\n,"
                                          "2000000,gone,,1,,2000000,goneCommand,"))
        << compare::csv_of(rows);
    const std::string objects = compare::json_of(rows);
    const auto first = nlohmann::json::parse(objects.substr(0, objects.find('\n')));
    EXPECT_EQ(first["type"], "diff");
    EXPECT_EQ(first["change"], 0.1815);
    EXPECT_EQ(first["new"]["p99"], 35100);
    EXPECT_EQ(first["old"]["p99"], 21300);
}

TEST(Compare, RowsWithKeysAndModules) {
    const compare::Run old = run_of(R"({"type":"row","kind":"j","symbol":"f","module":"a","key":1,"count":4})"
                                    "\n"
                                    R"({"type":"row","kind":"j","symbol":"f","module":"b","key":"two","count":9})");
    EXPECT_EQ(compare::text_of(compare::diff(
                  old, run_of(R"({"type":"row","kind":"j","symbol":"f","module":"a","key":1,"count":5})"))),
              "   count      old   change  function  key\n"
              "                9     gone  f [b]     two\n"
              "       5        4     +25%  f [a]     1\n");
}

TEST(Compare, Expectations) {
    const compare::Run old = run_of(timed("f", 10, 1'000'000, 20'000) + timed("gone", 1, 1, 1));
    compare::Run now = run_of(timed("f", 12, 1'500'000, 30'000) + timed("new", 1, 1, 1));
    const auto rows = compare::diff(old, now);
    struct {
        const char *given;
        bool holds;
        const char *line;
    } const table[] = {
        {"p99 < 2 * old.p99", true, ""},
        {"f: p99 < 1.2 * old.p99", false,
         "ktrace: f [redis-server]: expected p99 < 1.2 * old.p99, saw p99 30.00 us, old.p99 20.00 us in 12 calls\n"},
        {"count == old.count", false,
         "ktrace: f [redis-server]: expected count == old.count, saw count 12, old.count 10\n"},
        {"new: count == 1", false, "ktrace: new: expected count == 1: no row of both runs has these figures\n"},
    };
    for (const auto &row : table) {
        auto claim = expect::parse_claim(row.given, expect::Runs::two);
        ASSERT_TRUE(claim && compare::check_claim(*claim)) << row.given;
        const auto cases = compare::judge(rows, now, {*claim});
        ASSERT_EQ(cases.size(), 1U) << row.given;
        EXPECT_EQ(expect::all_hold(cases), row.holds) << row.given;
        EXPECT_EQ(expect::line_of(cases[0], false), row.line);
    }
    now.lost[{"redis-server", "f"}] = 2;
    const auto lost = compare::judge(rows, now, {*expect::parse_claim("count > 0", expect::Runs::two)});
    EXPECT_EQ(lost[0].reason, "2 hits were missed");
    for (const char *wrong : {"each(retval == 0)", "a then b", "p42 < old.p42"})
        EXPECT_FALSE(compare::check_claim(*expect::parse_claim(wrong, expect::Runs::two))) << wrong;
}

} // namespace
} // namespace ktrace::test
