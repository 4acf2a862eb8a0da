// Types: layouts as the compiler itself prints them (offsetof, sizeof), names as C writes them, what is passed by
// reference.
#include <sstream>

#include <gtest/gtest.h>

#include "dwarf_program.h"

namespace ktrace::symbols::test {
namespace {

using value::Member;
using value::Type;

const char *const c_source = R"(
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <wchar.h>
#include <complex.h>
typedef struct node { struct node *next; int v; } node_t;
enum color { red, green = 5, blue = -1 };
enum flags { low = 1, high = 0xffffffffu };
struct bits { unsigned a : 3; int b : 5; long c : 40; unsigned char d; unsigned e : 1; };
struct __attribute__((packed)) packed { char a; int b; short c; };
struct outer { int k; union { int i; float f; }; struct { char c1; double d1; } named; node_t nodes[2][3]; };
struct flex { int n; char data[]; };
struct opaque;
typedef int (*callback)(const char *, int);
typedef uint8_t my_byte;
typedef node_t *list;
struct all {
    struct bits *bits; struct packed packed; struct outer outer; struct flex *flex; struct opaque *opaque; callback cb;
    char c; signed char sc; unsigned char uc; uint8_t u8; int8_t i8; my_byte mb; wchar_t w; _Bool b; short s;
    unsigned long ul; float f; double d; long double ld; double complex z; __int128 wide; enum color color;
    enum flags flags; const char *const name; volatile int v; char *const *argv; int (*rows)[4]; void *any;
    list head; const node_t *constant; int (*ops[3])(void); char buffer[254];
};
struct all global;
__attribute__((noinline)) int use(struct all *a, struct bits *b) { return a->c + (int)b->c; }
#define P(m) printf(#m " %zu %zu\n", offsetof(struct all, m), sizeof(((struct all *)0)->m))
int main(void) {
    struct bits bits = {1, 2, 3, 4, 1};
    P(bits); P(packed); P(outer); P(flex); P(opaque); P(cb); P(c); P(sc); P(uc); P(u8); P(i8); P(mb); P(w); P(b); P(s);
    P(ul); P(f); P(d); P(ld); P(z); P(wide); P(color); P(flags); P(name); P(v); P(argv); P(rows); P(any); P(head);
    P(constant); P(ops); P(buffer);
    printf("= %zu\n", sizeof(struct all));
    return use(&global, &bits);
}
)";

const Member &member(const Type *type, const std::string &name) {
    static const Member none;
    EXPECT_NE(type, nullptr);
    if (type == nullptr) return none;
    for (const Member &m : type->members)
        if (m.name == name) return m;
    ADD_FAILURE() << type->name << " has no member " << name;
    return none;
}

/// The programs of the tests below: one of each build.
class Described : public testing::TestWithParam<Build> {
  protected:
    void SetUp() override {
        program_ = std::make_unique<Program>(Program::compile(GetParam(), c_source));
        auto variable = program_->dwarf().global("global", 0);
        ASSERT_TRUE(variable) << variable.error().message;
        all_ = variable->type;
    }
    const Type *of(const std::string &name) const { return member(all_, name).type; }
    std::string name_of(const std::string &name) const { return of(name)->name; }

