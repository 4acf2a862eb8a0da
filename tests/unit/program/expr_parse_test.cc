// The syntax of EXPR: what is accepted, and where errors point.
#include <gtest/gtest.h>

#include "program/expr/expr.h"

namespace ktrace::program {
namespace {

struct BadExpr {
    const char *text;
    int column, width;
    const char *says; // a part of the message
};

class BadExprs : public testing::TestWithParam<BadExpr> {};

TEST_P(BadExprs, PointAtTheColumn) {
    const BadExpr &bad = GetParam();
    auto tree = parse_expr(bad.text);
    ASSERT_FALSE(tree.has_value()) << bad.text;
    EXPECT_EQ(tree.error().kind, Error::Kind::usage);
    EXPECT_EQ(tree.error().source, bad.text);
    EXPECT_EQ(tree.error().column, bad.column) << tree.error().message;
    EXPECT_EQ(tree.error().width, bad.width) << tree.error().message;
    EXPECT_NE(tree.error().message.find(bad.says), std::string::npos) << tree.error().message;
}

TEST(Expr, TimesHaveUnits) {
    const std::pair<const char *, std::uint64_t> rows[] = {{"100ns", 100},          {"100us", 100'000},
                                                           {"1.5ms", 1'500'000},    {"5s", 5'000'000'000},
                                                           {"2m", 120'000'000'000}, {"1.s", 1'000'000'000}};
    for (const auto &[text, ns] : rows) {
        auto tree = parse_expr(text);
        ASSERT_TRUE(tree.has_value()) << text;
        EXPECT_EQ(tree->at(tree->root).kind, program::Expr::Kind::integer) << text;
        EXPECT_EQ(tree->at(tree->root).number, ns) << text;
    }
    EXPECT_TRUE(parse_expr("duration > 100us && nsecs - 1ms < 3").has_value());
    EXPECT_FALSE(parse_expr("100 us").has_value());
    EXPECT_FALSE(parse_expr("100min").has_value());
    EXPECT_FALSE(parse_expr("99999999999999m").has_value());
}

INSTANTIATE_TEST_SUITE_P(
    Expr, BadExprs,
    testing::Values(BadExpr{"", 0, 1, "empty"}, BadExpr{"  ", 0, 1, "empty"},
                    BadExpr{"args.n >", 8, 1, "ends where a value should be"}, BadExpr{"args.n > > 3", 9, 1, "a value"},
                    BadExpr{"(1 + 2", 6, 1, "ends where a closing )"}, BadExpr{"a[1", 3, 1, "ends where a closing ]"},
                    BadExpr{"1 ? 2", 5, 1, "the : of this ?"}, BadExpr{"1 2", 2, 1, "an operator"},
                    BadExpr{"p->3", 3, 1, "a member's name"}, BadExpr{"comm == \"x", 8, 1, "never closed"},
                    BadExpr{"tid = 3", 4, 1, "no operator"}, BadExpr{"tid++", 3, 2, "no operators"},
                    BadExpr{"0x", 0, 2, "no number"}, BadExpr{"09", 0, 2, "no number"},
                    BadExpr{"12abc", 0, 5, "no number"}, BadExpr{"1 + 99999999999999999999", 4, 20, "64 bits"},
                    BadExpr{"'ab'", 0, 4, "one byte"}, BadExpr{"\"a\\qb\"", 2, 2, "no escape"},
                    BadExpr{"foo(1)", 0, 3, "no function `foo`"}, BadExpr{"str()", 4, 1, "a value"},
                    BadExpr{"buf(arg0)", 0, 9, "other arguments"}, BadExpr{"reg(ax)", 4, 2, "in quotes"},
                    BadExpr{"a # b", 2, 1, "no part"}, BadExpr{"a \xc3\xa4", 2, 2, "no part"},
                    BadExpr{"1e999", 0, 5, "double"}));

TEST(Expr, AcceptsTheGrammarOfTheContract) {
    for (const char *text : {"arg0",
                             "arg9",
                             "args.name",
                             "args->name",
                             "retval",
                             "tid",
                             "pid",
                             "comm",
                             "nsecs",
                             "func",
                             "reg(\"ax\")",
                             "str(arg0)",
                             "str(args.p, 16)",
                             "buf(arg1, arg2)",
                             "*args.p",
                             "args.p->a.b[3]",
                             "(int32)arg0",
                             "(unsigned long)x",
                             "*(uint8*)arg0",
                             "((struct foo *)arg0)->bar",
                             "((ns::Foo<int, 3>*)arg0)->x",
                             "(char**)p",
                             "(const char *)arg0 == \"x\"",
                             "(size_t) 3",
                             "(foo_t)x",
                             "0x1f",
                             "0755",
                             "10ull",
                             "'a'",
                             "'\\n'",
                             "1.5",
                             "1e9",
                             ".5f",
                             "\"a\\x41\\0b\"",
                             "duration > 1000 && retval == -1",
                             "var.counter",
                             "var.ns::counter",
                             "stack",
                             "a ? b : c ? d : e",
                             "!~-+1",
                             "(a) * (b)",
                             "(a) - 1",
                             "&args.p->x",
                             "this->n",
                             "a&&b||c",
                             "1<<2>>3",
                             "comm == \"x\" ? (a) : (b)"})
        EXPECT_TRUE(parse_expr(text).has_value()) << text << ": " << parse_expr(text).error().message;
}

std::string shape(const Tree &tree, int node) {
    const Expr &e = tree.at(node);
    static const char *const names[] = {"",   "+", "-",  "~", "!",  "*",  "&",  "*", "/", "%", "+",  "-", "<<",
                                        ">>", "<", "<=", ">", ">=", "==", "!=", "&", "^", "|", "&&", "||"};
    switch (e.kind) {
    case Expr::Kind::integer: return std::to_string(e.number);
    case Expr::Kind::name: return e.text;
    case Expr::Kind::unary: return std::string("(") + names[static_cast<int>(e.op)] + shape(tree, e.a) + ")";
    case Expr::Kind::binary: return "(" + shape(tree, e.a) + names[static_cast<int>(e.op)] + shape(tree, e.b) + ")";
    case Expr::Kind::conditional: return "(" + shape(tree, e.a) + "?" + shape(tree, e.b) + ":" + shape(tree, e.c) + ")";
    case Expr::Kind::member: return "(" + shape(tree, e.a) + (e.arrow ? "->" : ".") + e.text + ")";
    case Expr::Kind::index: return "(" + shape(tree, e.a) + "[" + shape(tree, e.b) + "])";
    case Expr::Kind::cast:
        return "((" + e.type.name + std::string(static_cast<std::size_t>(e.type.stars), '*') + ")" + shape(tree, e.a) +
               ")";
    default: return "?";
    }
}

TEST(Expr, BindsAsC) {
    const std::pair<const char *, const char *> cases[] = {
        {"a+b*c", "(a+(b*c))"},
        {"a-b-c", "((a-b)-c)"},
        {"a<<b+c", "(a<<(b+c))"},
        {"a&b==c", "(a&(b==c))"},
        {"a|b^c&d", "(a|(b^(c&d)))"},
        {"a||b&&c", "(a||(b&&c))"},
        {"a<b==c<d", "((a<b)==(c<d))"},
        {"a?b:c?d:e", "(a?b:(c?d:e))"},
        {"a||b?c:d", "((a||b)?c:d)"},
        {"-a*b", "((-a)*b)"},
        {"!a==b", "((!a)==b)"},
        {"*p->x", "(*(p->x))"},
        {"&p[1].x", "(&((p[1]).x))"},
        {"(int32)a+b", "(((int32)a)+b)"},
        {"(char *)p->x", "((char*)(p->x))"},
        {"(a)*b", "(a*b)"},
        {"- -a", "(-(-a))"},
        {"a%b/c", "((a%b)/c)"},
        {"a>=b!=c<=d", "((a>=b)!=(c<=d))"},
    };
    for (const auto &[text, wanted] : cases) {
        auto tree = parse_expr(text);
        ASSERT_TRUE(tree.has_value()) << text;
        EXPECT_EQ(shape(*tree, tree->root), wanted) << text;
    }
}

TEST(Expr, HostileTextsEndInErrors) {
    EXPECT_FALSE(parse_expr(std::string(5000, '(')).has_value());
    EXPECT_FALSE(parse_expr(std::string(4000, '(')).has_value());
    EXPECT_FALSE(parse_expr(std::string(4000, '!') + "1").has_value());
    EXPECT_FALSE(parse_expr(std::string(2000, '*') + "a").has_value());
    EXPECT_TRUE(parse_expr(std::string(2000, '(') + "1" + std::string(2000, ')')).has_value());
    std::string chain = "a";
    for (int i = 0; i < 900; ++i) chain += "+a";
    EXPECT_FALSE(parse_expr(chain).has_value());
    std::string casts;
    for (int i = 0; i < 400; ++i) casts += "(char*)";
    EXPECT_FALSE(parse_expr(casts + "a").has_value());
    EXPECT_FALSE(parse_expr(std::string("a\0b", 3)).has_value());
}

/// Any bytes at all: an answer, no crash. A small generator, so that a failure repeats.
TEST(Expr, SurvivesGeneratedTexts) {
    static constexpr std::string_view pieces[] = {
        "args.", "x",        "(", ")", "[",  "]",    "->", "*",       "&", "\"",   "'", "\\", "1",
        "0x",    "(char *)", "?", ":", "==", "\x80", ".",  "struct ", ",", "str(", "<", " "};
    std::uint64_t state = 1;
    int accepted = 0;
    for (int i = 0; i < 5000; ++i) {
        std::string text;
        for (int n = 0; n < 12; ++n) {
            state = state * 6364136223846793005U + 1442695040888963407U;
            text += pieces[(state >> 33) % std::size(pieces)];
        }
        auto tree = parse_expr(text);
        if (tree)
            ++accepted;
        else
            EXPECT_LE(tree.error().column, static_cast<int>(text.size())) << text;
    }
    EXPECT_GT(accepted, 0);
}

} // namespace
} // namespace ktrace::program
