// Module on files that the compiler makes and on those of the system.
#include "symbols/module.h"

#include <algorithm>

#include <elf.h>
#include <sys/auxv.h>

#include "arch/host.h"
#include "symbols/names/name_pattern.h"
#include "workshop.h"

namespace ktrace::symbols {
namespace {

constexpr bool is_x86 = arch::Host::name == "x86_64";

constexpr const char *program = R"(
#include <string.h>
int counter = 3;
__thread int per_thread = 1;
__attribute__((noinline)) static int hidden(int n) { return n * counter + (int)strlen("x"); }
__attribute__((noinline)) int do_work(int n) { return hidden(n) + per_thread; }
int main(int argc, char **argv) { (void)argv; return do_work(argc); }
)";

const Symbol *only(const std::vector<const Symbol *> &found) {
    EXPECT_EQ(found.size(), 1U);
    return found.size() == 1 ? found[0] : nullptr;
}

class OfEachKind : public testing::TestWithParam<const char *> {};

TEST_P(OfEachKind, TellsFunctionsAndVariables) {
    Workshop workshop;
    workshop.compile("program", program, std::string("-O1 ") + GetParam());
    auto module = workshop.open("program");
    const Symbol *work = only(module->named("do_work")), *hidden = only(module->named("hidden"));
    ASSERT_TRUE(work && hidden);
    EXPECT_EQ(work->kind, Symbol::Kind::function);
    EXPECT_TRUE(work->global);
    EXPECT_FALSE(hidden->global);
    EXPECT_GT(work->size, 0U);
    EXPECT_EQ(module->function_end(work->vaddr), work->vaddr + work->size);
    EXPECT_EQ(module->covering(work->vaddr + 1)->name, "do_work");
    EXPECT_EQ(module->bytes_at(work->vaddr, 4).size(), 4U);
    EXPECT_TRUE(module->executable(work->vaddr));
    EXPECT_EQ(only(module->named("counter"))->kind, Symbol::Kind::object);
    EXPECT_EQ(only(module->named("per_thread"))->kind, Symbol::Kind::tls);
    EXPECT_TRUE(module->named("no_such_function").empty());
    EXPECT_FALSE(module->build_id().empty());
    EXPECT_EQ(module->covering(module->entry())->name, "_start");
}

TEST_P(OfEachKind, FindsFunctionsOfAStrippedProgramByItsFrames) {
    Workshop workshop;
    workshop.compile("program", program, std::string("-O1 ") + GetParam());
    auto full = workshop.open("program");
    workshop.run("strip -o stripped program");
    auto stripped = workshop.open("stripped");
    const Symbol *work = only(full->named("do_work"));
    ASSERT_TRUE(work);
    EXPECT_TRUE(stripped->named("do_work").empty());
    EXPECT_EQ(stripped->covering(work->vaddr), nullptr);
    auto extent = stripped->function_at(work->vaddr + 2);
    ASSERT_TRUE(extent);
    EXPECT_EQ(extent->start, work->vaddr);
    EXPECT_EQ(extent->end, work->vaddr + work->size);
    EXPECT_EQ(stripped->function_end(work->vaddr), work->vaddr + work->size);
}

INSTANTIATE_TEST_SUITE_P(Links, OfEachKind,
                         testing::Values("-pie -fPIE", "-no-pie", "-static", "-static-pie -fPIE",
                                         "-pie -fPIE -Wl,-z,now"),
                         [](const auto &kind) {
                             std::string name = kind.param;
                             std::erase_if(name, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); });
                             return name;
                         });

