// Places of parameters and results, by tables from the x86-64 psABI (3.2.3).
#include <gtest/gtest.h>

#include "tests/isa/x86_64/types.h"
#include "x86_64/x86_64.h"

namespace ktrace::test {

namespace {

using arch::X86_64;
using value::Op;
using value::Piece;
using value::Place;
using value::Type;

std::string register_name(int dwarf) {
    for (const arch::RegisterInfo &info : X86_64::registers())
        if (info.dwarf == dwarf) return std::string(info.name);
    return "?";
}

std::string describe(const Piece &piece) {
    switch (piece.kind) {
    case Piece::Kind::register_: return register_name(piece.reg) + ":" + std::to_string(piece.size);
    case Piece::Kind::bytes: return "zero:" + std::to_string(piece.size);
    case Piece::Kind::not_known: return "?:" + std::to_string(piece.size);
    default: break;
    }
    std::string text;
    for (const Op &op : piece.ops) {
        if (op.code == Op::Code::push_register) text = register_name(op.reg) + "+" + std::to_string(op.operand);
        if (op.code == Op::Code::deref) text = "[" + text + "]";
    }
    return "[" + text + "]";
}

std::string describe(const Place &place) {
    std::string text;
    for (const Piece &piece : place.pieces) text += (text.empty() ? "" : " ") + describe(piece);
    return text;
}

class X86Psabi : public ::testing::Test {
  protected:
    /// The places of parameters, divided by commas.
    std::string parameters(std::vector<const Type *> list, const Type *result = nullptr) {
        std::string text;
        for (const Place &place : X86_64::parameter_places(list, result))
            text += (text.empty() ? "" : ", ") + describe(place);
        return text;
    }
    std::string result(const Type *type) { return describe(X86_64::result_place(type)); }

