// AAPCS64: where parameters and results lie, a test per rule; the expected places are what aarch64-linux-gnu-gcc 12
// uses.
#include <gtest/gtest.h>

#include "words.h"

namespace ktrace::arch::test {
namespace {

using value::Op;
using value::Piece;
using value::Place;
using value::Type;
using Kind = Type::Kind;

/// A place in one line: x0 · x0+x1:4 · v0:8+v1:8 · [sp+8] · [x2+0] · *[sp+0] · none · entry x8 · unavailable
std::string text(const Place &place) {
    std::string all;
    auto reg = [](unsigned n) {
        return n >= 64 ? "v" + std::to_string(n - 64) : n == 31 ? "sp" : "x" + std::to_string(n);
    };
    for (const Piece &piece : place.pieces) {
        if (!all.empty()) all += "+";
        switch (piece.kind) {
        case Piece::Kind::register_:
            all += reg(piece.reg) + (piece.size != 0 ? ":" + std::to_string(piece.size) : "");
            break;
        case Piece::Kind::memory:
            if (piece.ops[0].code == Op::Code::entry_register) return "entry " + reg(piece.ops[0].reg);
            all += piece.ops.size() == 2 ? "*" : "";
            all += "[" + reg(piece.ops[0].reg) + "+" + std::to_string(piece.ops[0].operand) + "]";
            break;
        case Piece::Kind::bytes: return piece.bytes.empty() ? "none" : "bytes";
        default: return "unavailable";
        }
    }
    return all;
}

class Arm64Convention : public testing::Test {
  protected:
    Type *scalar(Kind kind, std::uint64_t size) {
        Type &type = table_.make();
        type.kind = kind;
        type.size = size;
        return &type;
    }
    Type *integer(std::uint64_t size) { return scalar(Kind::integer, size); }
    Type *floating(std::uint64_t size) { return scalar(Kind::floating, size); }
    Type *array(const Type *of, std::uint64_t count) {
        Type *type = scalar(Kind::array, of->size * count);
        type->target = of;
        type->count = count;
        return type;
    }
    Type *vector(const Type *of, std::uint64_t count) {
        Type *type = array(of, count);
        type->is_vector = true;
        return type;
    }
    Type *structure(std::initializer_list<const Type *> members, std::uint64_t size, Kind kind = Kind::structure) {
        Type *type = scalar(kind, size);
        for (const Type *member : members) type->members.push_back({.name = "m", .type = member});
        return type;
    }
    static std::string places(std::initializer_list<const Type *> parameters, const Type *result = nullptr) {
        std::string all;
        for (const Place &place : Arm64::parameter_places(std::span(parameters.begin(), parameters.size()), result))
            all += (all.empty() ? "" : " ") + text(place);
        return all;
    }

