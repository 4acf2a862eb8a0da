// Files that are no ELF files, that are cut off, and that lie: an error or less knowledge, never a crash.
#include <random>

#include "symbols/dwarf/dwarf.h"
#include "symbols/names/name_pattern.h"
#include "workshop.h"

namespace ktrace::symbols {
namespace {

std::vector<std::byte> bytes_of(const std::vector<char> &chars) {
    std::vector<std::byte> bytes(chars.size());
    std::transform(chars.begin(), chars.end(), bytes.begin(), [](char c) { return static_cast<std::byte>(c); });
    return bytes;
}

/// Asks a module everything but its DWARF, which has tests of its own.
void ask_everything(const Module &module) {
    (void)module.interpreter();
    (void)module.soname();
    for (const char *name : {"exported", "work", "_Z3fooi", "", "malloc"}) {
        (void)module.named(name);
        (void)module.got_slots(name);
        (void)module.matching(NamePattern::exact(name));
    }
    (void)module.matching(NamePattern::glob("*o*"));
    for (const Symbol &symbol : module.symbols()) {
        (void)module.demangled(symbol, true);
        (void)module.function_end(symbol.vaddr);
        (void)module.bytes_at(symbol.vaddr, 64);
    }
    for (const Segment &segment : module.segments())
        for (std::uint64_t at = 0; at < std::min<std::uint64_t>(segment.memory_size, 8192); at += 512) {
            (void)module.function_at(segment.vaddr + at);
            (void)module.in_plt(segment.vaddr + at);
        }
    for (const auto &slot : module.irelative_slots()) (void)module.got_symbol(slot.slot);
}

std::string why(const std::vector<char> &file) {
    auto module = Module::from_bytes(bytes_of(file), "file");
    if (module) {
        ask_everything(**module);
        return {};
    }
    EXPECT_EQ(module.error().kind, Error::Kind::refused);
    EXPECT_TRUE(module.error().message.starts_with("file ")) << module.error().message;
    return module.error().message;
}

class DamagedElf : public testing::Test {
  protected:
    static void SetUpTestSuite() {
        workshop = new Workshop;
        workshop->write("map", "V1 { global: *; };\n");
        workshop->compile("lib.so", R"(
            #include <string.h>
            static void *choose(void) { return strcpy; }
            void *work(void) __attribute__((ifunc("choose")));
            int exported(const char *s) { return (int)strlen(s); } int data = 3; __thread int tls = 1;
            int foo(int) __asm__("_Z3fooi"); int foo(int n) { return n; })",
                          "-shared -fPIC -O1 -Wl,--version-script=map");
        workshop->run(
            "objcopy --only-keep-debug lib.so mini && python3 -c \"import lzma; "
            "open('mini.xz','wb').write(lzma.compress(open('mini','rb').read()))\" && strip lib.so -o mini.so && "
            "objcopy --add-section .gnu_debugdata=mini.xz mini.so");
        library = workshop->read("lib.so");
        with_mini_debug = workshop->read("mini.so");
    }
    static void TearDownTestSuite() { delete workshop; }
    static inline Workshop *workshop;
    static inline std::vector<char> library, with_mini_debug;
};

TEST_F(DamagedElf, IsWholeToBeginWith) {
    EXPECT_EQ(why(library), "");
    EXPECT_EQ(why(with_mini_debug), "");
}

TEST_F(DamagedElf, CutAnywhereIsRefusedAsTruncated) {
    for (const auto &file : {library, with_mini_debug})
        for (std::size_t size = 4; size < file.size(); size += size < 600 ? 1 : 97) {
            std::string message = why({file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size)});
            ASSERT_NE(message.find("truncated"), std::string::npos) << size << ": " << message;
        }
}

TEST_F(DamagedElf, WithoutItsSectionHeadersSaysSo) {
    EXPECT_EQ(why({library.begin(), library.end() - 64}),
              "file is truncated: section headers lie behind the end of the file");
}

TEST_F(DamagedElf, WithFlippedBitsNeverCrashes) {
    std::mt19937 random(1);
    for (const auto &file : {library, with_mini_debug})
        for (int round = 0; round < 1500; round++) {
            auto damaged = file;
            for (int flips = 0; flips < 1 + round % 8; flips++) {
                std::size_t at = random() % damaged.size();
                damaged[at] = static_cast<char>(damaged[at] ^ (1 << (random() % 8)));
            }
            why(damaged);
        }
}

TEST_F(DamagedElf, WithDamagedTablesNeverCrashes) {
    // Where the headers and the dynamic tables are, every byte counts: extreme values in all of them.
    for (unsigned char value : {0x00, 0x7f, 0xff})
        for (std::size_t at = 16; at < std::min<std::size_t>(library.size(), 0x1000); at++) {
            auto damaged = library;
            damaged[at] = static_cast<char>(value);
            why(damaged);
        }
}

TEST(NotElf, IsSaidInAClause) {
    Workshop workshop;
    workshop.write("text", "#!/bin/sh\necho hello, I am a script and no ELF file\n");
    workshop.write("empty", "");
    workshop.compile("object.o", "int f(void) { return 1; }", "-c");
    auto message = [&](const std::string &name) { return Module::open(workshop.path(name), name).error().message; };
    EXPECT_EQ(message("text"), "text is not an ELF file");
    EXPECT_NE(message("empty").find("is empty"), std::string::npos);
    EXPECT_EQ(message("object.o"), "object.o is an object file that is not linked");
    EXPECT_EQ(Module::open(workshop.path("none"), "none").error().kind, Error::Kind::not_found);
    EXPECT_EQ(Module::open("/tmp", "/tmp").error().kind, Error::Kind::refused);
}

TEST(NotElf, ThirtyTwoBitsAndOtherMachinesAreRefused) {
    Workshop workshop;
    workshop.compile("program", "int main(void) { return 0; }", "");
    auto file = workshop.read("program");
    auto changed = file;
    changed[4] = 1; // ELFCLASS32
    EXPECT_EQ(why(changed), "file is a 32-bit ELF file; ktrace traces 64-bit ones");
    changed = file;
    changed[18] = 8; // EM_MIPS
    EXPECT_NE(why(changed).find("another machine"), std::string::npos);
    changed = file;
    changed[5] = 2; // ELFDATA2MSB
    EXPECT_NE(why(changed).find("big-endian"), std::string::npos);
}

} // namespace
} // namespace ktrace::symbols