TEST(Module, TellsItsHeaders) {
    Workshop workshop;
    workshop.compile("pie", program, "-pie -fPIE");
    workshop.compile("fixed", program, "-no-pie");
    workshop.compile("library.so", "int f(void) { return 1; }", "-shared -fPIC -Wl,-soname,libfoo.so.1");
    auto pie = workshop.open("pie"), fixed = workshop.open("fixed"), library = workshop.open("library.so");
    EXPECT_TRUE(pie->position_independent());
    EXPECT_FALSE(fixed->position_independent());
    EXPECT_EQ(pie->interpreter().rfind(is_x86 ? "/lib64/ld-linux" : "/lib/ld-linux", 0), 0U);
    EXPECT_EQ(library->interpreter(), "");
    EXPECT_EQ(library->soname(), "libfoo.so.1");
    EXPECT_EQ(library->name(), "library.so");
    auto text =
        std::find_if(fixed->segments().begin(), fixed->segments().end(), [](const Segment &s) { return s.executable; });
    ASSERT_NE(text, fixed->segments().end());
    EXPECT_EQ(fixed->vaddr_of_offset(text->file_offset + 5), text->vaddr + 5);
    EXPECT_FALSE(fixed->vaddr_of_offset(1ULL << 40U));
    EXPECT_TRUE(fixed->bytes_at(1, 8).empty());
}

TEST(Module, LooksUpDynamicSymbolsOfAStrippedLibrary) {
    Workshop workshop;
    workshop.compile("lib.so",
                     "int exported(int n) { return n; } static int inner(int n) { return n + 1; }"
                     "int other(int n) { return inner(n); } int shared_variable = 3;",
                     "-shared -fPIC -O0");
    for (const char *style : {"gnu", "sysv", "both"}) {
        workshop.run("gcc lib.so.c -shared -fPIC -O0 -s -Wl,--hash-style=" + std::string(style) + " -o s.so");
        auto module = workshop.open("s.so");
        EXPECT_EQ(only(module->named("exported"))->kind, Symbol::Kind::function) << style;
        EXPECT_EQ(only(module->named("shared_variable"))->kind, Symbol::Kind::object) << style;
        EXPECT_TRUE(module->named("inner").empty());
        EXPECT_TRUE(module->named("export").empty());
        module->symbols(); // now by the sorted table
        EXPECT_EQ(only(module->named("exported"))->kind, Symbol::Kind::function) << style;
    }
}

TEST(Module, ReadsAFileWithoutSectionHeaders) {
    Workshop workshop;
    workshop.compile("lib.so", "int exported(int n) { return n; } int other(void) { return 1; }", "-shared -fPIC");
    auto bytes = workshop.read("lib.so");
    auto *header = reinterpret_cast<Elf64_Ehdr *>(bytes.data());
    header->e_shoff = 0;
    header->e_shnum = header->e_shstrndx = 0;
    workshop.write("bare.so", std::string(bytes.begin(), bytes.end()));
    auto module = workshop.open("bare.so");
    ASSERT_TRUE(module);
    EXPECT_TRUE(only(module->named("exported")));
    EXPECT_GE(module->symbols().size(), 2U);
    EXPECT_EQ(module->build_id().size(), 20U);
}

TEST(Module, KnowsVersions) {
    Workshop workshop;
    workshop.write("map", "V1 { global: work; };\nV2 { global: work; plain; } V1;\n");
    workshop.compile("lib.so", R"(
        __asm__(".symver old_work,work@V1"); __asm__(".symver new_work,work@@V2");
        int old_work(void) { return 1; } int new_work(void) { return 2; } int plain(void) { return 3; })",
                     "-shared -fPIC -Wl,--version-script=map -Wl,-soname,lib.so");
    for (const char *file : {"lib.so", "stripped.so"}) {
        workshop.run("strip -o stripped.so lib.so");
        auto module = workshop.open(file);
        auto found = module->named("work");
        ASSERT_EQ(found.size(), 2U) << file;
        std::sort(found.begin(), found.end(), [](auto *a, auto *b) { return a->version < b->version; });
        EXPECT_EQ(found[0]->version, "V1");
        EXPECT_FALSE(found[0]->default_version);
        EXPECT_EQ(found[1]->version, "V2");
        EXPECT_TRUE(found[1]->default_version);
    }
}