    Types t;
    const Type *i1 = t.integer(1), *i4 = t.integer(4), *i8 = t.integer(8), *i16 = t.integer(16), *p = t.pointer();
    const Type *f4 = t.floating(4), *f8 = t.floating(8), *ld = t.long_double();
};

TEST_F(X86Psabi, IntegersTakeSixRegistersThenTheStack) {
    EXPECT_EQ(parameters({i4, p, i1, i8, i4, i4, i4, i1, p}),
              "di:4, si:8, dx:1, cx:8, r8:4, r9:4, [sp+8], [sp+16], [sp+24]");
}

TEST_F(X86Psabi, FloatsTakeEightRegistersOfTheirOwn) {
    EXPECT_EQ(parameters({i4, f8, f4, i4}), "di:4, xmm0:8, xmm1:4, si:4");
    EXPECT_EQ(parameters({f8, f8, f8, f8, f8, f8, f8, f8, f8, i4}),
              "xmm0:8, xmm1:8, xmm2:8, xmm3:8, xmm4:8, xmm5:8, xmm6:8, xmm7:8, [sp+8], di:4");
}

TEST_F(X86Psabi, StructsAreCutIntoEightbytes) {
    EXPECT_EQ(parameters({t.record({i8, f8})}), "di:8 xmm0:8");
    EXPECT_EQ(parameters({t.record({f8, i4})}), "xmm0:8 di:8");
    EXPECT_EQ(parameters({t.record({i4, f4})}), "di:8");
    EXPECT_EQ(parameters({t.record({f4, f4, f4})}), "xmm0:8 xmm1:4");
    EXPECT_EQ(parameters({t.record({i1, i1, i1})}), "di:3");
    EXPECT_EQ(parameters({t.record({t.array(i1, 16)})}), "di:8 si:8");
    EXPECT_EQ(parameters({t.record({t.array(t.record({f4}), 3), i4})}), "xmm0:8 di:8");
    EXPECT_EQ(parameters({t.union_of({f8, i8})}), "di:8");
    EXPECT_EQ(parameters({t.union_of({f8, f4})}), "xmm0:8");
}

TEST_F(X86Psabi, LargeOrPackedStructsLieOnTheStack) {
    EXPECT_EQ(parameters({t.record({i8, i8, i8}), i4}), "[sp+8], di:4");
    EXPECT_EQ(parameters({t.packed({i1, f8}), i4}), "[sp+8], di:4");
    EXPECT_EQ(parameters({t.packed({i1, i8, i8, i8}), t.record({i8, i8, i8})}), "[sp+8], [sp+40]");
}

/// gcc looks at the first element of an array, clang at each.
TEST_F(X86Psabi, ALaterElementAcrossItsAlignmentIsPassedInDifferentWays) {
    const Type *element = t.packed({i4, i1});
    EXPECT_EQ(parameters({t.record({t.array(element, 1)}), i4}), "di:8, si:4");
    EXPECT_EQ(parameters({t.record({t.array(element, 2)}), i4}), "?:0, ?:0");
    EXPECT_EQ(parameters({t.record({t.array(element, 4)}), i4}), "[sp+8], di:4"); // more than two registers in any case
}

TEST_F(X86Psabi, AStructThatDoesNotFitLeavesTheRegistersToOthers) {
    EXPECT_EQ(parameters({i4, i4, i4, i4, i4, t.record({i8, i8}), i4}), "di:4, si:4, dx:4, cx:4, r8:4, [sp+8], r9:4");
}

TEST_F(X86Psabi, WideIntegersNeedAnAlignedStack) {
    EXPECT_EQ(parameters({i16}), "di:8 si:8");
    EXPECT_EQ(parameters({i4, i4, i4, i4, i4, i4, i4, i16}), "di:4, si:4, dx:4, cx:4, r8:4, r9:4, [sp+8], [sp+24]");
}

TEST_F(X86Psabi, DeclaredAlignmentHoldsOnTheStack) {
    Type *aligned = t.record({i8, i8, i8, i8});
    aligned->alignment = 32;
    EXPECT_EQ(parameters({t.record({i8, i8, i8}), aligned}), "[sp+8], [sp+40]");
}

/// The debug information does not say if one that is declared with less than a member has is packed.
TEST_F(X86Psabi, AnAlignmentThatIsNotKnownLosesWhatLiesBehindOnTheStack) {
    Type *inner = t.record({i8, i8, i8, i8});
    inner->alignment = 32;
    Type *outer = t.record({inner, i8, i8});
    outer->size = 64;
    outer->alignment = 16; // by one of its members
    const Type *words = t.record({i8, i8, i8, i8, i8, i8});
    EXPECT_EQ(parameters({outer, i4}), "[sp+8], di:4");
    EXPECT_EQ(parameters({words, i4, outer, i4}), "[sp+8], di:4, ?:0, ?:0");
    EXPECT_EQ(parameters({words, t.record({outer}), i4}), "[sp+8], ?:0, ?:0");
    EXPECT_EQ(parameters({words, t.record({i8, i8}), inner}), "[sp+8], di:8 si:8, [sp+72]");
}

TEST_F(X86Psabi, LongDoublesLieOnTheStack) {
    EXPECT_EQ(parameters({t.record({i8, i8, i8}), ld, t.complex(ld), f8}), "[sp+8], [sp+40], [sp+56], xmm0:8");
    EXPECT_EQ(parameters({t.record({ld})}), "[sp+8]");
    EXPECT_EQ(parameters({t.quad()}), "xmm0:16");
}

TEST_F(X86Psabi, ComplexNumbersAreTwoFloats) {
    EXPECT_EQ(parameters({t.complex(f4), t.complex(f8)}), "xmm0:8, xmm1:8 xmm2:8");
}

TEST_F(X86Psabi, VectorsTakeOneRegister) {
    EXPECT_EQ(parameters({t.array(f4, 4, true), t.array(f4, 2, true), f8}), "xmm0:16, xmm1:8, xmm2:8");
    EXPECT_EQ(parameters({t.record({t.array(f4, 4, true)}), f8}), "xmm0:16, xmm1:8");
    EXPECT_EQ(parameters({t.array(f4, 8, true), f8}), "xmm0:32, xmm1:8");
    EXPECT_EQ(parameters({t.array(f8, 8, true), f8}), "xmm0:64, xmm1:8");
    EXPECT_EQ(parameters({t.record({t.array(f4, 4)})}), "xmm0:8 xmm1:8"); // an array is no vector
    EXPECT_EQ(parameters({t.array(f8, 0, true), f8}), "?:0, ?:0");        // gcc's debug information may lack the size
    Type *held = t.record({t.array(f8, 8, true)});
    held->members[0].type = t.array(f8, 0, true);
    EXPECT_EQ(parameters({held, f8}), "?:0, ?:0");
}

TEST_F(X86Psabi, CodeShowsTheVectorsThatItWasCompiledFor) {
    auto widest = [](std::initializer_list<int> code) {
        std::vector<std::byte> bytes;
        for (int byte : code) bytes.push_back(static_cast<std::byte>(byte));
        return X86_64::widest_vector(bytes);
    };
    EXPECT_EQ(widest({0x66, 0x0f, 0x58, 0xc1, 0xc3}), 16U);             // addpd %xmm1,%xmm0; ret
    EXPECT_EQ(widest({0x90, 0xc5, 0xf8, 0x77, 0xc3}), 32U);             // nop; vzeroupper; ret
    EXPECT_EQ(widest({0xc4, 0xc1, 0x7d, 0x58, 0xc0, 0xc3}), 32U);       // vaddpd %ymm8,%ymm0,%ymm0
    EXPECT_EQ(widest({0xc4, 0xe2, 0x70, 0xf2, 0xc2, 0xc3}), 16U);       // andn %edx,%ecx,%eax
    EXPECT_EQ(widest({0x62, 0xf1, 0xfd, 0x48, 0x58, 0xc0, 0xc3}), 64U); // vaddpd %zmm0,%zmm0,%zmm0
    EXPECT_EQ(widest({0xb8, 0x62, 0xc5, 0xc4, 0x62, 0xc3}), 16U);       // mov $0x62c4c562,%eax; ret
    EXPECT_EQ(widest({0x06, 0xc5, 0xf8, 0x77}), 16U);                   // no instruction
}

TEST_F(X86Psabi, BitFieldsAreIntegers) {
    Type *fields = t.record({i4, f4, f8});
    fields->members[0].bit_size = 3;
    EXPECT_EQ(parameters({fields}), "di:8 xmm0:8");
    Type *high = t.record({f8, i4});
    high->members[1].offset = 8;
    high->members[1].bit_offset = 20;
    high->members[1].bit_size = 30; // reaches into no other eightbyte
    EXPECT_EQ(parameters({high}), "xmm0:8 di:8");
}

TEST_F(X86Psabi, EmptyClassesAreNotPassed) {
    EXPECT_EQ(parameters({i4, t.empty(), i4}), "di:4, zero:1, si:4");
    EXPECT_EQ(result(t.empty()), "zero:1");
    Type *aligned = t.record({f8});
    aligned->size = aligned->alignment = 16;
    EXPECT_EQ(parameters({aligned}), "xmm0:8 zero:8");
}

TEST_F(X86Psabi, ClassesByReferenceArePointers) {
    Type *string = t.record({p, i8});
    string->by_reference = true;
    EXPECT_EQ(parameters({i4, string, i4}), "di:4, [si+0], dx:4");
    EXPECT_EQ(parameters({i4, i4, i4, i4, i4, i4, i4, string}),
              "di:4, si:4, dx:4, cx:4, r8:4, r9:4, [sp+8], [[sp+16]]");
    EXPECT_EQ(result(string), "[ax+0]");
}

TEST_F(X86Psabi, AResultInMemoryTakesTheFirstRegister) {
    const Type *large = t.record({i8, i8, i8});
    Type *by_reference = t.record({i4});
    by_reference->by_reference = true;
    EXPECT_EQ(parameters({i4, i4}, large), "si:4, dx:4");
    EXPECT_EQ(parameters({i4}, by_reference), "si:4");
    EXPECT_EQ(parameters({i4}, t.record({i8, i8})), "di:4");
    EXPECT_EQ(parameters({i4}, ld), "di:4");
}

TEST_F(X86Psabi, ResultsComeInTheirOwnRegisters) {
    EXPECT_EQ(result(i4), "ax:4");
    EXPECT_EQ(result(i16), "ax:8 dx:8");
    EXPECT_EQ(result(f4), "xmm0:4");
    EXPECT_EQ(result(t.record({f8, i8})), "xmm0:8 ax:8");
    EXPECT_EQ(result(t.record({f8, f8})), "xmm0:8 xmm1:8");
    EXPECT_EQ(result(t.record({i8, i8})), "ax:8 dx:8");
    EXPECT_EQ(result(t.record({i8, i8, i8})), "[ax+0]");
    EXPECT_EQ(result(ld), "st0:10 zero:6");
    EXPECT_EQ(result(t.record({ld})), "st0:10 zero:6");
    EXPECT_EQ(result(t.complex(ld)), "st0:10 zero:6 st1:10 zero:6");
    EXPECT_EQ(result(t.complex(f4)), "xmm0:8");
}

TEST_F(X86Psabi, AnUnknownTypeLosesThoseBehindIt) {
    Type *unknown = t.record({});
    unknown->incomplete = true;
    const Type *const list[] = {i4, unknown, i4};
    const auto places = X86_64::parameter_places(list, nullptr);
    EXPECT_EQ(describe(places[0]), "di:4");
    EXPECT_EQ(places[1].pieces[0].kind, Piece::Kind::not_known);
    EXPECT_EQ(places[2].pieces[0].kind, Piece::Kind::not_known);
    EXPECT_NE(places[1].why, places[2].why);
    EXPECT_FALSE(X86_64::result_place(nullptr).why.empty());
}

TEST_F(X86Psabi, CraftedTypesEnd) {
    Type *endless = t.record({i8});
    endless->members[0].type = endless; // holds itself by value
    EXPECT_EQ(X86_64::parameter_places(std::vector<const Type *>{endless}, endless).size(), 1u);
    Type *wide = t.record({t.array(t.array(i1, 1ull << 60), 1ull << 60)});
    wide->size = 16;
    EXPECT_EQ(X86_64::parameter_places(std::vector<const Type *>{wide}, wide).size(), 1u);
}

} // namespace

} // namespace ktrace::test