    std::unique_ptr<Program> program_;
    const Type *all_ = nullptr;
};

class Layout : public Described {};
class Types : public Described {};

TEST_P(Layout, IsTheCompilersOwn) {
    std::istringstream truth(program_->run());
    std::string name;
    std::uint64_t offset = 0, size = 0;
    int members = 0;
    while (truth >> name && name != "=") {
        truth >> offset >> size;
        EXPECT_EQ(member(all_, name).offset, offset) << name;
        EXPECT_EQ(of(name)->size, size) << name;
        ++members;
    }
    truth >> size;
    EXPECT_EQ(members, 32);
    EXPECT_EQ(all_->size, size);
    EXPECT_EQ(all_->members.size(), 32U);
}

TEST_P(Types, NamesAreWrittenAsInC) {
    EXPECT_EQ(all_->name, "struct all");
    EXPECT_EQ(name_of("bits"), "struct bits *");
    EXPECT_EQ(name_of("cb"), "callback");
    EXPECT_EQ(name_of("name"), "const char *const");
    EXPECT_EQ(name_of("v"), "volatile int");
    EXPECT_EQ(name_of("argv"), "char *const *");
    EXPECT_EQ(name_of("rows"), "int (*)[4]");
    EXPECT_EQ(name_of("any"), "void *");
    EXPECT_EQ(name_of("head"), "list");
    EXPECT_EQ(name_of("constant"), "const node_t *");
    EXPECT_EQ(name_of("ops"), "int (*[3])(void)");
    EXPECT_EQ(name_of("color"), "enum color");
    EXPECT_EQ(name_of("mb"), "my_byte");
}

TEST_P(Types, KindsAreThoseOfTheUnderlyingType) {
    EXPECT_EQ(of("cb")->kind, Type::Kind::pointer);
    ASSERT_NE(of("cb")->target, nullptr);
    EXPECT_EQ(of("cb")->target->kind, Type::Kind::function);
    EXPECT_EQ(of("any")->kind, Type::Kind::pointer);
    EXPECT_EQ(of("b")->kind, Type::Kind::bool_);
    EXPECT_EQ(of("ld")->kind, Type::Kind::floating);
    EXPECT_EQ(of("z")->kind, Type::Kind::complex);
    ASSERT_NE(of("z")->target, nullptr);
    EXPECT_EQ(of("z")->target->size, 8U);
    EXPECT_EQ(of("wide")->kind, Type::Kind::integer);
    EXPECT_TRUE(of("wide")->is_signed);
    EXPECT_FALSE(of("ul")->is_signed);
    EXPECT_EQ(of("buffer")->count, 254U);
    EXPECT_EQ(of("ops")->count, 3U);
}

TEST_P(Types, CharactersAreNotSmallIntegers) {
    for (const char *name : {"c", "sc", "uc", "w"}) EXPECT_EQ(of(name)->kind, Type::Kind::char_) << name;
    for (const char *name : {"u8", "i8", "mb"}) EXPECT_EQ(of(name)->kind, Type::Kind::integer) << name;
    EXPECT_EQ(of("c")->is_signed, std::is_signed_v<char>);
    EXPECT_TRUE(of("i8")->is_signed);
    EXPECT_FALSE(of("uc")->is_signed);
    EXPECT_FALSE(of("u8")->is_signed);
}

TEST_P(Types, BitFields) {
    const Type *bits = of("bits")->target;
    auto first_bit = [&](const char *name) { return member(bits, name).offset * 8 + member(bits, name).bit_offset; };
    EXPECT_EQ(first_bit("a"), 0U);
    EXPECT_EQ(first_bit("b"), 3U);
    EXPECT_EQ(first_bit("c"), 8U);
    EXPECT_EQ(member(bits, "c").bit_size, 40U);
    EXPECT_EQ(first_bit("e"), 56U);
    EXPECT_EQ(member(bits, "d").bit_size, 0U);
    EXPECT_EQ(member(bits, "d").offset, 6U);
}

TEST_P(Types, AnonymousMembersAndArraysOfArrays) {
    const Type *outer = of("outer");
    ASSERT_EQ(outer->members.size(), 4U);
    EXPECT_EQ(outer->members[1].name, "");
    EXPECT_EQ(outer->members[1].offset, 4U);
    EXPECT_EQ(outer->members[1].type->kind, Type::Kind::union_);
    EXPECT_EQ(member(outer->members[1].type, "f").type->kind, Type::Kind::floating);
    EXPECT_EQ(member(member(outer, "named").type, "d1").offset, 8U);
    const Type *rows = member(outer, "nodes").type;
    EXPECT_EQ(rows->count, 2U);
    ASSERT_NE(rows->target, nullptr);
    EXPECT_EQ(rows->target->count, 3U);
    EXPECT_EQ(rows->target->size, 48U);
    EXPECT_EQ(rows->target->target->name, "node_t");
    const Type *flexible = member(of("flex")->target, "data").type;
    EXPECT_EQ(flexible->kind, Type::Kind::array);
    EXPECT_EQ(flexible->count, 0U);
}

TEST_P(Types, Enumerations) {
    const Type *color = of("color");
    ASSERT_EQ(color->enumerators.size(), 3U);
    EXPECT_EQ(color->enumerators[1].name, "green");
    EXPECT_EQ(color->enumerators[1].value, 5);
    EXPECT_EQ(color->enumerators[2].value, -1);
    EXPECT_TRUE(color->is_signed);
    const Type *flags = of("flags");
    EXPECT_FALSE(flags->is_signed);
    EXPECT_EQ(flags->enumerators[1].value, 0xffffffffLL);
}

TEST_P(Types, CyclesEnd) {
    const Type *node = of("head")->target;
    const Type *next = member(node, "next").type;
    EXPECT_EQ(member(next->target, "v").offset, 8U);
    EXPECT_EQ(next->target->name, "struct node");
    EXPECT_TRUE(of("opaque")->target->incomplete);
}

TEST_P(Types, WhatIsFarBehindPointersComesWhenAskedFor) {
    const Type *type = all_;
    const Member *next = &member(of("head")->target, "next");
    for (int hop = 0; hop < 20; ++hop) {
        type = program_->dwarf().complete(next->type);
        ASSERT_NE(type->target, nullptr);
        next = &member(type->target, "next");
    }
    EXPECT_EQ(next->offset, 0U);
}

INSTANTIATE_TEST_SUITE_P(Dwarf, Layout, testing::ValuesIn(all_builds()),
                         [](const auto &each) { return each.param.name(); });

INSTANTIATE_TEST_SUITE_P(Dwarf, Types, testing::ValuesIn(builds_at("-O0")),
                         [](const auto &each) { return each.param.name(); });

const char *const class_source = R"(
#include <memory>
#include <string>
#include <cstdio>
namespace ns {
struct Base { int b; virtual ~Base() {} virtual int f() { return 1; } };
struct Trivial { int a; double d; };
struct Copyable { Copyable(const Copyable &o) : x(o.x) {} Copyable(int v) : x(v) {} int x; };
struct Defaulted { Defaulted() = default; Defaulted(const Defaulted &) = default; ~Defaulted() = default; int x; };
struct MoveOnly { MoveOnly(int v) : x(v) {} MoveOnly(const MoveOnly &) = delete; MoveOnly(MoveOnly &&) = default; int x; };
struct Destroyed { ~Destroyed() { std::puts("d"); } int x; };
struct Holder { std::string s; };
struct Owner { std::unique_ptr<int> p; };
struct Pointer { std::string *s; int k; };
struct Row { Destroyed all[3]; };
struct Derived : Destroyed { int y; };
struct Virtual : virtual Trivial { int z; };
template <class T> struct Same { Same(const Same<T> &o) : t(o.t) {} Same() = default; T t; };
enum class Mode : unsigned char { off, on = 200 };
class Foo : public Base, public Trivial {
  public:
    int bar(const std::string &s, std::string &&r, Mode m) const;
    int (Foo::*method)(int);
    int Foo::*field;
    static int shared;
    char16_t c16; char32_t c32; char8_t c8; wchar_t w; decltype(nullptr) null;
};
int Foo::shared = 4;
int Foo::bar(const std::string &s, std::string &&r, Mode m) const { return s.size() + r.size() + int(m); }
struct All {
    Trivial trivial; Copyable copyable{1}; Defaulted defaulted; MoveOnly moveonly{1}; Destroyed destroyed; Holder holder;
    Owner owner; Pointer pointer; Row row; Derived derived; Virtual virtual_; Same<int> same; Foo foo; Base base;
};
All all;
}
int main() { return ns::all.foo.bar("x", "y", ns::Mode::on); }
)";