TEST(Module, ReadsMiniDebugInfo) {
    Workshop workshop;
    workshop.compile("program", program, "-O1");
    workshop.run("objcopy -S --remove-section .comment --keep-symbol=hidden --keep-symbol=do_work program mini && "
                 "python3 -c \"import lzma; open('mini.xz','wb').write(lzma.compress(open('mini','rb').read()))\" && "
                 "strip program -o stripped && objcopy --add-section .gnu_debugdata=mini.xz stripped");
    auto module = workshop.open("stripped");
    EXPECT_EQ(only(module->named("hidden"))->kind, Symbol::Kind::function);
    workshop.run("head -c 300 mini.xz > cut.xz && objcopy --update-section .gnu_debugdata=cut.xz stripped");
    EXPECT_TRUE(workshop.open("stripped")->named("hidden").empty()); // no harm
}

class DebugFiles : public testing::Test {
  protected:
    void SetUp() override {
        workshop.compile("program", program, "-O1 -g");
        workshop.run(
            "mkdir -p root/usr/lib/debug/.build-id root/app/.debug && objcopy --only-keep-debug program full.debug && "
            "strip program -o root/app/prog");
    }
    void link() { workshop.run("cd root/app && objcopy --add-gnu-debuglink=../../full.debug prog"); }
    std::shared_ptr<Module> open() {
        auto module = Module::open(workshop.path("root/app/prog"), "/app/prog", workshop.path("root"));
        EXPECT_TRUE(module);
        return *module;
    }
    Workshop workshop;
};

TEST_F(DebugFiles, AreFoundByBuildId) {
    EXPECT_TRUE(open()->named("hidden").empty());
    EXPECT_EQ(open()->dwarf(DebugSource::local), nullptr);
    EXPECT_NE(open()->why_no_dwarf().find("build-id"), std::string::npos);
    workshop.run("id=$(readelf -n program | sed -n 's/.*Build ID: //p') && d=root/usr/lib/debug/.build-id/$(echo $id | "
                 "cut -c1-2) "
                 "&& mkdir -p $d && cp full.debug $d/$(echo $id | cut -c3-).debug");
    EXPECT_EQ(open()->named("hidden").size(), 1U);
    auto module = open();
    EXPECT_NE(module->dwarf(DebugSource::local), nullptr) << module->why_no_dwarf();
}

TEST_F(DebugFiles, AreFoundByLink) {
    link();
    for (const char *place : {"root/app/.debug", "root/app", "root/usr/lib/debug/app"}) {
        EXPECT_TRUE(open()->named("hidden").empty()) << place;
        workshop.run("mkdir -p " + std::string(place) + " && cp full.debug " + place);
        EXPECT_EQ(open()->named("hidden").size(), 1U) << place;
        workshop.run("rm " + std::string(place) + "/full.debug");
    }
}

TEST_F(DebugFiles, OfAnotherBuildArePassedOver) {
    link();
    workshop.compile("other", std::string(program) + "int more(void) { return 1; }", "-O1 -g");
    workshop.run("objcopy --only-keep-debug other root/app/full.debug");
    EXPECT_TRUE(open()->named("hidden").empty());
}

TEST_F(DebugFiles, WithoutBuildIdAreCheckedByCrc) {
    workshop.run("objcopy --remove-section .note.gnu.build-id full.debug; objcopy --remove-section .note.gnu.build-id "
                 "root/app/prog");
    link();
    workshop.run("cp full.debug root/app/full.debug");
    EXPECT_EQ(open()->named("hidden").size(), 1U);
    workshop.run("printf x >> root/app/full.debug");
    EXPECT_TRUE(open()->named("hidden").empty());
}

TEST_F(DebugFiles, DoNotLeadOutOfTheTargetsRoot) {
    link();
    workshop.run(
        "mkdir -p root/secret && cp full.debug root/secret/full.debug && ln -s /secret/full.debug root/app/full.debug");
    EXPECT_EQ(open()->named("hidden").size(), 1U); // an absolute link, from the target's root
}

