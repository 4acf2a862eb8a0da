// Values of every kind of type, as text and as JSON.
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "make_types.h"
#include "output/render.h"

namespace ktrace::test {
namespace {

using value::Type;

std::string text(const Type &type, const std::vector<std::byte> &bytes) {
    std::string out;
    output::append_text(out, type, bytes);
    return out;
}

std::string json(const Type &type, const std::vector<std::byte> &bytes) {
    std::string out;
    output::append_json(out, type, bytes);
    return out;
}

TEST(Render, IntegersOfEveryWidthAndSign) {
    Types t;
    EXPECT_EQ(text(t.integer(1, true), bytes_of(std::int8_t{-5})), "-5");
    EXPECT_EQ(text(t.integer(1, false), bytes_of(std::uint8_t{251})), "251");
    EXPECT_EQ(text(t.integer(2, true), bytes_of(std::int16_t{-32768})), "-32768");
    EXPECT_EQ(text(t.integer(4, true), bytes_of(42)), "42");
    EXPECT_EQ(json(t.integer(4, true), bytes_of(-42)), "-42");
    EXPECT_EQ(text(t.integer(8, true), bytes_of(std::numeric_limits<std::int64_t>::min())), "-9223372036854775808");
    EXPECT_EQ(json(t.integer(8, false), bytes_of(~std::uint64_t{0})), "18446744073709551615");
    EXPECT_EQ(text(t.integer(16, false), bytes_of(~std::uint64_t{0}, ~std::uint64_t{0})),
              "340282366920938463463374607431768211455");
    EXPECT_EQ(text(t.integer(16, true), bytes_of(std::uint64_t{0}, std::uint64_t{1} << 63)),
              "-170141183460469231731687303715884105728");
}

TEST(Render, BooleansAndPointers) {
    Types t;
    Type &boolean = t.make(Type::Kind::bool_, "bool", 1);
    EXPECT_EQ(text(boolean, bytes_of(std::uint8_t{1})), "true");
    EXPECT_EQ(json(boolean, bytes_of(std::uint8_t{0})), "false");
    EXPECT_EQ(text(t.pointer(), bytes_of(std::uint64_t{0x7ffd00001234})), "0x7ffd00001234");
    EXPECT_EQ(json(t.pointer(), bytes_of(std::uint64_t{0})), "\"0x0\"");
}

TEST(Render, Characters) {
    Types t;
    Type &c = t.character();
    EXPECT_EQ(text(c, bytes_of('a')), "'a'");
    EXPECT_EQ(text(c, bytes_of('\n')), "'\\n'");
    EXPECT_EQ(text(c, bytes_of('\0')), "'\\0'");
    EXPECT_EQ(text(c, bytes_of('\'')), "'\\''");
    EXPECT_EQ(text(c, bytes_of('\x1b')), "'\\x1b'");
    EXPECT_EQ(text(c, bytes_of('\xe9')), "'\\xe9'");
    EXPECT_EQ(json(c, bytes_of('a')), "\"a\"");
    EXPECT_EQ(text(t.character(4), bytes_of(char32_t{0x20ac})), "'\xe2\x82\xac'");
    EXPECT_EQ(text(t.character(4), bytes_of(char32_t{0x9b})), "'\\xc2\\x9b'") << "C1 controls never reach a terminal";
}

TEST(Render, CharacterArraysAreStrings) {
    Types t;
    EXPECT_EQ(text(t.array(t.character(), 8), chars(std::string("al\"ice\0x", 8))), "\"al\\\"ice\"");
    EXPECT_EQ(text(t.array(t.character(), 3), chars("abc")), "\"abc\"");
    EXPECT_EQ(text(t.array(t.character(), 9), chars("abc")), "\"abc\"...");
    EXPECT_EQ(json(t.array(t.character(), 4), chars("a\nb\xff")), R"("a\nb\\xff")");
    EXPECT_EQ(text(t.array(t.character(2), 4), bytes_of(u'h', u'\xd83d', u'\xde00', u'\0')), "\"h\xf0\x9f\x98\x80\"");
}

TEST(Render, Floating) {
    Types t;
    EXPECT_EQ(text(t.floating(8, "double"), bytes_of(0.1)), "0.1");
    EXPECT_EQ(text(t.floating(4, "float"), bytes_of(0.1F)), "0.1");
    EXPECT_EQ(text(t.floating(8, "double"), bytes_of(1e300)), "1e+300");
    EXPECT_EQ(text(t.floating(8, "double"), bytes_of(-0.0)), "-0");
    EXPECT_EQ(text(t.floating(8, "double"), bytes_of(std::nan(""))), "nan");
    EXPECT_EQ(json(t.floating(8, "double"), bytes_of(std::nan(""))), "null");
    EXPECT_EQ(json(t.floating(8, "double"), bytes_of(-HUGE_VAL)), "\"-inf\"");
    EXPECT_EQ(text(t.floating(2, "_Float16"), bytes_of(std::uint16_t{0x3e00})), "1.5");
    EXPECT_EQ(text(t.floating(2, "__bf16"), bytes_of(std::uint16_t{0xbfc0})), "-1.5");
    EXPECT_EQ(text(t.floating(16, "_Float128"), bytes_of(std::uint64_t{0}, std::uint64_t{0x3fff800000000000})), "1.5");
    long double third = 1.0L / 3;
    std::string shown = text(t.floating(16, "long double"), bytes_of(third));
    EXPECT_EQ(std::strtold(shown.c_str(), nullptr), third) << shown;
    Type &complex = t.make(Type::Kind::complex, "complex double", 16);
    EXPECT_EQ(text(complex, bytes_of(1.5, -2.0)), "1.5 - 2i");
    EXPECT_EQ(json(complex, bytes_of(1.5, -2.0)), "[1.5,-2]");
}

TEST(Render, Enumerations) {
    Types t;
    Type &color = t.enumeration({{"RED", 0}, {"GREEN", 1}, {"BLUE", 2}});
    EXPECT_EQ(text(color, bytes_of(2)), "BLUE");
    EXPECT_EQ(json(color, bytes_of(2)), "\"BLUE\"");
    EXPECT_EQ(text(color, bytes_of(3)), "3") << "an enumeration that counts is no set of flags";
    EXPECT_EQ(json(color, bytes_of(7)), "7");
    Type &flags = t.enumeration({{"READ", 1}, {"WRITE", 2}, {"EXEC", 4}, {"ALL", 7}});
    EXPECT_EQ(text(flags, bytes_of(7)), "ALL");
    EXPECT_EQ(text(flags, bytes_of(5)), "READ|EXEC");
    EXPECT_EQ(json(flags, bytes_of(0x12)), "\"WRITE|0x10\"");
    EXPECT_EQ(text(flags, bytes_of(0)), "0");
    Type &negative = t.enumeration({{"BAD", -1}, {"GOOD", 0}}, true);
    EXPECT_EQ(text(negative, bytes_of(-1)), "BAD");
    EXPECT_EQ(text(negative, bytes_of(-2)), "-2");
    EXPECT_EQ(text(t.enumeration({{"TOP", 0x80000000}, {"LOW", 1}}), bytes_of(0x80000000U)), "TOP");
}

TEST(Render, Structures) {
    Types t;
    Type &i = t.integer(4, true);
    Type &point = t.structure({member("x", i, 0), member("y", i, 4)}, 8);
    EXPECT_EQ(text(point, bytes_of(1, 2)), "{.x=1, .y=2}");
    EXPECT_EQ(json(point, bytes_of(1, 2)), R"({"x":1,"y":2})");
    Type &line = t.structure({member("from", point, 0), member("to", point, 8)}, 16);
    EXPECT_EQ(text(line, bytes_of(1, 2, 3, 4)), "{.from={.x=1, .y=2}, .to={.x=3, .y=4}}");
    EXPECT_EQ(text(line, bytes_of(1, 2, 3)), "{.from={.x=1, .y=2}, .to={.x=3, ...}}");
    EXPECT_EQ(json(line, bytes_of(1, 2, 3)), R"({"from":{"x":1,"y":2},"to":{"x":3}})");
    EXPECT_EQ(text(t.structure({}, 1), bytes_of(std::uint8_t{0})), "{}");
}

TEST(Render, AnonymousMembersStandInTheirHolder) {
    Types t;
    Type &i = t.integer(4, true);
    Type &inner = t.structure({member("a", i, 0), member("b", i, 4)}, 8);
    Type &outer = t.structure({member("", inner, 0), member("c", i, 8)}, 12);
    EXPECT_EQ(text(outer, bytes_of(1, 2, 3)), "{.a=1, .b=2, .c=3}");
}

TEST(Render, BasesAreNamedAndStaticsLeftOut) {
    Types t;
    Type &i = t.integer(4, true);
    Type &base = t.structure({member("a", i, 0)}, 4);
    base.name = "Base";
    value::Member inherited = member("", base, 8);
    inherited.is_base = true;
    value::Member shared = member("total", i, 0);
    shared.is_static = true;
    Type &derived = t.structure({member("_vptr.Base", t.pointer(), 0), inherited, shared, member("b", i, 12)}, 16);
    EXPECT_EQ(text(derived, bytes_of(std::uint64_t{0x5500}, 1, 2)), "{.Base={.a=1}, .b=2}");
    EXPECT_EQ(json(derived, bytes_of(std::uint64_t{0x5500}, 1, 2)), R"({"Base":{"a":1},"b":2})");
}

TEST(Render, BitFields) {
    Types t;
    Type &u = t.integer(4, false);
    Type &s = t.integer(4, true);
    Type &boolean = t.make(Type::Kind::bool_, "bool", 1);
    Type &fields =
        t.structure({bits("low", u, 0, 3), bits("sign", s, 3, 4), bits("on", boolean, 7, 1), bits("far", u, 30, 2)}, 4);
    std::uint32_t raw = 5U | (0xdU << 3) | (1U << 7) | (2U << 30);
    EXPECT_EQ(text(fields, bytes_of(raw)), "{.low=5, .sign=-3, .on=true, .far=2}");
}

TEST(Render, TheActiveVariantAlone) {
    Types t;
    Type &i = t.integer(4, true);
    Type &unit = t.structure({}, 12);
    Type &pair = t.structure({member("__0", i, 4), member("__1", i, 8)}, 12);
    Type &named = t.structure({member("w", i, 4), member("h", i, 8)}, 12);
    std::vector<value::Member> members{member("Unit", unit, 0), member("Pair", pair, 0), member("Named", named, 0)};
    for (std::size_t at = 0; at < members.size(); at++) members[at].variant = static_cast<std::int32_t>(at);
    Type &type = t.structure(members, 12);
    type.discriminant = &i;
    type.variants = {{.value = std::uint64_t{0xffffffff80000000}}, {.value = 1}, {.value = std::nullopt}};
    EXPECT_EQ(text(type, bytes_of(0x80000000U, 1, 2)), "Unit");
    EXPECT_EQ(json(type, bytes_of(0x80000000U, 1, 2)), R"("Unit")");
    EXPECT_EQ(text(type, bytes_of(1, 5, 6)), "Pair(5, 6)");
    EXPECT_EQ(json(type, bytes_of(1, 5, 6)), R"({"Pair":[5,6]})");
    EXPECT_EQ(text(type, bytes_of(77, 5, 6)), "Named{.w=5, .h=6}");
    EXPECT_EQ(json(type, bytes_of(77, 5, 6)), R"({"Named":{"w":5,"h":6}})");
    EXPECT_EQ(text(type, {}), "...");
    type.members.push_back(member("always", i, 8)); // a record with a part that varies, as Ada has them
    EXPECT_EQ(text(type, bytes_of(1, 5, 6)), "{.Pair=(5, 6), .always=6}");
}

TEST(Render, ElementsApart) {
    Types t;
    Type &i = t.integer(4, true);
    Type &column = t.array(i, 2);
    column.stride = 12;
    EXPECT_EQ(text(column, bytes_of(1, 2, 3, 4)), "[1, 4]");
}

TEST(Render, Arrays) {
    Types t;
    Type &i = t.integer(4, true);
    EXPECT_EQ(text(t.array(i, 3), bytes_of(1, 2, 3)), "[1, 2, 3]");
    EXPECT_EQ(json(t.array(i, 3), bytes_of(1, 2, 3)), "[1,2,3]");
    EXPECT_EQ(text(t.array(i, 5), bytes_of(1, 2)), "[1, 2, ...]");
    EXPECT_EQ(text(t.array(i, 0), {}), "..."); // of no known size
    Type &row = t.array(i, 2);
    EXPECT_EQ(text(t.array(row, 2), bytes_of(1, 2, 3, 4)), "[[1, 2], [3, 4]]");
    std::string shown = text(t.array(t.integer(1, false), 1000), std::vector<std::byte>(1000));
    EXPECT_TRUE(shown.ends_with("0, ...]")) << shown;
    EXPECT_LT(shown.size(), 300U);
}

TEST(Render, UnionsShowEveryMember) {
    Types t;
    Type &both = t.make(Type::Kind::union_, "union u", 4);
    both.members = {member("i", t.integer(4, true), 0), member("f", t.floating(4, "float"), 0)};
    EXPECT_EQ(text(both, bytes_of(1.0F)), "{.i=1065353216, .f=1}");
}

TEST(Render, DamagedTypesAreBounded) {
    Types t;
    Type &loop = t.make(Type::Kind::structure, "struct loop", 8);
    loop.members = {member("self", loop, 0)};
    EXPECT_LT(text(loop, bytes_of(std::uint64_t{0})).size(), 400U);
    Type &nameless = t.make(Type::Kind::structure, "struct nameless", 8);
    nameless.members = {member("", nameless, 0)};
    EXPECT_LT(text(nameless, bytes_of(std::uint64_t{0})).size(), 400U);
    EXPECT_EQ(text(t.integer(8, true), bytes_of(1)), "...") << "fewer bytes than the type has";
    EXPECT_EQ(text(t.make(Type::Kind::unknown, "", 4), bytes_of(0x1234)), "0x1234");
    EXPECT_EQ(text(t.array(t.integer(4, true), ~std::uint64_t{0} / 2), bytes_of(7)), "[7, ...]");
}

TEST(Render, NamesCannotSteerTheTerminal) {
    Types t;
    Type &evil = t.structure({member("a\x1b[2J", t.integer(4, true), 0)}, 4);
    EXPECT_EQ(text(evil, bytes_of(1)), "{.a\\x1b[2J=1}");
    EXPECT_EQ(json(evil, bytes_of(1)), "{\"a\\u001b[2J\":1}");
}

TEST(Render, LevelsAreCountedInStructuresAndArrays) {
    Types t;
    const Type &i = t.integer(4, true);
    const Type &three = t.structure({member("d", i, 0)}, 4);
    const Type &two = t.structure({member("c", three, 0), member("n", i, 0)}, 4);
    const Type &one = t.structure({member("b", two, 0)}, 4);
    const Type &all = t.structure({member("a", one, 0)}, 4);
    std::string out;
    output::append_text(out, all, bytes_of(7), output::ValueLimits::brief);
    EXPECT_EQ(out, "{.a={.b={.c=..., .n=7}}}");
    EXPECT_EQ(text(all, bytes_of(7)), "{.a={.b={.c={.d=7}, .n=7}}}");
}

TEST(Render, TextsAreCutBetweenCharacters) {
    EXPECT_EQ(output::shortened("abc", 3), "abc");
    EXPECT_EQ(output::shortened("abcd", 3), "abc");
    EXPECT_EQ(output::shortened("ab\xc3\xa9", 3), "ab");
    EXPECT_EQ(output::shortened("\xa9\xa9\xa9\xa9", 3), "");
}

/// BID: a biased exponent above a binary significand.
std::string decimal64(std::uint64_t exponent, std::uint64_t significand) {
    Types t;
    Type &type = t.make(Type::Kind::floating, "_Decimal64", 8);
    type.is_decimal = true;
    return text(type, bytes_of(exponent << 53 | significand));
}

TEST(Render, DecimalNumbers) {
    EXPECT_EQ(decimal64(398, 0), "0");
    EXPECT_EQ(decimal64(398, 42), "42");
    EXPECT_EQ(decimal64(396, 150), "1.50");
    EXPECT_EQ(decimal64(395, 5), "0.005");
    EXPECT_EQ(decimal64(400, 7), "700");
    EXPECT_EQ(decimal64(498, 12), "1.2e+101");
    EXPECT_EQ(decimal64(298, 12), "1.2e-99");
    EXPECT_EQ(decimal64(1024 + 398, 42), "-42"); // the sign is above the exponent's ten bits
    Types t;
    Type &type = t.make(Type::Kind::floating, "_Decimal64", 8);
    type.is_decimal = true;
    EXPECT_EQ(text(type, bytes_of(std::uint64_t{0x6c7386f26fc0ffff})), "9999999999999999"); // the second form
    EXPECT_EQ(json(type, bytes_of(std::uint64_t{0x7800000000000000})), "\"inf\"");
    EXPECT_EQ(json(type, bytes_of(std::uint64_t{0x7c00000000000000})), "null");
}

TEST(Render, ComplexIntegers) {
    Types t;
    Type &type = t.make(Type::Kind::complex, "complex int", 8);
    type.target = &t.integer(4, true);
    EXPECT_EQ(text(type, bytes_of(std::int32_t{3}, std::int32_t{-4})), "3 - 4i");
    EXPECT_EQ(text(type, bytes_of(std::int32_t{-3}, std::int32_t{4})), "-3 + 4i");
    EXPECT_EQ(json(type, bytes_of(std::int32_t{-3}, std::int32_t{-4})), "[-3,-4]");
}

} // namespace
} // namespace ktrace::test