    value::TypeTable table_;
    const Type *int_ = integer(4), *long_ = integer(8), *int128_ = integer(16), *char_ = scalar(Kind::char_, 1);
    const Type *float_ = floating(4), *double_ = floating(8), *quad_ = floating(16);
    const Type *pointer_ = scalar(Kind::pointer, 8);
};

TEST_F(Arm64Convention, ScalarsTakeRegistersOfTheirOwnKind) {
    EXPECT_EQ(places({int_, double_, pointer_, float_, char_}), "x0 v0 x1 v1 x2");
    EXPECT_EQ(places({scalar(Kind::enumeration, 4), scalar(Kind::bool_, 1), scalar(Kind::reference, 8)}), "x0 x1 x2");
    EXPECT_EQ(places({quad_, floating(2)}), "v0 v1");
}

TEST_F(Arm64Convention, NinthIntegerAndNinthFloatGoToTheStack) {
    EXPECT_EQ(places({int_, int_, int_, int_, int_, int_, int_, int_, char_, long_}),
              "x0 x1 x2 x3 x4 x5 x6 x7 [sp+0] [sp+8]");
    EXPECT_EQ(places({float_, float_, float_, float_, float_, float_, float_, float_, float_, quad_, int_}),
              "v0 v1 v2 v3 v4 v5 v6 v7 [sp+0] [sp+16] x0");
}

TEST_F(Arm64Convention, Int128StartsAtAnEvenRegister) {
    EXPECT_EQ(places({int128_, int_}), "x0:8+x1:8 x2");
    EXPECT_EQ(places({int_, int128_, int_}), "x0 x2:8+x3:8 x4");
    EXPECT_EQ(places({int_, int_, int_, int_, int_, int_, int_, int128_, int_}), "x0 x1 x2 x3 x4 x5 x6 [sp+0] [sp+16]")
        << "x7 is left out";
}

TEST_F(Arm64Convention, SmallCompositesInGeneralRegisters) {
    EXPECT_EQ(places({structure({int_}, 4), int_}), "x0 x1");
    EXPECT_EQ(places({structure({int_, long_}, 16), int_}), "x0:8+x1:8 x2");
    EXPECT_EQ(places({structure({int_, int_, int_}, 12)}), "x0:8+x1:4");
    EXPECT_EQ(places({int_, structure({int128_}, 16)}), "x0 x2:8+x3:8");
    EXPECT_EQ(places({structure({float_, int_}, 8)}), "x0") << "mixed: not homogeneous";
}

TEST_F(Arm64Convention, CompositeThatDoesNotFitUsesUpTheRegisters) {
    EXPECT_EQ(places({int_, int_, int_, int_, int_, int_, int_, structure({long_, long_}, 16), int_}),
              "x0 x1 x2 x3 x4 x5 x6 [sp+0] [sp+16]");
}

TEST_F(Arm64Convention, LargeCompositesByPointerToACopy) {
    const Type *large = structure({long_, long_, long_}, 24);
    EXPECT_EQ(places({large, int_}), "[x0+0] x1");
    EXPECT_EQ(places({int_, int_, int_, int_, int_, int_, int_, int_, large, int_}),
              "x0 x1 x2 x3 x4 x5 x6 x7 *[sp+0] [sp+8]");
}

TEST_F(Arm64Convention, NonTrivialClassByPointer) {
    Type *string = structure({pointer_}, 8);
    string->by_reference = true;
    EXPECT_EQ(places({string, int_}), "[x0+0] x1");
}

TEST_F(Arm64Convention, HomogeneousAggregatesInSimdRegisters) {
    EXPECT_EQ(places({structure({float_, float_}, 8), float_}), "v0:4+v1:4 v2");
    EXPECT_EQ(places({structure({double_, double_, double_, double_}, 32), int_}), "v0:8+v1:8+v2:8+v3:8 x0");
    EXPECT_EQ(places({structure({array(double_, 3)}, 24)}), "v0:8+v1:8+v2:8");
    EXPECT_EQ(places({structure({structure({float_}, 4), float_}, 8)}), "v0:4+v1:4");
    EXPECT_EQ(places({structure({double_}, 8)}), "v0");
    EXPECT_EQ(places({structure({double_, array(double_, 2)}, 24, Kind::union_)}), "[x0+0]") << "sizes do not agree";
}

TEST_F(Arm64Convention, UnionIsHomogeneousByItsLargestMember) {
    EXPECT_EQ(places({structure({float_, array(float_, 3)}, 12, Kind::union_)}), "v0:4+v1:4+v2:4");
    EXPECT_EQ(places({structure({float_, int_}, 4, Kind::union_)}), "x0");
}

TEST_F(Arm64Convention, FiveFloatsAreNotHomogeneous) {
    EXPECT_EQ(places({structure({array(float_, 5)}, 20)}), "[x0+0]");
    EXPECT_EQ(places({structure({array(float_, 1000000000), array(float_, 1000000000)}, 8000000000)}), "[x0+0]");
}

TEST_F(Arm64Convention, HomogeneousAggregateThatDoesNotFitUsesUpTheRegisters) {
    const Type *three = structure({double_, double_, double_}, 24);
    EXPECT_EQ(places({three, three, three, double_, int_}), "v0:8+v1:8+v2:8 v3:8+v4:8+v5:8 [sp+0] [sp+24] x0");
    const Type *floats = structure({float_, float_, float_}, 12);
    EXPECT_EQ(places({three, three, floats, float_}), "v0:8+v1:8+v2:8 v3:8+v4:8+v5:8 [sp+0] [sp+16]");
}

TEST_F(Arm64Convention, BaseClassesCountStaticMembersDoNot) {
    Type *derived = structure({double_}, 16);
    derived->members.insert(derived->members.begin(), {.name = "", .type = structure({double_}, 8), .is_base = true});
    derived->members.push_back({.name = "count", .type = int_, .is_static = true});
    EXPECT_EQ(places({derived}), "v0:8+v1:8");
    Type *tagged = structure({float_}, 4);
    tagged->members.insert(tagged->members.begin(), {.name = "", .type = structure({}, 1), .is_base = true});
    EXPECT_EQ(places({tagged}), "v0");
}

TEST_F(Arm64Convention, ComplexIsTwoFloats) {
    Type *complex = scalar(Kind::complex, 16);
    complex->target = double_;
    EXPECT_EQ(places({complex, double_}), "v0:8+v1:8 v2");
}

/// An extension of compilers; they pass it as a structure of two integers.
TEST_F(Arm64Convention, ComplexIntegersAreInGeneralRegisters) {
    Type *small = scalar(Kind::complex, 8), *large = scalar(Kind::complex, 16);
    small->target = int_;
    large->target = long_;
    EXPECT_EQ(places({small, large, structure({small}, 8), double_}), "x0 x1:8+x2:8 x3 v0");
}

TEST_F(Arm64Convention, VectorsAndFloatsAreNotHomogeneous) {
    const Type *two_floats = vector(float_, 2), *small = vector(float_, 1);
    EXPECT_EQ(places({structure({double_, two_floats}, 16), int_}), "x0:8+x1:8 x2");
    EXPECT_EQ(places({structure({two_floats, vector(int_, 2)}, 16), int_}), "v0:8+v1:8 x0");
    EXPECT_EQ(places({structure({small}, 4), float_}), "x0 v0") << "none of AAPCS64's";
    EXPECT_EQ(places({structure({array(structure({}, 0), 2), vector(float_, 4)}, 16)}), "v0") << "of one vector";
    EXPECT_EQ(places({int_, small, int_}), "x0 unavailable unavailable");
}

TEST_F(Arm64Convention, VectorsInSimdRegisters) {
    EXPECT_EQ(places({vector(int_, 4), vector(char_, 8), int_}), "v0 v1 x0");
    EXPECT_EQ(places({vector(int_, 8), int_}), "[x0+0] x1") << "none of AAPCS64's";
    EXPECT_EQ(text(Arm64::result_place(vector(float_, 4))), "v0");
}

TEST_F(Arm64Convention, HomogeneousVectors) {
    EXPECT_EQ(places({structure({vector(float_, 4), vector(int_, 4)}, 32), int_}), "v0:16+v1:16 x0");
    EXPECT_EQ(places({structure({array(float_, 4)}, 16)}), "v0:4+v1:4+v2:4+v3:4");
}

TEST_F(Arm64Convention, EmptyStructs) {
    EXPECT_EQ(places({structure({}, 0), int_}), "none x0") << "C: not passed";
    EXPECT_EQ(places({structure({}, 1), int_}), "x0 x1") << "C++: one byte";
}

TEST_F(Arm64Convention, AlignmentOfTheStructItselfDoesNotCount) {
    Type *aligned = structure({long_, long_}, 16);
    aligned->alignment = 16;
    EXPECT_EQ(places({int_, aligned}), "x0 x1:8+x2:8");
    EXPECT_EQ(places({int_, structure({aligned}, 16)}), "x0 x2:8+x3:8") << "that of its members does";
}

TEST_F(Arm64Convention, NothingIsSaidBehindAnUnknownType) {
    Type *declared = structure({}, 0);
    declared->incomplete = true;
    EXPECT_EQ(places({int_, declared, int_}), "x0 unavailable unavailable");
    EXPECT_EQ(places({int_, nullptr, int_}), "x0 unavailable unavailable");
    const Type *parameters[] = {declared};
    EXPECT_FALSE(Arm64::parameter_places(parameters, nullptr)[0].why.empty());
    Type *null_pointer = scalar(Kind::unknown, 0);
    null_pointer->name = "decltype(nullptr)";
    EXPECT_EQ(places({null_pointer, int_}), "x0 x1");
}

TEST_F(Arm64Convention, TypesNestedInThemselvesEnd) {
    Type *loop = structure({}, 16);
    loop->members.push_back({.name = "self", .type = loop});
    loop->members.push_back({.name = "again", .type = loop});
    EXPECT_EQ(places({loop}), "x0:8+x1:8");
}

TEST_F(Arm64Convention, Results) {
    EXPECT_EQ(text(Arm64::result_place(nullptr)), "unavailable");
    EXPECT_EQ(text(Arm64::result_place(scalar(Kind::void_, 0))), "unavailable");
    EXPECT_EQ(text(Arm64::result_place(int_)), "x0");
    EXPECT_EQ(text(Arm64::result_place(double_)), "v0");
    EXPECT_EQ(text(Arm64::result_place(quad_)), "v0");
    EXPECT_EQ(text(Arm64::result_place(int128_)), "x0:8+x1:8");
    EXPECT_EQ(text(Arm64::result_place(structure({long_, int_}, 16))), "x0:8+x1:8");
    EXPECT_EQ(text(Arm64::result_place(structure({double_, double_, double_, double_}, 32))), "v0:8+v1:8+v2:8+v3:8");
}

TEST_F(Arm64Convention, ResultInMemoryLiesWhereX8PointedAtEntry) {
    const Type *large = structure({long_, long_, long_}, 24);
    EXPECT_EQ(text(Arm64::result_place(large)), "entry x8");
    EXPECT_EQ(places({int_}, large), "x0") << "and takes no parameter register";
    Type *string = structure({pointer_}, 8);
    string->by_reference = true;
    EXPECT_EQ(text(Arm64::result_place(string)), "entry x8");
}

} // namespace
} // namespace ktrace::arch::test