class Classes : public testing::TestWithParam<Build> {};

TEST_P(Classes, PassedByReferenceAsTheAbiSays) {
    Program program = Program::compile(GetParam(), class_source, true);
    auto all = program.dwarf().global("ns::all", 0);
    ASSERT_TRUE(all) << all.error().message;
    for (const char *name : {"trivial", "defaulted", "moveonly", "pointer"})
        EXPECT_FALSE(member(all->type, name).type->by_reference) << name;
    for (const char *name :
         {"copyable", "destroyed", "holder", "owner", "row", "derived", "virtual_", "same", "foo", "base"})
        EXPECT_TRUE(member(all->type, name).type->by_reference) << name;
}

TEST_P(Classes, MembersBasesAndQualifiedNames) {
    Program program = Program::compile(GetParam(), class_source, true);
    auto functions = program.dwarf().functions_named("ns::Foo::bar");
    ASSERT_EQ(functions.size(), 1U);
    const Function &bar = *functions[0];
    EXPECT_EQ(bar.qualified, "ns::Foo::bar");
    EXPECT_EQ(bar.entry, program.symbol(bar.linkage));
    ASSERT_EQ(bar.parameters.size(), 4U);
    EXPECT_TRUE(bar.parameters[0].artificial);
    EXPECT_EQ(bar.parameters[1].type->kind, Type::Kind::reference);
    EXPECT_EQ(bar.parameters[1].type->name, "const std::string &");
    EXPECT_EQ(bar.parameters[2].type->name, "std::string &&");
    EXPECT_EQ(bar.parameters[3].type->name, "ns::Mode");
    EXPECT_EQ(bar.parameters[3].type->size, 1U);
    EXPECT_EQ(bar.parameters[3].type->enumerators.at(1).value, 200);
    const Type *foo = bar.parameters[0].type->target;
    EXPECT_EQ(foo->name, "const ns::Foo");
    ASSERT_GE(foo->members.size(), 2U);
    EXPECT_TRUE(foo->members[0].is_base);
    EXPECT_EQ(foo->members[0].type->name, "ns::Base");
    EXPECT_EQ(foo->members[1].offset, 16U);
    EXPECT_EQ(member(foo, "method").type->kind, Type::Kind::structure) << "two words, with a C++ ABI's names";
    EXPECT_EQ(member(foo, "method").type->size, 16U);
    EXPECT_EQ(member(foo, "field").type->size, 8U);
    EXPECT_TRUE(member(foo, "shared").is_static);
    for (const char *name : {"c8", "c16", "c32", "w"})
        EXPECT_EQ(member(foo, name).type->kind, Type::Kind::char_) << name;
    for (const char *spelling : {"bar", "Foo::bar"}) EXPECT_EQ(program.dwarf().functions_named(spelling).size(), 1U);
    EXPECT_TRUE(program.dwarf().functions_named("oo::bar").empty());
    EXPECT_TRUE(program.dwarf().functions_named("other::bar").empty());
}

INSTANTIATE_TEST_SUITE_P(Dwarf, Classes, testing::ValuesIn(builds_at("-O0")),
                         [](const auto &each) { return each.param.name(); });

} // namespace
} // namespace ktrace::symbols::test
