// Verdicts on figures and on the order of hits; lines and reports.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "expect/case.h"

namespace ktrace::test {
namespace {

using expect::Case;
using expect::Claim;
using expect::Figure;
using expect::Figures;
using expect::Order;
using expect::Runs;
using expect::Verdict;

Claim claim(const char *text, Runs runs = Runs::one) {
    auto parsed = expect::parse_claim(text, runs);
    EXPECT_TRUE(parsed) << text;
    return parsed ? *parsed : Claim();
}

Figures figures() {
    return {{"count", {1200, 0, false}},
            {"count(retval < 0)", {3, 0, false}},
            {"count(str(arg0) == \"x\")", {7, 0, false}},
            {"p99", {12'340'000, 1000, true}},
            {"min", {100, 500, true}},
            {"old.p99", {12'000'000, 1000, true}}};
}

TEST(Judge, FiguresByCsPrecedence) {
    struct {
        const char *claim;
        Verdict verdict;
        Runs runs = Runs::one;
    } const table[] = {
        {"count <= 1200", Verdict::holds},
        {"count < 1200", Verdict::broken},
        {"count <= 1 || p99 < 20ms && count == 1200", Verdict::holds},
        {"!(count == 0) && p99 >= 12.34ms", Verdict::holds},
        {"count - 200 * 2 == 800", Verdict::holds},
        {"-count < 0 ? p99 < 10ms : p99 < 20ms", Verdict::broken},
        {"count(retval < 0) / count < 0.01", Verdict::holds}, // with fractions
        {"count(retval < 0) == 0", Verdict::broken},
        {"p98 < 1s", Verdict::left_out},
        {"min < 400ns", Verdict::broken}, // it is below its error
        {"min <= 500ns", Verdict::holds},
        {"p99 < 1.2 * old.p99", Verdict::holds, Runs::two},
        {"p99 < old.p99", Verdict::broken, Runs::two},
    };
    for (const auto &row : table)
        EXPECT_EQ(expect::judge(claim(row.claim, row.runs), figures()), row.verdict) << row.claim;
}

TEST(Judge, ALineSaysWhatWasSeen) {
    struct {
        const char *claim, *line;
    } const table[] = {
        {"p99 < 10ms", "ktrace: do_work [worker]: expected p99 < 10ms, saw 12.34 ms in 1200 calls\n"},
        {"count <= 100 && p99 < 10ms", "ktrace: do_work [worker]: expected count <= 100 && p99 < 10ms, saw count 1200, "
                                       "p99 12.34 ms in 1200 calls\n"},
        {"count(retval < 0) == 0", "ktrace: do_work [worker]: expected count(retval < 0) == 0, saw 3\n"},
        {"min < 400ns", "ktrace: do_work [worker]: expected min < 400ns, saw <500 ns in 1200 calls\n"},
        {"count > 0", ""},
        {"count(str(arg0) == \"x\") == 0",
         "ktrace: do_work [worker]: expected count(str(arg0) == \"x\") == 0, saw 7\n"},
    };
    for (const auto &row : table) {
        const Claim read = claim(row.claim);
        Case made;
        made.claim = read.text;
        made.symbol = "do_work";
        made.module = "worker";
        made.hits = 1200;
        ASSERT_TRUE(expect::judge_case(made, read, figures()));
        EXPECT_EQ(expect::line_of(made, false), row.line);
    }
}

Case broken() {
    Case made;
    made.given = "do_work: p99<10ms";
    made.claim = "p99<10ms";
    made.symbol = "do_work";
    made.module = "worker";
    made.end = Case::End::broken;
    made.seen = {{"p99", {12'340'000, 1000, true}}};
    made.hits = 3;
    return made;
}

TEST(Judge, AnObjectOfJson) {
    Case made = broken();
    EXPECT_EQ(expect::json_of(made), R"({"type":"expectation","expect":"do_work: p99<10ms","symbol":"do_work",)"
                                     R"("module":"worker","holds":false,"seen":{"p99":12340000}})"
                                     "\n");
    made.key_json = "5";
    made.reason = "1 hit was missed";
    const auto object = nlohmann::json::parse(expect::json_of(made));
    EXPECT_EQ(object["key"], 5);
    EXPECT_EQ(object["reason"], "1 hit was missed");
}

TEST(Judge, Reports) {
    Case holds = broken(), unjudged = broken();
    holds.end = Case::End::holds;
    unjudged.symbol = "a<b> #1";
    unjudged.end = Case::End::not_judged;
    unjudged.seen.clear();
    unjudged.reason = "the trace failed";
    const std::vector<Case> cases{broken(), holds, unjudged};
    EXPECT_EQ(expect::tap_of(cases), "TAP version 13\n"
                                     "1..3\n"
                                     "not ok 1 - do_work: p99<10ms\n"
                                     "  ---\n"
                                     "  message: \"expected p99<10ms, saw 12.34 ms in 3 calls\"\n"
                                     "  severity: fail\n"
                                     "  ...\n"
                                     "ok 2 - do_work: p99<10ms\n"
                                     "not ok 3 - a<b> \\#1: p99<10ms\n"
                                     "  ---\n"
                                     "  message: \"expected p99<10ms: the trace failed\"\n"
                                     "  severity: error\n"
                                     "  ...\n");
    const std::string xml = expect::junit_of(cases, {0, 1'500'000'000});
    for (const char *part :
         {R"(timestamp="1970-01-01T00:00:00" tests="3" failures="1" errors="1" time="1.500">)",
          R"(<testcase classname="do_work" name="p99&lt;10ms" time="0"/>)", R"(classname="a&lt;b&gt; #1")",
          R"(<failure type="expectation" message="expected p99&lt;10ms, saw 12.34 ms in 3 calls"></failure>)",
          R"(<error type="not judged" message="expected p99&lt;10ms: the trace failed"></error>)"})
        EXPECT_NE(xml.find(part), std::string::npos) << part << '\n' << xml;
    EXPECT_EQ(expect::count_text(cases), "ktrace: 1 of 3 expectations hold\n");
    EXPECT_FALSE(expect::all_hold(cases));
    EXPECT_TRUE(expect::all_hold({holds}));
}

/// Hits of one thread: `a` is the first name, `b` the second one.
std::size_t breaks(Claim::Kind kind, std::string_view hits, bool has_ended) {
    std::size_t found[2];
    for (bool is_sorted : {true, false}) {
        Order order(kind, is_sorted);
        for (std::size_t n = 0; n < hits.size(); n++) {
            const std::size_t i = is_sorted ? n : hits.size() - 1 - n;
            order.add({1, 2}, 100 + i, hits[i] == 'a' ? Order::Name::first : Order::Name::second);
        }
        found[is_sorted ? 0 : 1] = order.breaks([has_ended](Order::Thread) { return has_ended; }).size();
    }
    EXPECT_EQ(found[0], found[1]) << hits;
    return found[0];
}

TEST(Judge, Before) {
    struct {
        const char *hits;
        std::size_t breaks;
    } const table[] = {{"", 0}, {"a", 0}, {"b", 1}, {"ab", 0}, {"ba", 1}, {"bba", 2}, {"abbab", 0}, {"aab", 0}};
    for (const auto &row : table)
        for (bool has_ended : {true, false})
            EXPECT_EQ(breaks(Claim::Kind::before, row.hits, has_ended), row.breaks) << row.hits;
}

TEST(Judge, Then) {
    struct {
        const char *hits;
        std::size_t of_ended, of_others;
    } const table[] = {{"", 0, 0},      {"b", 0, 0},  {"ab", 0, 0},    {"a", 1, 0},    {"aab", 1, 1},    {"aba", 1, 0},
                       {"abbab", 0, 0}, {"aa", 2, 1}, {"babab", 0, 0}, {"aaab", 2, 2}, {"abaabab", 1, 1}};
    for (const auto &row : table) {
        EXPECT_EQ(breaks(Claim::Kind::then, row.hits, true), row.of_ended) << row.hits;
        EXPECT_EQ(breaks(Claim::Kind::then, row.hits, false), row.of_others) << row.hits;
    }
}

TEST(Judge, EachThreadHasItsOwnOrder) {
    Order order(Claim::Kind::before, true);
    order.add({1, 2}, 10, Order::Name::first);
    order.add({1, 3}, 20, Order::Name::second);
    const auto found = order.breaks([](Order::Thread) { return true; });
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].thread.second, 3);
    EXPECT_EQ(found[0].entry_ns, 20U);
}

} // namespace
} // namespace ktrace::test
