// Demangling, clones, and what a name that a user writes means.
#include <gtest/gtest.h>

#include "symbols/names/demangle.h"
#include "symbols/names/name_pattern.h"

namespace ktrace::symbols {
namespace {

struct Demangled {
    const char *mangled, *name, *signature;
};

class Demangles : public testing::TestWithParam<Demangled> {};
TEST_P(Demangles, NameAndSignature) {
    EXPECT_EQ(demangle(GetParam().mangled, Spelling::name), GetParam().name);
    EXPECT_EQ(demangle(GetParam().mangled, Spelling::signature), GetParam().signature);
}
INSTANTIATE_TEST_SUITE_P(
    Names, Demangles,
    testing::Values(Demangled{"_Z3fooi", "foo", "foo(int)"},
                    Demangled{"_ZNK3Foo3barEPi", "Foo::bar", "Foo::bar(int*) const"},
                    Demangled{"_Z3fooIiEvT_", "foo<int>", "foo<int>(int)"},
                    Demangled{"_ZN12_GLOBAL__N_13fooEv", "(anonymous namespace)::foo", "(anonymous namespace)::foo()"},
                    Demangled{"_ZplRK1AS1_", "operator+", "operator+(A const&, A const&)"},
                    Demangled{"_ZN3FooclEi", "Foo::operator()", "Foo::operator()(int)"},
                    Demangled{"_ZN4core3fmt9Formatter3pad17h0123456789abcdefE", "core::fmt::Formatter::pad",
                              "core::fmt::Formatter::pad"},
                    Demangled{"_RNvC6_123foo3bar", "123foo::bar", "123foo::bar"},
                    Demangled{"_RNvMCs1_1cNtB2_5Point5shift", "c::Point::shift", "c::Point::shift"}));

TEST(Demangle, LeavesWhatIsNotMangled) {
    for (const char *name : {"", "foo", "_Z", "_Zzzz", "_R", "_ZN", "_ZN3Foo"}) {
        EXPECT_FALSE(demangle(name, Spelling::name)) << name;
    }
}

TEST(Demangle, IsBoundedOnNamesThatGrow) {
    // Each substitution doubles what it refers to.
    std::string bomb = "_Z1fI1AE";
    std::string growing = "_Z1fSt4pairI1AS_ES_IS0_S0_E";
    for (int i = 1; i < 60; i++)
        growing += "S_IS" + std::string(1, static_cast<char>(i < 10 ? '0' + i : 'A' + i - 10)) + "_S_E";
    std::string nested = "_Z1f" + std::string(3000, 'P') + "i";
    std::string deep = "_Z1fI" + std::string(50000, 'P') + "iEvv";
    for (const std::string &name : {bomb, growing, nested, deep})
        EXPECT_LE(demangle(name, Spelling::signature).value_or("").size(), 65536U);
}

TEST(Clones, AreSplitFromTheirNames) {
    struct Row {
        const char *name, *base, *suffix;
        bool cold, part = false;
    };
    for (const Row &row :
         {Row{"do_work", "do_work", "", false}, Row{"do_work.constprop.0", "do_work", ".constprop.0", false},
          Row{"do_work.isra.0.part.12", "do_work", ".isra.0.part.12", false, true},
          Row{"do_work.cold", "do_work", ".cold", true},
          Row{"do_work.part.0.cold", "do_work", ".part.0.cold", true, true},
          Row{"f.lto_priv.0", "f", ".lto_priv.0", false}, Row{"f.llvm.123456789", "f", ".llvm.123456789", false},
          Row{"_Z1fi.resume", "_Z1fi", ".resume", false, true}, Row{"main.resume", "main.resume", "", false},
          Row{"f.avx2", "f.avx2", "", false}, Row{"nested.0", "nested.0", "", false}, Row{".cold", ".cold", "", false},
          Row{"", "", "", false}}) {
        auto clone = split_clone(row.name);
        EXPECT_EQ(clone.base, row.base);
        EXPECT_EQ(clone.suffix, row.suffix);
        EXPECT_EQ(clone.cold, row.cold) << row.name;
        EXPECT_EQ(clone.part, row.part) << row.name;
    }
}

struct Match {
    const char *wanted, *symbol;
    bool matches;
};

class ExactName : public testing::TestWithParam<Match> {};
TEST_P(ExactName, Matches) {
    EXPECT_EQ(NamePattern::exact(GetParam().wanted).matches(GetParam().symbol), GetParam().matches)
        << GetParam().wanted << " for " << GetParam().symbol;
}
INSTANTIATE_TEST_SUITE_P(
    Names, ExactName,
    testing::Values(
        Match{"do_work", "do_work", true}, Match{"do_work", "do_work2", false}, Match{"do_work", "xdo_work", false},
        Match{"do_work", "do_work.constprop.0", true}, Match{"do_work", "do_work.isra.0.part.1", true},
        Match{"do_work", "do_work.cold", false}, Match{"do_work.cold", "do_work.cold", true},
        Match{"do_work", "do_work.avx2", false}, Match{"memcpy", "memcpy@@GLIBC_2.14", true},
        Match{"foo", "_Z3fooi", true}, Match{"foo", "_ZL3fooi", true}, Match{"foo", "_Z3fooIiEvT_", true},
        Match{"foo<int>", "_Z3fooIiEvT_", true}, Match{"foo<long>", "_Z3fooIiEvT_", false},
        Match{"foo", "_ZN2ns3fooEi", false}, Match{"ns::foo", "_ZN2ns3fooEi", true},
        Match{"_ZN2ns3fooEi", "_ZN2ns3fooEi", true}, Match{"_ZN2ns3fooEi", "_ZN2ns3fooEi.part.0", true},
        Match{"Foo::bar(int*)", "_ZNK3Foo3barEPi", true}, Match{"Foo::bar(int *) const", "_ZNK3Foo3barEPi", true},
        Match{"f(const char *, const ns::T<const int> &, unsigned long)", "_Z1fPKcRKN2ns1TIKiEEm", true},
        Match{"f(char const*)", "_Z1fPKc", true}, Match{"f(const char*)", "_Z1fPc", false},
        Match{"Foo::bar(int)", "_ZNK3Foo3barEPi", false}, Match{"Foo::bar", "_ZNK3Foo3barEPi.constprop.0", true},
        Match{"Foo::bar", "_ZNK3Foo3barEPi.cold", false},
        Match{"(anonymous namespace)::foo", "_ZN12_GLOBAL__N_13fooEv", true},
        Match{"foo", "_ZN12_GLOBAL__N_13fooEv", true}, Match{"foo", "_Z3fooB5cxx11v", true},
        Match{"operator+", "_ZplRK1AS1_", true}, Match{"operator-", "_ZplRK1AS1_", false},
        Match{"Foo::operator()", "_ZN3FooclEi", true}, Match{"Foo::operator()(int)", "_ZN3FooclEi", true},
        Match{"Foo::operator<<", "_ZN3FoolsEi", true}, Match{"Foo::operator->", "_ZN3FooptEv", true},
        Match{"Foo::Foo", "_ZN3FooC1Ev", true}, Match{"Foo::~Foo", "_ZN3FooD2Ev", true},
        Match{"std::string::append", "_ZNSs6appendEPKc", true}, Match{"operator new", "_Znwm", true},
        Match{"operator new(unsigned long)", "_Znwm", true}, Match{"Foo::operator bool", "_ZNK3FoocvbEv", true},
        Match{"std::vector<int, std::allocator<int> >::push_back", "_ZNSt6vectorIiSaIiEE9push_backERKi", true},
        Match{"std::vector<int,std::allocator<int>>::push_back", "_ZNSt6vectorIiSaIiEE9push_backERKi", true},
        Match{"std::vector::push_back", "_ZNSt6vectorIiSaIiEE9push_backERKi", true},
        Match{"core::fmt::Formatter::pad", "_ZN4core3fmt9Formatter3pad17h0123456789abcdefE", true},
        Match{"c::Point::shift", "_RNvMCs1_1cNtB2_5Point5shift", true}, Match{"c::gen", "_RINvCs1_1c3genlEB2_", true},
        Match{"c::gen<i32>", "_RINvCs1_1c3genlEB2_", true}, Match{"c::gen::<i32>", "_RINvCs1_1c3genlEB2_", true},
        Match{"c::gen<u8>", "_RINvCs1_1c3genlEB2_", false},
        Match{"c::Pair<T>::first", "_ZN1c13Pair$LT$T$GT$5first17h0123456789abcdefE", true},
        Match{"c::Pair::first", "_ZN1c13Pair$LT$T$GT$5first17h0123456789abcdefE", true},
        Match{"c::Pai::first", "_ZN1c13Pair$LT$T$GT$5first17h0123456789abcdefE", false},
        Match{"main.Each", "main.Each[go.shape.int_0]", true}, Match{"main.Eac", "main.Each[go.shape.int_0]", false},
        Match{"main.(*List).Push", "main.(*List[go.shape.int_0]).Push", true},
        Match{"main.Each[go.shape.int_0]", "main.Each[go.shape.string_0]", false}, Match{"name", "_Z4namev", true},
        Match{"bool", "_Z4boolv", true}));

class Glob : public testing::TestWithParam<Match> {};
TEST_P(Glob, Matches) {
    EXPECT_EQ(NamePattern::glob(GetParam().wanted).matches(GetParam().symbol), GetParam().matches)
        << GetParam().wanted << " for " << GetParam().symbol;
}
INSTANTIATE_TEST_SUITE_P(Names, Glob,
                         testing::Values(Match{"do_*", "do_work", true}, Match{"do_*", "redo_work", false},
                                         Match{"do_*", "do_work.cold", false}, Match{"*k", "do_work.constprop.0", true},
                                         Match{"do_w?rk", "do_work", true}, Match{"do_[a-z]ork", "do_work", true},
                                         Match{"ns::*", "_ZN2ns3fooEi", true}, Match{"*::foo", "_ZN2ns3fooEi", true},
                                         Match{"foo*", "_ZN2ns3fooEi", false}, Match{"*Ei", "_ZN2ns3fooEi", false},
                                         Match{"_ZN2ns*", "_ZN2ns3fooEi", true}, Match{"foo(*", "_Z3fooi", true},
                                         Match{"foo(*)", "_Z3barv", false}, Match{"*", "_Z3fooi", true},
                                         Match{"Foo::operator*", "_ZN3FooclEi", true},
                                         Match{"std::str*::append", "_ZNSs6appendEPKc", true},
                                         Match{"*_string<*::c_str",
                                               "_ZNKSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE5c_strEv",
                                               true}));

TEST(ParameterList, IsNotAnyParenthesis) {
    EXPECT_EQ(parameter_list("foo"), std::string_view::npos);
    EXPECT_EQ(parameter_list("foo(int)"), 3U);
    EXPECT_EQ(parameter_list("operator()"), std::string_view::npos);
    EXPECT_EQ(parameter_list("operator()(int)"), 10U);
    EXPECT_EQ(parameter_list("(anonymous namespace)::f"), std::string_view::npos);
    EXPECT_EQ(parameter_list("f<(A)1>"), std::string_view::npos);
    EXPECT_EQ(parameter_list("operator<(A)"), 9U);
}

} // namespace
} // namespace ktrace::symbols
