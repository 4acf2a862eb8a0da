// Rust's results: what is returned as C does it, by type.
#include "symbols/dwarf/rust.h"

#include <deque>

#include <gtest/gtest.h>

namespace ktrace::symbols::test {
namespace {

using value::Type;
using Kind = value::Type::Kind;

struct Part {
    const Type *type;
    std::uint64_t offset;
};

class RustResults : public testing::Test {
  protected:
    const Type *scalar(Kind kind, std::uint64_t size, const Type *target = nullptr) {
        Type &type = types_.emplace_back();
        type.kind = kind;
        type.size = size;
        type.target = target;
        return &type;
    }
    const Type *structure(std::uint64_t size, std::initializer_list<Part> parts) {
        Type &type = types_.emplace_back();
        type.kind = Kind::structure;
        type.size = size;
        for (const Part &part : parts) {
            value::Member &member = type.members.emplace_back();
            member.type = part.type;
            member.offset = part.offset;
        }
        return &type;
    }

    std::deque<Type> types_;
    const Type *i32_ = scalar(Kind::integer, 4), *u64_ = scalar(Kind::integer, 8), *f32_ = scalar(Kind::floating, 4);
    const Type *pointer_ = scalar(Kind::pointer, 8), *nothing_ = structure(0, {});
};

TEST_F(RustResults, OneRegister) {
    for (const Type *type : {static_cast<const Type *>(nullptr), nothing_, i32_, u64_, f32_, pointer_})
        EXPECT_TRUE(rust_returns_as_c(type, false));
    const Type *non_null = structure(8, {{pointer_, 0}, {nothing_, 0}});
    EXPECT_TRUE(rust_returns_as_c(structure(8, {{non_null, 0}}), false));
    const Type *none = structure(8, {}), *some = structure(8, {{pointer_, 0}});
    EXPECT_TRUE(rust_returns_as_c(structure(8, {{none, 0}, {some, 0}}), false)) << "Option<&T>";
    EXPECT_FALSE(rust_returns_as_c(scalar(Kind::pointer, 8, scalar(Kind::function, 0)), true)) << "fn item or fn()";
    EXPECT_FALSE(rust_returns_as_c(structure(4, {{f32_, 0}}), true)) << "repr(C) has it in a general register";
    EXPECT_FALSE(rust_returns_as_c(none, true));
}

TEST_F(RustResults, TwoRegisters) {
    const Type *slice = structure(16, {{pointer_, 0}, {u64_, 8}});
    EXPECT_TRUE(rust_returns_as_c(slice, true));
    EXPECT_FALSE(rust_returns_as_c(slice, false)) << "one of them may be left out";
    EXPECT_TRUE(rust_returns_as_c(structure(16, {{i32_, 8}, {u64_, 0}}), true));
    EXPECT_TRUE(rust_returns_as_c(scalar(Kind::integer, 16), true));
    EXPECT_FALSE(rust_returns_as_c(structure(8, {{i32_, 0}, {i32_, 4}}), true)) << "C packs them";
    EXPECT_FALSE(rust_returns_as_c(structure(8, {{f32_, 0}, {f32_, 4}}), true)) << "C packs them";
    EXPECT_FALSE(rust_returns_as_c(structure(16, {{i32_, 0}, {i32_, 4}, {u64_, 8}}), true)) << "in memory";
    EXPECT_FALSE(rust_returns_as_c(structure(16, {{u64_, 8}, {pointer_, 8}, {u64_, 0}}), true)) << "an enum";
    EXPECT_FALSE(rust_returns_as_c(structure(24, {{pointer_, 0}, {u64_, 8}, {u64_, 16}}), true)) << "in memory";
    EXPECT_FALSE(rust_returns_as_c(scalar(Kind::array, 16), true));
}

} // namespace
} // namespace ktrace::symbols::test
