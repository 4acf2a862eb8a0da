// SPEC's grammar: what each text means, and where an error points.
#include "probe/spec.h"

#include <gtest/gtest.h>

namespace ktrace::probe {
namespace {

using Form = Spec::Form;

struct Row {
    const char *text;
    Form form;
    const char *module = "", *symbol = "", *version = "";
    std::uint64_t offset = 0;
    const char *file = "";
    int line = 0;
    std::uint64_t address = 0;
};

class Parses : public testing::TestWithParam<Row> {};

TEST_P(Parses, Spec) {
    const Row &row = GetParam();
    auto spec = parse_spec(row.text);
    ASSERT_TRUE(spec) << row.text << ": " << spec.error().message;
    EXPECT_EQ(spec->form, row.form) << row.text;
    EXPECT_EQ(spec->text, row.text);
    EXPECT_EQ(spec->module, row.module) << row.text;
    EXPECT_EQ(spec->symbol, row.symbol) << row.text;
    EXPECT_EQ(spec->version, row.version) << row.text;
    EXPECT_EQ(spec->offset, row.offset) << row.text;
    EXPECT_EQ(spec->file, row.file) << row.text;
    EXPECT_EQ(spec->line, row.line) << row.text;
    EXPECT_EQ(spec->address, row.address) << row.text;
}

INSTANTIATE_TEST_SUITE_P(
    Symbols, Parses,
    testing::Values(
        Row{"do_work", Form::symbol, "", "do_work"}, Row{"do_work+4", Form::symbol, "", "do_work", "", 4},
        Row{"do_work+0x1f", Form::symbol, "", "do_work", "", 0x1f}, Row{"libc:malloc", Form::symbol, "libc", "malloc"},
        Row{"libc.so.6:malloc+0x10", Form::symbol, "libc.so.6", "malloc", "", 16},
        Row{"/usr/lib/x/libc.so.6:malloc", Form::symbol, "/usr/lib/x/libc.so.6", "malloc"},
        Row{"./worker:do_work", Form::symbol, "./worker", "do_work"},
        Row{"libstdc++.so.6:f", Form::symbol, "libstdc++.so.6", "f"},
        Row{"memcpy@GLIBC_2.14", Form::symbol, "", "memcpy", "GLIBC_2.14"},
        Row{"libc:memcpy@@GLIBC_2.14+4", Form::symbol, "libc", "memcpy", "GLIBC_2.14", 4},
        Row{"Foo::bar", Form::symbol, "", "Foo::bar"}, Row{"Foo::bar(int*)", Form::symbol, "", "Foo::bar(int*)"},
        Row{"lib:Foo::bar", Form::symbol, "lib", "Foo::bar"}, Row{"lib:::f", Form::symbol, "lib", "f"},
        Row{"::f", Form::symbol, "", "f"}, Row{"operator+", Form::symbol, "", "operator+"},
        Row{"operator++", Form::symbol, "", "operator++"}, Row{"operator++4", Form::symbol, "", "operator+", "", 4},
        Row{"operator+4", Form::symbol, "", "operator", "", 4}, Row{"A::operator+=", Form::symbol, "", "A::operator+="},
        Row{"operator()", Form::symbol, "", "operator()"},
        Row{"A::operator()(int)+8", Form::symbol, "", "A::operator()(int)", "", 8},
        Row{"operator<<", Form::symbol, "", "operator<<"}, Row{"lib:operator<", Form::symbol, "lib", "operator<"},
        Row{"lib:A::operator->", Form::symbol, "lib", "A::operator->"},
        Row{"operator new", Form::symbol, "", "operator new"},
        Row{"operator new[](unsigned long)", Form::symbol, "", "operator new[](unsigned long)"},
        Row{"(anonymous namespace)::f", Form::symbol, "", "(anonymous namespace)::f"},
        Row{"lib:(anonymous namespace)::f+2", Form::symbol, "lib", "(anonymous namespace)::f", "", 2},
        Row{"std::map<int, std::string>::find", Form::symbol, "", "std::map<int, std::string>::find"},
        Row{"lib:f<a::b, (c)1>(d::e)", Form::symbol, "lib", "f<a::b, (c)1>(d::e)"},
        Row{"f[abi:cxx11]", Form::symbol, "", "f[abi:cxx11]"}, Row{"do_*", Form::symbol, "", "do_*"},
        Row{"lib*:do_[a-z]?", Form::symbol, "lib*", "do_[a-z]?"},
        Row{"std::vector<*::push_back", Form::symbol, "", "std::vector<*::push_back"},
        Row{"do_work.constprop.0", Form::symbol, "", "do_work.constprop.0"},
        Row{"f<1+2>", Form::symbol, "", "f<1+2>"}));

INSTANTIATE_TEST_SUITE_P(
    Places, Parses,
    testing::Values(Row{"worker.c:12", Form::line, "", "", "", 0, "worker.c", 12},
                    Row{"src/worker.c:12", Form::line, "", "", "", 0, "src/worker.c", 12},
                    Row{"libfoo:a.c:7", Form::line, "libfoo", "", "", 0, "a.c", 7},
                    Row{"/bin/x:/src/a.c:7", Form::line, "/bin/x", "", "", 0, "/src/a.c", 7},
                    Row{"0x401136", Form::address, "", "", "", 0, "", 0, 0x401136},
                    Row{"0xffffffffffffffff", Form::address, "", "", "", 0, "", 0, UINT64_MAX},
                    Row{"worker:0x1136", Form::module_address, "worker", "", "", 0, "", 0, 0x1136},
                    Row{"libstdc++:0x4000", Form::module_address, "libstdc++", "", "", 0, "", 0, 0x4000},
                    Row{"/lib/a+b/c.so:0x4000", Form::module_address, "/lib/a+b/c.so", "", "", 0, "", 0, 0x4000}));

struct Wrong {
    const char *text;
    int column, width;
    const char *message;
};

class Refuses : public testing::TestWithParam<Wrong> {};

TEST_P(Refuses, Spec) {
    const Wrong &row = GetParam();
    auto spec = parse_spec(row.text);
    ASSERT_FALSE(spec) << row.text;
    EXPECT_EQ(spec.error().kind, Error::Kind::usage);
    EXPECT_EQ(spec.error().source, row.text);
    EXPECT_EQ(spec.error().column, row.column) << row.text << ": " << spec.error().message;
    EXPECT_EQ(spec.error().width, row.width) << row.text << ": " << spec.error().message;
    EXPECT_NE(spec.error().message.find(row.message), std::string::npos) << row.text << ": " << spec.error().message;
}

constexpr const char *both = "a symbol and an address together";
INSTANTIATE_TEST_SUITE_P(
    Mistakes, Refuses,
    testing::Values(Wrong{"", 0, 1, "empty"}, Wrong{"  ", 0, 1, "empty"},
                    Wrong{"do_work+", 7, 1, "a number is missing"}, Wrong{"do_work+foo", 8, 3, "not a number"},
                    Wrong{"do_work+0xzz", 8, 4, "not a number"}, Wrong{"do_work+12ab", 8, 4, "not a number"},
                    Wrong{"do_work+99999999999999999999", 8, 20, "too large"}, Wrong{"+4", 0, 2, "missing"},
                    Wrong{"libc:", 4, 1, "nothing follows"}, Wrong{":foo", 0, 1, "missing"},
                    Wrong{"1234", 0, 4, "in hex"}, Wrong{"0x12zz", 4, 1, "not a hex"}, Wrong{"0x", 2, 1, "not a hex"},
                    Wrong{"0x12+4", 4, 2, "no offset"}, Wrong{"0x11111111111111111", 0, 19, "larger"},
                    Wrong{"a.c:0", 4, 1, "count from 1"}, Wrong{"a.c:12+4", 6, 2, "no offset"},
                    Wrong{"a.c:12x", 6, 1, "neither"}, Wrong{"do_work+0x10:0x4000", 13, 6, both},
                    Wrong{"libc:malloc:0x10", 12, 4, both}, Wrong{"ns::f:0x10", 6, 4, both},
                    Wrong{"0x1234:do_work", 0, 14, both}, Wrong{"malloc@0x10", 7, 4, both},
                    Wrong{"m:0x10+4", 6, 2, "no offset"}, Wrong{"a:b:c", 3, 1, "too many"},
                    Wrong{"/usr/bin/worker", 0, 15, "is a path"}, Wrong{"memcpy@", 6, 1, "a version is missing"},
                    Wrong{"malloc@plt", 6, 4, "stub"}, Wrong{"Foo::bar(int", 8, 1, "not closed"}));

INSTANTIATE_TEST_SUITE_P(KindsOfOtherTools, Refuses,
                         testing::Values(Wrong{"syscall:openat", 0, 7, "system calls are not probed"},
                                         Wrong{"tracepoint:syscalls:sys_enter_openat", 0, 10,
                                               "system calls are not probed"},
                                         Wrong{"usdt:/usr/bin/node:gc__start", 0, 4, "no probes of their own"},
                                         Wrong{"uprobe:/bin/bash:readline", 0, 6, "no kind stands before"}));

TEST(Spec, SaysWhatThereIsForTheKindsOfOtherTools) {
    auto hint = [](std::string_view text) { return parse_spec(text).error().hint; };
    EXPECT_EQ(hint("syscall:openat"), "the C library's function makes it: libc:openat");
    EXPECT_EQ(hint("tracepoint:syscalls:sys_enter_openat"), "the C library's function makes it: libc:openat");
    EXPECT_EQ(hint("uprobe:/bin/bash:readline"), "write /bin/bash:readline");
    EXPECT_EQ(hint("uretprobe:libc:malloc"), "write it behind -r: libc:malloc");
    EXPECT_TRUE(parse_spec("syscall.so:openat")); // a module of that name is another thing
    EXPECT_TRUE(parse_spec("usdt::probe"));       // and so is a C++ namespace
}

TEST(Spec, TellsColumns) {
    auto spec = parse_spec("libc:malloc+0x10");
    ASSERT_TRUE(spec);
    EXPECT_EQ(spec->symbol_column, 5);
    EXPECT_EQ(spec->offset_column, 12);
    EXPECT_TRUE(spec->has_offset);
    EXPECT_FALSE(parse_spec("malloc")->has_offset);
}

} // namespace
} // namespace ktrace::probe