TEST_F(DebugFiles, AreFetchedFromDebuginfod) {
    ::setenv("DEBUGINFOD_CACHE_PATH", workshop.path("cache").c_str(), 1);
    ::unsetenv("DEBUGINFOD_URLS");
    auto offline = open();
    EXPECT_FALSE(offline->fetch_symbols());
    workshop.run("id=$(readelf -n program | sed -n 's/.*Build ID: //p') && mkdir -p server/buildid/$id && "
                 "cp full.debug server/buildid/$id/debuginfo");
    ::setenv("DEBUGINFOD_URLS", ("file://" + workshop.path("server")).c_str(), 1);
    auto module = open();
    EXPECT_TRUE(module->named("hidden").empty());
    EXPECT_EQ(module->dwarf(DebugSource::local), nullptr);
    EXPECT_TRUE(module->fetch_symbols());
    EXPECT_EQ(module->named("hidden").size(), 1U);
    EXPECT_NE(module->dwarf(), nullptr) << module->why_no_dwarf();
    ::unsetenv("DEBUGINFOD_URLS");
}

TEST(Module, ReadsTheVdso) {
    auto address = ::getauxval(AT_SYSINFO_EHDR);
    if (address == 0) GTEST_SKIP() << "this kernel maps no vdso";
    const auto *image = reinterpret_cast<const std::byte *>(address);
    std::vector<std::byte> bytes(image, image + 4096);
    auto module = Module::from_bytes(bytes, "[vdso]");
    for (int pages = 2; !module && pages <= 4; pages++) { // its size is known to the kernel only
        bytes.assign(image, image + pages * 4096);
        module = Module::from_bytes(bytes, "[vdso]");
    }
    ASSERT_TRUE(module) << module.error().message;
    auto all = (*module)->symbols();
    EXPECT_TRUE(std::any_of(all.begin(), all.end(), [](const Symbol &s) { return s.name.ends_with("clock_gettime"); }));
    EXPECT_EQ((*module)->dwarf(), nullptr);
}

TEST(Module, TellsSlotsOfTheGot) {
    Workshop workshop;
    workshop.compile("program",
                     "#include <string.h>\n#include <stdlib.h>\nint main(int c, char **v) { void *p = malloc(c); "
                     "return (int)strlen(v[0]) + (p != 0); }",
                     "-O0 -fno-builtin");
    auto module = workshop.open("program");
    auto slots = module->got_slots("strlen");
    ASSERT_EQ(slots.size(), 1U);
    EXPECT_EQ(module->got_symbol(slots[0]), "strlen");
    EXPECT_TRUE(module->got_slots("strle").empty());
    EXPECT_TRUE(module->got_slots("strlen", "NO_SUCH_VERSION").empty());
    EXPECT_EQ(module->got_slots("malloc", is_x86 ? "GLIBC_2.2.5" : "GLIBC_2.17").size(), 1U);
    EXPECT_TRUE(module->named("strlen").empty()); // undefined, and its PLT entry is no function
}

TEST(Module, TellsIndirectFunctions) {
    Workshop workshop;
    const char *text =
        "static int fast(int n) { return n; } static void *choose(void) { return fast; }"
        "int work(int n) __attribute__((ifunc(\"choose\"))); int main(int c, char **v) { (void)v; return work(c); }";
    for (const char *flags : {"-O0 -static", "-O0 -static-pie -fPIE", "-O0 -pie -fPIE"}) {
        workshop.compile("program", text, flags);
        auto module = workshop.open("program");
        const Symbol *work = only(module->named("work"));
        ASSERT_TRUE(work);
        EXPECT_EQ(work->kind, Symbol::Kind::ifunc);
        auto slots = module->irelative_slots();
        EXPECT_TRUE(std::any_of(slots.begin(), slots.end(), [&](auto &slot) { return slot.resolver == work->vaddr; }))
            << flags;
    }
}

