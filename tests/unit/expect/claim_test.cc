// The grammar of expectations, by tables.
#include <gtest/gtest.h>

#include "expect/claim.h"

namespace ktrace::test {
namespace {

using expect::Claim;
using expect::Runs;

TEST(Claims, AreRead) {
    struct {
        const char *given;
        Claim::Kind kind;
        const char *whose, *text;
    } const table[] = {
        {"count <= 100", Claim::Kind::figures, "", "count <= 100"},
        {"f: count <= 100 && p99 < 10ms", Claim::Kind::figures, "f", "count <= 100 && p99 < 10ms"},
        {"all: count == 0", Claim::Kind::figures, "all", "count == 0"},
        {"libc:open*: count < 5", Claim::Kind::figures, "libc:open*", "count < 5"},
        {"Foo::bar: avg < 1us", Claim::Kind::figures, "Foo::bar", "avg < 1us"},
        {"shop::Till::add(int): max<1ms", Claim::Kind::figures, "shop::Till::add(int)", "max<1ms"},
        {"count > 5 ? p99 < 1ms : p99 < 5ms", Claim::Kind::figures, "", "count > 5 ? p99 < 1ms : p99 < 5ms"},
        {"each(retval >= 0)", Claim::Kind::each, "", "each(retval >= 0)"},
        {"f: never ( args.n > 10 )", Claim::Kind::never, "f", "never ( args.n > 10 )"},
        {"init before use", Claim::Kind::before, "", "init before use"},
        {"lock then unlock", Claim::Kind::then, "", "lock then unlock"},
    };
    for (const auto &row : table) {
        auto claim = expect::parse_claim(row.given, Runs::one);
        ASSERT_TRUE(claim) << row.given << ": " << claim.error().message;
        EXPECT_EQ(claim->kind, row.kind) << row.given;
        EXPECT_EQ(claim->whose, row.whose) << row.given;
        EXPECT_EQ(claim->text, row.text) << row.given;
        EXPECT_EQ(claim->given, row.given);
    }
}

TEST(Claims, PartsAreKnown) {
    auto each = expect::parse_claim("each(str(arg0) != \")\")", Runs::one);
    ASSERT_TRUE(each) << each.error().message;
    EXPECT_EQ(each->of, "str(arg0) != \")\"");
    auto order = expect::parse_claim("libc:malloc before free", Runs::one);
    ASSERT_TRUE(order);
    EXPECT_EQ(order->first, "libc:malloc");
    EXPECT_EQ(order->second, "free");
    auto figures = expect::parse_claim("count(retval < 0) <= count(tid == 1) + p7 && p99 < 1ms", Runs::one);
    ASSERT_TRUE(figures) << figures.error().message;
    EXPECT_EQ(figures->figures, (std::vector<std::string>{"count(retval < 0)", "count(tid == 1)", "p7", "p99"}));
    EXPECT_EQ(figures->counted, (std::vector<std::string>{"retval < 0", "tid == 1"}));
    EXPECT_TRUE(figures->wants_values());
    EXPECT_FALSE(expect::parse_claim("count(retval<0) == 0", Runs::one)->wants_values());
    auto both = expect::parse_claim("p99 < 1.2 * old.p99", Runs::two);
    ASSERT_TRUE(both) << both.error().message;
    EXPECT_EQ(both->figures, (std::vector<std::string>{"p99", "old.p99"}));
}

TEST(Claims, ErrorsPointIntoTheText) {
    struct {
        const char *given, *message;
        int column;
        Runs runs = Runs::one;
    } const table[] = {
        {"", "an expectation needs a claim", 0},
        {"f: ", "an expectation needs a claim", 3},
        {"f: count <", "the expression ends where a value should be", 10},
        {"f: retval < 0", "this is no figure", 3},
        {"p100 < 1ms", "this is no figure", 0},
        {"p0 < 1ms", "this is no figure", 0},
        {"count % 2 == 0", "this is no figure", 0},
        {"p99", "this claims nothing", 0},
        {"1 < 2", "there is no figure in this claim", 0},
        {"f: each(retval >)", "the expression ends where a value should be", 16},
        {"each(retval", "this ( is never closed", 4},
        {"each(1) && count < 3", "each(EXPR) stands alone", 8},
        {"never()", "an expression is missing here", 5},
        {"count < 3 + count()", "an expression is missing here", 17},
        {"old.p99 < 1ms", "this is no figure", 0},
        {"count(retval < 0) < 1", "the files have no count of these", 0, Runs::two},
    };
    for (const auto &row : table) {
        auto claim = expect::parse_claim(row.given, row.runs);
        ASSERT_FALSE(claim) << row.given;
        EXPECT_EQ(claim.error().message, row.message) << row.given;
        EXPECT_EQ(claim.error().column, row.column) << row.given;
        EXPECT_EQ(claim.error().source, row.given);
        EXPECT_EQ(claim.error().kind, Error::Kind::usage);
    }
}

} // namespace
} // namespace ktrace::test
