// Damaged debug information: whatever the bytes say, questions are answered or refused, in bounded time and memory.
//
// Each case flips bits in, or cuts, the debug sections of a small program, and asks everything that can be asked. Run
// it under AddressSanitizer too. The damage is drawn from a fixed seed: a failure prints its number and repeats.
#include <cstdlib>
#include <fstream>
#include <random>

#include <fcntl.h>
#include <gelf.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include "dwarf_program.h"
#include "os/self/sigbus_guard.h"
#include "symbols/module.h"

namespace ktrace::symbols::test {
namespace {

const char *const source = R"(
struct list { struct list *next; int value; unsigned bits : 3; union { int i; float f; }; };
enum color { red, green };
typedef int (*callback)(const char *, int);
static int counter;
__thread int each;
int table[3][4];
static inline __attribute__((always_inline)) int twice(int q) { int r = q * 2; return r + counter; }
__attribute__((noinline)) int work(int n, const char *name, struct list *l, enum color c, callback cb, double d) {
    static int calls;
    int sum = ++calls;
    for (int i = 0; i < n; i++) { int s = twice(i); sum += s + table[i % 3][1]; }
    if (l) { struct list copy = *l; sum += copy.value; each += sum; }
    return sum + (int)d + (name ? name[0] : 0) + c + (cb ? cb(name, n) : 0);
}
int main(int argc, char **argv) { return work(argc, argv[0], 0, green, 0, 1.5); }
)";

struct Section {
    std::string name;
    std::size_t offset = 0, size = 0;
};

std::vector<Section> debug_sections(const std::string &path) {
    std::vector<Section> sections;
    int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    elf_version(EV_CURRENT);
    Elf *elf = elf_begin(fd, ELF_C_READ, nullptr);
    std::size_t names = 0;
    elf_getshdrstrndx(elf, &names);
    for (Elf_Scn *section = nullptr; (section = elf_nextscn(elf, section)) != nullptr;) {
        GElf_Shdr header;
        gelf_getshdr(section, &header);
        std::string name = elf_strptr(elf, names, header.sh_name);
        if (name.starts_with(".debug_") || name == ".eh_frame")
            sections.push_back({name, header.sh_offset, header.sh_size});
    }
    elf_end(elf);
    ::close(fd);
    return sections;
}

/// Asks everything; the answers do not matter.
void ask_everything(Dwarf &dwarf, std::uint64_t entry) {
    for (std::uint64_t at : {entry, entry + 4, entry + 30, std::uint64_t{0}}) {
        const Function *function = dwarf.function_at(at);
        if (function != nullptr) dwarf.entry_places(*function, 0x1000);
        dwarf.frames_at(at);
        auto names = dwarf.names_in_scope(at);
        for (const char *name : {"n", "l", "sum", "r", "counter", "each"}) names.emplace_back(name);
        for (const std::string &name : names) {
            auto variable = dwarf.variable(name, at, 0x1000);
            if (variable) dwarf.complete(variable->type);
        }
    }
    for (const std::string &name : dwarf.function_names()) {
        for (const Function *function : dwarf.functions_named(name)) dwarf.entry_places(*function, 0);
        dwarf.inlined(name);
    }
    for (const char *name : {"table", "calls", "work::calls"}) static_cast<void>(dwarf.global(name, 0));
    for (const std::string &file : dwarf.files()) dwarf.nearest_line(file, 3);
    for (int line = 1; line < 20; ++line) dwarf.addresses_of("p.c", line);
    dwarf.addresses_of("c", 9);
}

class Damaged : public testing::TestWithParam<Build> {
  protected:
    void SetUp() override {
        program_ = std::make_unique<Program>(Program::compile(GetParam(), source));
        std::ifstream file(program_->path(), std::ios::binary);
        whole_.assign(std::istreambuf_iterator<char>(file), {});
        entry_ = program_->symbol("work");
        sections_ = debug_sections(program_->path());
        ASSERT_GE(sections_.size(), 4U);
    }

    void ask_about(const std::string &bytes) {
        std::string path = scratch_directory() + "/damaged";
        std::ofstream(path, std::ios::binary) << bytes;
        if (auto opened = Dwarf::open(path)) ask_everything(**opened, entry_);
    }

