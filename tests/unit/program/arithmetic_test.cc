// C's arithmetic: each expression is computed by the compiler of this test as well, and the answers must be the same.
#include <gtest/gtest.h>

#include <bit>

#include "bench.h"

namespace ktrace::program::test {
namespace {

// C's value of an expression, as a node would hold it.
template <class T> std::pair<Tag, std::uint64_t> in_c(T value) {
    if constexpr (std::is_floating_point_v<T>)
        return {Tag::floating, std::bit_cast<std::uint64_t>(static_cast<double>(value))};
    else if constexpr (std::is_same_v<T, bool>)
        return {Tag::sint, value}; // C's comparisons are int
    else if constexpr (std::is_signed_v<T>)
        return {Tag::sint, static_cast<std::uint64_t>(std::int64_t{value})};
    else
        return {Tag::uint, value};
}

void expect_same(const std::string &text, std::pair<Tag, std::uint64_t> wanted) {
    Bench bench;
    Node node = bench.print(text);
    std::uint64_t bits = node.tag == Tag::floating ? std::bit_cast<std::uint64_t>(node.floating) : node.number;
    EXPECT_EQ(static_cast<int>(node.tag), static_cast<int>(wanted.first)) << text;
    EXPECT_EQ(bits, wanted.second) << text;
}

#define SAME(expression) expect_same(#expression, in_c(expression))

#pragma GCC diagnostic push
#ifdef __clang__
#pragma GCC diagnostic ignored "-Wunknown-warning-option"
#pragma GCC diagnostic ignored "-Wbool-operation"
#pragma GCC diagnostic ignored "-Wconstant-logical-operand"
#pragma GCC diagnostic ignored "-Wtautological-compare"
#pragma GCC diagnostic ignored "-Wliteral-conversion"
#pragma GCC diagnostic ignored "-Wconstant-conversion"
#endif
#pragma GCC diagnostic ignored "-Wsign-compare"
#pragma GCC diagnostic ignored "-Wparentheses"
#pragma GCC diagnostic ignored "-Wbool-compare"
#pragma GCC diagnostic ignored "-Wint-in-bool-context"
#pragma GCC diagnostic ignored "-Wold-style-cast"
#pragma GCC diagnostic ignored "-Woverflow"

TEST(Arithmetic, LiteralsHaveCsTypes) {
    SAME(2147483647);
    SAME(2147483648);
    SAME(0x7fffffff);
    SAME(0xffffffff);
    SAME(0x100000000);
    SAME(0xffffffffffffffff);
    SAME(017);
    SAME(5u);
    SAME(5l);
    SAME(5ull);
    SAME('a' + 0); // a character literal is int in C, char in C++; that has the sign that the psABI gives it
    SAME('\xff' + 0);
    SAME('\0' + 0);
    SAME(1.5);
    SAME(1e3);
}

TEST(Arithmetic, ConvertsAsC) {
    SAME(-1 < 0u);
    SAME(-1 < 0);
    SAME(-1 > 1ul);
    SAME(-1l < 1u);
    SAME(1u - 2);
    SAME(1u - 2l);
    SAME(-1 + 0u);
    SAME(0xffffffff + 1);
    SAME(0xffffffff + 1l);
    SAME(-7 / 2);
    SAME(-7 % 3);
    SAME(7 % -3);
    SAME(7u / 2);
    SAME(-7l / 2);
    SAME(3 * -5);
    SAME(~0);
    SAME(~0u);
    SAME(~0ul);
    SAME(-5u);
    SAME(!5);
    SAME(!0);
    SAME(+'a');
    SAME(1 << 10);
    SAME(1u << 31);
    SAME(1ul << 40);
    SAME(-16 >> 2);
    SAME(0xf0000000 >> 4);
    SAME(6 & 3 | 8 ^ 1);
    SAME(5 > 3 > 1);
    SAME(1 + 2 * 3 - 4 / 2 % 3);
    SAME(1 ? 2 : 3);
    SAME(0 ? 2 : 3u);
    SAME(1 ? -1 : 0u);
    SAME(0 || 2 && 3);
    SAME(1 && 0 || 0);
}

TEST(Arithmetic, CastsAsC) {
    SAME((char)300);
    SAME((unsigned char)300 + 0);
    SAME((short)70000);
    SAME((unsigned)-1);
    SAME((long)-1);
    SAME((unsigned long)-1);
    SAME((int)3.9);
    SAME((int)-3.9);
    SAME((long)1e10);
    SAME((double)7 / 2);
    SAME((float)1 / 3);
    SAME((double)(float)0.1);
    SAME((float)0.1 + (float)0.2);
    SAME((unsigned long)3.0);
}

TEST(Arithmetic, FloatsAsC) {
    SAME(1.5 + 2);
    SAME(1 / 4.0);
    SAME(-1.5 * 2);
    SAME(1.5 < 2);
    SAME(2.5 >= 2.5);
    SAME(0.0 == -0.0);
    SAME(1.0 != 1);
    SAME(!0.5);
    SAME(1 ? 1 : 2.5);
    SAME(0.5 && 0.1);
    SAME(1.0f / 3);
}

#pragma GCC diagnostic pop

TEST(Arithmetic, WhereCHasNoAnswerThereIsNone) {
    Bench bench;
    for (const char *text : {"1 / 0", "1 % 0", "1u / 0", "arg0 / (arg0 - arg0)"})
        EXPECT_EQ(bench.print(text).tag, Tag::na) << text;
    EXPECT_EQ(bench.print("(-9223372036854775807l - 1) / -1").sint(), INT64_MIN);
    EXPECT_EQ(bench.print("(-9223372036854775807l - 1) % -1").sint(), 0);
    EXPECT_EQ(bench.print("1 << 64").sint(), 0);
    EXPECT_EQ(bench.print("(int)1e300").sint(), INT32_MAX);
    EXPECT_EQ(bench.print("(int)(0.0 / 0.0)").sint(), 0);
    EXPECT_FALSE(bench.passes("1 / 0 == 0"));
    EXPECT_FALSE(bench.passes("1 / 0 != 0"));
    EXPECT_FALSE(bench.passes("0.0 / 0.0 == 0.0 / 0.0"));
}

TEST(Arithmetic, NumbersAloneAreWhatTheyAreInBpftrace) {
    Bench bench;
    EXPECT_EQ(bench.print("10 * 1000 * 1000 * 1000").sint(), 10'000'000'000);
    EXPECT_EQ(bench.print("60 * 60 * 1000000000").sint(), 3'600'000'000'000);
    EXPECT_EQ(bench.print("-10 * 1000 * (1000 * 1000)").sint(), -10'000'000'000);
    EXPECT_EQ(bench.print("2147483647 + 1").sint(), 2147483648);
    EXPECT_EQ(bench.print("-2147483647 - 2").sint(), -2147483649);
    EXPECT_EQ(bench.print("1 << 31").sint(), 2147483648);
    EXPECT_EQ(bench.print("1 << 40").sint(), 1099511627776);
    EXPECT_EQ(bench.print("(1 << 40) + 1 << 1").sint(), 2199023255554);
    EXPECT_EQ(bench.print("1 << 63").number, 0x8000000000000000U);
    EXPECT_EQ(bench.print("-(-9223372036854775807 - 1) + 0").sint(), INT64_MIN);
    EXPECT_TRUE(bench.passes("10 * 1000 * 1000 * 1000 > 2 * 1000 * 1000 * 1000"));
    EXPECT_EQ(bench.misfit("10 * 1000 + comm").column, 12);
}

TEST(Arithmetic, OperatorsRefuseWhatCRefuses) {
    Bench bench;
    EXPECT_NE(bench.misfit("1.5 % 2").message.find("integers"), std::string::npos);
    EXPECT_NE(bench.misfit("~1.5").message.find("integer"), std::string::npos);
    EXPECT_NE(bench.misfit("comm + 1").message.find("not a number"), std::string::npos);
    Error error = bench.misfit("1 + comm * 2");
    EXPECT_EQ(error.column, 4);
    EXPECT_EQ(error.width, 4);
}

} // namespace
} // namespace ktrace::program::test