TEST(Module, DemanglesAndTellsClones) {
    Workshop workshop;
    workshop.compile(
        "program",
        "namespace ns { struct Foo { int v; int bar(int *p) const; }; int Foo::bar(int *p) const { return *p + v; } "
        "template <class T> T twice(T x) { return x * 2; } template int twice<int>(int); }"
        "int main() { return 0; }",
        "-O0", "cc");
    auto module = workshop.open("program");
    auto found = module->matching(NamePattern::exact("ns::Foo::bar"));
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(module->demangled(*found[0], false), "ns::Foo::bar");
    EXPECT_EQ(module->demangled(*found[0], true), "ns::Foo::bar(int*) const");
    EXPECT_EQ(module->matching(NamePattern::exact("ns::Foo::bar(int *)")).size(), 1U);
    EXPECT_EQ(module->matching(NamePattern::exact("ns::Foo::bar(char *)")).size(), 0U);
    EXPECT_EQ(module->matching(NamePattern::exact("ns::twice<int>")).size(), 1U);
    EXPECT_EQ(module->matching(NamePattern::glob("ns::*")).size(), 2U);
}

/// Names are looked up in the tables of the file, and in order once all symbols are known: both find the same.
TEST(Module, FindsTheSameNamesInOrderAsOneByOne) {
    Workshop workshop;
    workshop.compile(
        "program",
        "namespace ns { struct Foo { int v; int bar(int *p) const; }; int Foo::bar(int *p) const { return *p "
        "+ v; } template <class T> T twice(T x) { return x * 2; } template int twice<int>(int); template "
        "long twice<long>(long); }"
        "extern \"C\" { int f(int n) { return n; } int f_more(int n) { return n; } "
        "int part(int n) __asm__(\"f.part.0\"); int part(int n) { return n + 1; } "
        "int cold(int n) __asm__(\"f.cold\"); int cold(int n) { return n + 2; } "
        "int avx(int n) __asm__(\"f.avx2\"); int avx(int n) { return n + 3; } } int f(long n) { return 1; }"
        "int main() { return 0; }",
        "-O0", "cc");
    auto one_by_one = workshop.open("program"), in_order = workshop.open("program");
    ASSERT_FALSE(in_order->symbols().empty());
    std::size_t found = 0;
    for (const char *name : {"f", "f_more", "f.part.0", "f.cold", "f.avx2", "_Z1fl", "f(long)", "ns::Foo::bar", "bar",
                             "ns::twice", "ns::twice<long>", "main", "none", "", "f.", "ns::"}) {
        std::vector<std::pair<std::string, std::uint64_t>> seen[2];
        for (const auto *module : {one_by_one.get(), in_order.get()})
            for (const Symbol *symbol : module->matching(NamePattern::exact(name)))
                seen[module == in_order.get()].emplace_back(symbol->name, symbol->vaddr);
        EXPECT_EQ(seen[0], seen[1]) << name;
        found += seen[0].size();
    }
    EXPECT_GT(found, 12U);
}

TEST(Module, ReadsTheSystemsLibraries) {
    auto libc = Module::open("/usr/lib/x86_64-linux-gnu/libc.so.6", "libc.so.6");
    if (!libc) libc = Module::open("/usr/lib/aarch64-linux-gnu/libc.so.6", "libc.so.6");
    ASSERT_TRUE(libc);
    EXPECT_EQ((*libc)->soname(), "libc.so.6");
    auto found = (*libc)->named("malloc");
    ASSERT_EQ(found.size(), 1U);
    EXPECT_TRUE(found[0]->version.starts_with("GLIBC_2."));
    EXPECT_EQ((*libc)->named("strlen").at(0)->kind, Symbol::Kind::ifunc);
    EXPECT_FALSE((*libc)->irelative_slots().empty());
    // Every symbol that is listed covers its own address, and the table is sorted.
    auto all = (*libc)->symbols();
    EXPECT_TRUE(std::is_sorted(all.begin(), all.end(), [](auto &a, auto &b) { return a.vaddr < b.vaddr; }));
    for (const Symbol &symbol : all) {
        if (symbol.kind != Symbol::Kind::function) continue;
        const Symbol *covering = (*libc)->covering(symbol.vaddr);
        ASSERT_TRUE(covering);
        EXPECT_EQ(covering->vaddr, symbol.vaddr);
        EXPECT_GT((*libc)->function_end(symbol.vaddr), symbol.vaddr) << symbol.name;
    }
}

} // namespace
} // namespace ktrace::symbols