    std::unique_ptr<Program> program_;
    std::string whole_;
    std::uint64_t entry_ = 0;
    std::vector<Section> sections_;
};

TEST_P(Damaged, FlippedBitsAreSurvived) {
    ask_about(whole_);
    const char *more = std::getenv("KTRACE_DAMAGE_ROUNDS"); // a longer search, by hand
    const int rounds = more != nullptr ? std::atoi(more) : 300;
    std::mt19937 random(20260U + static_cast<unsigned>(rounds));
    for (int round = 0; round < rounds; ++round) {
        SCOPED_TRACE(round);
        std::string bytes = whole_;
        const Section &section = sections_[random() % sections_.size()];
        if (section.size == 0) continue;
        for (unsigned flips = 1 + random() % 8; flips > 0; --flips) {
            char &byte = bytes[section.offset + random() % section.size];
            byte = random() % 4 == 0 ? static_cast<char>(0xff) : static_cast<char>(byte ^ (1 << (random() % 8)));
        }
        ask_about(bytes);
    }
    rusage usage;
    ::getrusage(RUSAGE_SELF, &usage);
    EXPECT_LT(usage.ru_maxrss, 2'000'000) << "KB"; // with AddressSanitizer's quarantine
}

TEST_P(Damaged, CutFilesAreSurvived) {
    for (std::size_t eighth = 1; eighth < 8; ++eighth) {
        SCOPED_TRACE(eighth);
        for (const Section &section : sections_) {
            std::string bytes = whole_.substr(0, section.offset + section.size * eighth / 8);
            ask_about(bytes);
            bytes = whole_;
            std::size_t from = section.offset + section.size * eighth / 8;
            std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(from),
                      bytes.begin() + static_cast<std::ptrdiff_t>(section.offset + section.size), '\0');
            ask_about(bytes);
        }
    }
}

/// Cut short while it is open: what is read then are zeros.
TEST_P(Damaged, FilesThatAreCutWhileTheyAreOpenAreSurvived) {
    os::survive_cut_files();
    std::string path = scratch_directory() + "/cut";
    for (std::size_t eighth = 0; eighth < 8; ++eighth) {
        SCOPED_TRACE(eighth);
        std::ofstream(path, std::ios::binary) << whole_;
        auto module = Module::open(path, path);
        ASSERT_TRUE(module);
        Dwarf *dwarf = (*module)->dwarf();
        ASSERT_NE(dwarf, nullptr);
        if (eighth % 2 == 0) dwarf->function_at(entry_); // some is known already
        ASSERT_EQ(::truncate(path.c_str(), static_cast<off_t>(whole_.size() * eighth / 8)), 0);
        ask_everything(*dwarf, entry_);
        for (const char *name : {"work", "main", "no_such"}) (*module)->named(name);
        (*module)->covering(entry_);
        (*module)->function_end(entry_);
    }
    EXPECT_FALSE(os::take_cut_file_notices().empty());
}

INSTANTIATE_TEST_SUITE_P(Dwarf, Damaged, testing::ValuesIn(all_builds()),
                         [](const auto &each) { return each.param.name(); });

TEST(DwarfOpen, SaysWhyItCannot) {
    auto missing = Dwarf::open("/nonexistent/file");
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().kind, Error::Kind::not_found);
    std::string text = scratch_directory() + "/text";
    std::ofstream(text) << "not an ELF file";
    auto no_elf = Dwarf::open(text);
    ASSERT_FALSE(no_elf);
    EXPECT_EQ(no_elf.error().kind, Error::Kind::refused);
    Program plain = Program::compile({"gcc", 5, "-O0", ""}, "int main(void) { return 0; }");
    shell("strip -o " + plain.path() + ".stripped " + plain.path());
    auto stripped = Dwarf::open(plain.path() + ".stripped");
    ASSERT_FALSE(stripped);
    EXPECT_EQ(stripped.error().kind, Error::Kind::not_found);
    EXPECT_NE(stripped.error().hint, "");
}

} // namespace
} // namespace ktrace::symbols::test
