// Lines: FILE:LINE to addresses and back, checked against the compiler's own idea (objdump) and a source of known
// shape.
#include <algorithm>
#include <regex>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

#include "dwarf_program.h"
#include "symbols/dwarf/lines/line_table.h"

namespace ktrace::symbols::test {
namespace {

const char *const source = R"(
extern int puts(const char *);
static inline __attribute__((always_inline)) int helper(int v) {
    return puts("x") + v; /* shared */
}
__attribute__((noinline)) int first(int n) { /* opening */
    int s = 0;
    for (int i = 0; i < n; i++) /* loop */
        s += helper(i);

    /* a comment: no code here */
    return s; /* end of first */
}
__attribute__((noinline)) int second(int n) {
    return helper(n) - 1;
}
int main(int argc, char **argv) {
    return first(argc) + second(argc);
}
)";

class Lines : public testing::TestWithParam<Build> {
  protected:
    void SetUp() override { program_ = std::make_unique<Program>(Program::compile(GetParam(), source)); }
    std::vector<LineAddress> at(const std::string &marker) {
        return program_->dwarf().addresses_of(program_->source_path(), line_of(source, marker));
    }
    std::unique_ptr<Program> program_;
};

TEST_P(Lines, OpeningLineIsTheEntry) {
    auto addresses = at("/* opening */");
    ASSERT_EQ(addresses.size(), 1U);
    EXPECT_EQ(addresses[0].vaddr, program_->symbol("first"));
    EXPECT_EQ(addresses[0].file, program_->source_path());
}

TEST_P(Lines, OncePerFunctionAndInlinedInstance) {
    EXPECT_EQ(at("/* loop */").size(), 1U);
    auto shared = at("/* shared */");
    auto instances = program_->dwarf().inlined("helper");
    EXPECT_EQ(instances.size(), 2U);
    EXPECT_EQ(shared.size(), 2U);
    for (const LineAddress &place : shared) EXPECT_NE(program_->dwarf().function_at(place.vaddr), nullptr);
}

TEST_P(Lines, ALineWithoutCodeNamesTheNext) {
    int line = line_of(source, "a comment");
    EXPECT_TRUE(program_->dwarf().addresses_of(program_->source_path(), line).empty());
    auto nearest = program_->dwarf().nearest_line(program_->source_path(), line);
    ASSERT_TRUE(nearest);
    EXPECT_EQ(*nearest, line_of(source, "/* end of first */"));
    auto last = program_->dwarf().nearest_line(program_->source_path(), 1000);
    ASSERT_TRUE(last);
    EXPECT_GE(*last, *nearest);
    EXPECT_FALSE(program_->dwarf().addresses_of(program_->source_path(), *last).empty());
    EXPECT_FALSE(program_->dwarf().nearest_line("no_such_file.c", 1));
}

TEST_P(Lines, FilesMatchByWholeComponents) {
    int line = line_of(source, "/* opening */");
    std::string path = program_->source_path(), base = path.substr(path.rfind('/') + 1);
    EXPECT_EQ(program_->dwarf().addresses_of(base, line).size(), 1U);
    EXPECT_EQ(program_->dwarf().addresses_of("./" + base, line).size(), 1U);
    EXPECT_TRUE(program_->dwarf().addresses_of(base.substr(1), line).empty());
    EXPECT_TRUE(program_->dwarf().addresses_of("other/" + base, line).empty());
    auto files = program_->dwarf().files();
    EXPECT_NE(std::find(files.begin(), files.end(), path), files.end());
}

// Where one address has several rows, debuggers take one that begins a statement, addr2line the last.
TEST_P(Lines, EveryAddressHasTheLineThatGdbSays) {
    const Function *first = program_->dwarf().function_at(program_->symbol("first"));
    ASSERT_NE(first, nullptr);
    auto [low, high] = first->ranges.at(0);
    std::ostringstream command;
    command << "gdb -nx -batch" << std::hex;
    for (std::uint64_t address = low; address < high; ++address) command << " -ex 'info line *0x" << address << "'";
    command << " " << program_->path();
    std::istringstream truth(shell(command.str()));
    int compared = 0;
    for (std::uint64_t address = low; address < high; ++address) {
        std::string told;
        std::getline(truth, told);
        std::smatch expected;
        static const std::regex form("Line ([0-9]+) of \"([^\"]+)\".*");
        if (!std::regex_match(told, expected, form)) continue;
        auto line = program_->dwarf().line_at(address);
        if (!line) continue; // line 0: the compiler says that there is none; gdb shows the one before
        EXPECT_TRUE(line->file.ends_with(expected[2].str())) << line->file << " and " << told;
        EXPECT_EQ(std::to_string(line->line), expected[1].str()) << "at first + " << address - low;
        ++compared;
    }
    EXPECT_GT(compared, 10);
    EXPECT_FALSE(program_->dwarf().line_at(1));
}

INSTANTIATE_TEST_SUITE_P(Dwarf, Lines, testing::ValuesIn(all_builds()),
                         [](const auto &each) { return each.param.name(); });

TEST(DwarfLinePaths, MatchFromTheEnd) {
    EXPECT_TRUE(matches_path("/src/lib/a.c", "a.c"));
    EXPECT_TRUE(matches_path("/src/lib/a.c", "lib/a.c"));
    EXPECT_TRUE(matches_path("/src/lib/a.c", "/src/lib/a.c"));
    EXPECT_FALSE(matches_path("/src/lib/aa.c", "a.c"));
    EXPECT_FALSE(matches_path("/src/lib/a.c", ""));
    EXPECT_FALSE(matches_path("a.c", "lib/a.c"));
}

// Debug information as compilers and packagers leave it: the same questions have the same answers.
TEST(DwarfContainers, SplitAndShared) {
    for (const Build &build : {Build{"gcc", 4, "-O2", "-gsplit-dwarf"},
                               {"gcc", 5, "-O2", "-gsplit-dwarf"},
                               {"clang", 4, "-O2", "-gsplit-dwarf"},
                               {"clang", 5, "-O2", "-gsplit-dwarf"},
                               {"gcc", 5, "-O2", "-gz"},
                               {"gcc", 5, "-O2", "-fdebug-types-section"}}) {
        if (std::ranges::count(compilers(), build.compiler) == 0) continue;
        SCOPED_TRACE(build.compiler + " " + std::to_string(build.version) + " " + build.extra);
        Program program = Program::compile(build, source);
        const Function *first = program.dwarf().function_at(program.symbol("first"));
        ASSERT_NE(first, nullptr);
        EXPECT_EQ(first->name, "first");
        ASSERT_EQ(first->parameters.size(), 1U);
        EXPECT_EQ(first->parameters[0].type->name, "int");
        EXPECT_EQ(first->file, program.source_path());
        EXPECT_EQ(program.dwarf().inlined("helper").size(), 2U);
    }
}

// As Debian builds: the compilation's directory itself is relative to a place that is not.
TEST(DwarfLinePaths, RelativeDirectoryOfTheCompilation) {
    const std::string at = scratch_directory(), path = at + "/relative";
    Program first = Program::compile({"gcc", 5, "-O0", ""}, source);
    for (const std::string &compiler : compilers())
        for (const char *version : {"4", "5"}) {
            SCOPED_TRACE(compiler + " " + version);
            shell("mkdir -p " + at + "/part " + at + "/other && cp " + first.source_path() + " " + at +
                  "/other/below.c && cp " + first.source_path() + " " + at + "/part/here.c && sed -i 's/main/other/; " +
                  "s/first/third/; s/second/fourth/' " + at + "/other/below.c && cd " + at + "/part && " + compiler +
                  " -w -g -gdwarf-" + version + " -ffile-prefix-map=" + at + "=. -o " + path +
                  " here.c ../other/below.c");
            auto dwarf = Dwarf::open(path);
            ASSERT_TRUE(dwarf);
            const int line = line_of(source, "/* opening */");
            for (const char *file : {"part/here.c", "other/below.c"}) {
                auto places = (*dwarf)->addresses_of(file, line);
                ASSERT_EQ(places.size(), 1U) << file;
                EXPECT_EQ(places[0].file, file);
            }
        }
}

TEST(DwarfContainers, SeparateFileNeedsTheImageForFrames) {
    Program program = Program::compile({"gcc", 5, "-O0", ""}, source);
    std::string debug = program.path() + ".debug", stripped = program.path() + ".stripped";
    shell("objcopy --only-keep-debug " + program.path() + " " + debug);
    shell("strip -o " + stripped + " " + program.path());
    int line = line_of(source, "/* end of first */");
    auto alone = Dwarf::open(debug), with_image = Dwarf::open(debug, -1, stripped);
    ASSERT_TRUE(alone && with_image);
    auto place = (*alone)->addresses_of(program.source_path(), line);
    ASSERT_EQ(place.size(), 1U);
    EXPECT_FALSE((*alone)->variable("s", place[0].vaddr, 0));
    auto variable = (*with_image)->variable("s", place[0].vaddr, 0);
    EXPECT_TRUE(variable) << variable.error().message;
}

} // namespace
} // namespace ktrace::symbols::test
