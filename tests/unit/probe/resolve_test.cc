// Resolve: SPECs into locations, on programs that the compiler makes and on this process itself.
#include "probe/resolve.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>

#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../symbols/workshop.h"
#include "symbols/names/name_pattern.h"

namespace ktrace::probe {
namespace {

using symbols::Workshop;

constexpr const char *source = R"(
namespace ns {
struct Foo { int v; __attribute__((noinline)) int bar(int *p) const { return v + *p; } int operator+(int n) const; };
__attribute__((noinline)) int Foo::operator+(int n) const { return v + n; }
template <class T> __attribute__((noinline)) T twice(T x) { return x * 2; }
}
int counter = 5;
static inline __attribute__((always_inline)) int inlined(int x) { return x * x + counter; }
extern "C" {
__attribute__((noinline)) static int hidden(int n) { return n * 3 + counter; }
__attribute__((noinline)) int do_work(int n) {
    int sum = inlined(n);            // line 12
    for (int i = 2; i < n; i++) sum += inlined(sum);

    return sum + hidden(n);
}
}
int main(int argc, char **) {
    ns::Foo foo{argc};
    return do_work(argc) + foo.bar(&argc) + (foo + 3) + ns::twice<int>(argc) + (int)ns::twice<long>(argc);
}
)";

class ResolveProgram : public testing::Test {
  protected:
    static void SetUpTestSuite() {
        workshop = new Workshop;
        workshop->compile("program", source, "-O1 -g", "cc");
        modules = {{workshop->open("program"), 0, true}};
    }
    static void TearDownTestSuite() {
        modules.clear();
        delete workshop;
    }

    static Result<Resolved> find(const std::string &text, Kind kind = Kind::probe) {
        auto spec = parse_spec(text);
        EXPECT_TRUE(spec) << text;
        return resolve(*spec, kind, modules, nullptr);
    }
    static std::vector<std::string> names(const std::string &text, Kind kind = Kind::probe) {
        auto found = find(text, kind);
        EXPECT_TRUE(found) << text << ": " << found.error().message;
        std::vector<std::string> all;
        if (found)
            for (const Location &location : found->locations) all.push_back(location.symbol);
        std::sort(all.begin(), all.end());
        return all;
    }
    static Error error(const std::string &text, Kind kind = Kind::probe) {
        auto found = find(text, kind);
        EXPECT_FALSE(found) << text;
        return found ? Error{} : found.error();
    }

    static inline Workshop *workshop;
    static inline std::vector<Loaded> modules;
};

using Names = std::vector<std::string>;

TEST_F(ResolveProgram, FindsFunctions) {
    EXPECT_EQ(names("do_work"), Names{"do_work"});
    EXPECT_EQ(names("hidden"), Names{"hidden"});
    EXPECT_EQ(names("program:do_work"), Names{"do_work"});
    EXPECT_EQ(names(workshop->path("program") + ":do_work"), Names{"do_work"});
    EXPECT_EQ(names("ns::Foo::bar"), Names{"ns::Foo::bar"});
    EXPECT_EQ(names("ns::Foo::bar(int*)"), Names{"ns::Foo::bar"});
    EXPECT_EQ(names("ns::Foo::operator+"), Names{"ns::Foo::operator+"});
    EXPECT_EQ(names("ns::twice"), (Names{"ns::twice<int>", "ns::twice<long>"}));
    EXPECT_EQ(names("ns::twice<long>"), Names{"ns::twice<long>"});
    auto found = *find("do_work");
    const symbols::Symbol *symbol = modules[0].module->named("do_work").at(0);
    EXPECT_EQ(found.locations[0].vaddr, symbol->vaddr);
    EXPECT_EQ(found.locations[0].function, symbol->vaddr);
    EXPECT_EQ(found.locations[0].function_end, symbol->vaddr + symbol->size);
    EXPECT_FALSE(found.locations[0].inlined());
}

TEST_F(ResolveProgram, TriesExactNamesBeforeGlobs) {
    EXPECT_EQ(names("do_*"), Names{"do_work"});
    EXPECT_EQ(names("*wor[k]"), Names{"do_work"});
    EXPECT_EQ(names("ns::twice*"), (Names{"ns::twice<int>", "ns::twice<long>"}));
    EXPECT_EQ(names("ns::Foo::operator*"), Names{"ns::Foo::operator+"});
    Error none = error("no_*_such");
    EXPECT_EQ(none.kind, Error::Kind::not_found);
    EXPECT_EQ(none.message, "no function of program matches no_*_such");
}

TEST_F(ResolveProgram, ChecksOffsets) {
    const symbols::Symbol *symbol = modules[0].module->named("do_work").at(0);
    std::vector<std::uint64_t> starts;
    for (std::uint64_t offset = 1; offset < symbol->size; offset++) {
        auto found = find("do_work+" + std::to_string(offset));
        if (found) {
            ASSERT_EQ(found->locations.size(), 1U);
            EXPECT_EQ(found->locations[0].vaddr, symbol->vaddr + offset);
            EXPECT_EQ(found->locations[0].offset, offset);
            EXPECT_EQ(found->locations[0].function, symbol->vaddr);
            starts.push_back(offset);
        } else {
            EXPECT_EQ(found.error().kind, Error::Kind::refused);
            EXPECT_EQ(found.error().column, 8);
            EXPECT_NE(found.error().message.find("is not at the start of an instruction"), std::string::npos);
            EXPECT_NE(found.error().hint.find("do_work+"), std::string::npos);
        }
    }
    // The disassembler agrees.
    workshop->run("objdump -d --no-show-raw-insn program | sed -n '/<do_work>:/,/^$/p' | grep -c '^ ' > count");
    auto count = workshop->read("count");
    EXPECT_EQ(starts.size() + 1, static_cast<std::size_t>(std::stoi(std::string(count.begin(), count.end()))));
    EXPECT_NE(error("do_work+9999").message.find("do_work+9999 is behind the function's end"), std::string::npos);
    EXPECT_EQ(error("do_work+9999").column, 8);
}

TEST_F(ResolveProgram, EntryAndReturnTakeNoOffset) {
    for (Kind kind : {Kind::entry, Kind::ret}) {
        EXPECT_EQ(error("do_work+1", kind).kind, Error::Kind::refused);
        EXPECT_EQ(error("do_work+1", kind).column, 8);
        EXPECT_EQ(names("do_work+0", kind), Names{"do_work"});
        EXPECT_EQ(names("do_work", kind), Names{"do_work"});
    }
}

TEST_F(ResolveProgram, FindsInlinedInstances) {
    for (Kind kind : {Kind::probe, Kind::entry}) {
        auto found = find("inlined", kind);
        ASSERT_TRUE(found) << found.error().message;
        EXPECT_EQ(found->locations.size(), 2U);
        const symbols::Symbol *into = modules[0].module->named("do_work").at(0);
        for (const Location &location : found->locations) {
            EXPECT_TRUE(location.inlined());
            EXPECT_EQ(location.symbol, "inlined");
            EXPECT_EQ(location.offset, 0U);
            EXPECT_EQ(location.function, into->vaddr);
        }
    }
    Error refused = error("inlined", Kind::ret);
    EXPECT_EQ(refused.kind, Error::Kind::refused);
    EXPECT_NE(refused.message.find("at 2 places"), std::string::npos) << refused.message;
    EXPECT_EQ(find("*in*", Kind::ret)->inlined_left_out, 2U);
}

TEST_F(ResolveProgram, FindsLines) {
    auto found = find("program.cc:12");
    ASSERT_TRUE(found) << found.error().message;
    ASSERT_FALSE(found->locations.empty());
    EXPECT_EQ(found->locations[0].symbol, "do_work");
    Error none = error("program.cc:14");
    EXPECT_EQ(none.message, "program.cc:14 has no code");
    EXPECT_NE(none.hint.find("program.cc:15"), std::string::npos) << none.hint;
    EXPECT_EQ(none.column, 11);
    EXPECT_EQ(error("progam.cc:12").hint, "did you mean program.cc?");
    EXPECT_EQ(error("program.cc:13", Kind::ret).kind, Error::Kind::refused);
}

TEST_F(ResolveProgram, TakesAddressesOfTheFile) {
    const symbols::Symbol *symbol = modules[0].module->named("do_work").at(0);
    auto text = [](std::uint64_t value) {
        char digits[32];
        std::snprintf(digits, sizeof digits, "0x%llx", static_cast<unsigned long long>(value));
        return std::string(digits);
    };
    auto found = find("program:" + text(symbol->vaddr));
    ASSERT_TRUE(found);
    EXPECT_EQ(found->locations[0].symbol, "do_work");
    EXPECT_EQ(found->locations[0].offset, 0U);
    EXPECT_TRUE(find("program:" + text(symbol->vaddr), Kind::ret));
    bool refused = false;
    for (std::uint64_t offset = 1; offset < symbol->size; offset++)
        refused = refused || !find("program:" + text(symbol->vaddr + offset));
    EXPECT_TRUE(refused);
    EXPECT_EQ(error("program:0x7fffffff").kind, Error::Kind::refused);
    std::uint64_t data = modules[0].module->named("counter").at(0)->vaddr;
    EXPECT_NE(error("program:" + text(data)).message.find("is data of program"), std::string::npos);
}

TEST_F(ResolveProgram, SaysWhatIsWrong) {
    Error typo = error("do_wrok");
    EXPECT_EQ(typo.kind, Error::Kind::not_found);
    EXPECT_EQ(typo.message, "no function do_wrok in program");
    EXPECT_EQ(typo.hint, "did you mean do_work?");
    EXPECT_EQ(typo.column, 0);
    EXPECT_EQ(typo.width, 7);
    Error variable = error("counter");
    EXPECT_EQ(variable.kind, Error::Kind::refused);
    EXPECT_NE(variable.message.find("is a variable"), std::string::npos);
    Error both = error("do_work:0x10");
    EXPECT_EQ(both.kind, Error::Kind::usage);
    EXPECT_NE(both.message.find("a symbol and an address together"), std::string::npos);
    EXPECT_EQ(error("ns::Foo::baz").hint, "did you mean ns::Foo::bar?");
    EXPECT_TRUE(error("bar").hint.starts_with("did you mean ns::Foo::bar")) << error("bar").hint;
}

TEST_F(ResolveProgram, WaitsForModulesThatAreNotLoaded) {
    for (const char *text : {"libnone:foo", "libnone:do_*", "libnone:a.c:3", "libnone:0x100"}) {
        auto found = find(text);
        ASSERT_TRUE(found) << text;
        EXPECT_TRUE(found->pending);
        EXPECT_TRUE(found->locations.empty());
    }
}

TEST(Resolve, FindsClonesButNoColdParts) {
    Workshop workshop;
    workshop.compile("program", R"(
        __asm__(".text\n.type do_work,@function\ndo_work: ret\n.size do_work,1\n.type do_work.constprop.0,@function\ndo_work.constprop.0: ret\n"
                ".size do_work.constprop.0,1\n.type do_work.cold,@function\ndo_work.cold: ret\n.size do_work.cold,1\n.type do_work2,@function\n"
                "do_work2: ret\n.size do_work2,1");
        int main(void) { return 0; })",
                     "");
    std::vector<Loaded> modules{{workshop.open("program"), 0, true}};
    auto found = resolve(*parse_spec("do_work"), Kind::ret, modules, nullptr);
    ASSERT_TRUE(found);
    ASSERT_EQ(found->locations.size(), 2U);
    EXPECT_EQ(found->locations[0].symbol, "do_work");
    EXPECT_EQ(found->locations[1].symbol, "do_work.constprop.0");
    EXPECT_EQ(resolve(*parse_spec("do_work*"), Kind::ret, modules, nullptr)->locations.size(), 3U);
    EXPECT_TRUE(resolve(*parse_spec("do_work.cold"), Kind::probe, modules, nullptr));
    EXPECT_FALSE(resolve(*parse_spec("do_work.cold"), Kind::ret, modules, nullptr));
}

TEST(Resolve, TakesAPieceForAFunctionOnlyWhereThatIsNotThere) {
    Workshop workshop;
    std::string functions = ".text\n";
    for (const char *name : {"f", "f.isra.0", "f.isra.0.part.0", "f.part.1", "g.part.0", "_Z1hi", "_Z1hi.part.0",
                             "_Z1hi.resume", "_Z1kPZ1kiE11_Z1ki.Frame.actor", "main.resume"})
        functions += ".type " + std::string(name) + ",@function\n" + name + ": ret\n.size " + name + ",1\n";
    workshop.compile("program", "__asm__(R\"(" + functions + ")\"); int main(void) { return 0; }", "");
    std::vector<Loaded> modules{{workshop.open("program"), 0, true}};
    auto found = [&](const char *spec) {
        const auto resolved = resolve(*parse_spec(spec), Kind::probe, modules, nullptr);
        Names names;
        for (const Location &location : resolved->locations) names.push_back(location.symbol);
        return names;
    };
    EXPECT_EQ(found("f"), (Names{"f", "f.isra.0"}));
    EXPECT_EQ(found("g"), Names{"g.part.0"});
    EXPECT_EQ(found("h"), Names{"h"});
    EXPECT_EQ(found("h(int)"), Names{"h"});
    EXPECT_EQ(found("f.part.1"), Names{"f.part.1"});
    EXPECT_EQ(found("[fgh]"), (Names{"f", "f.isra.0", "g.part.0", "h"}));
    EXPECT_EQ(found("h.resume"), Names{"h.resume"}); // of a coroutine
    EXPECT_EQ(found("k.actor"), Names{"k.actor"});
    EXPECT_EQ(found("k"), Names{"k.actor"});
    EXPECT_EQ(found("main.resume"), Names{"main.resume"}); // of Go
    EXPECT_EQ(found("f*.part*"), (Names{"f.isra.0.part.0", "f.part.1"}));
}

TEST(Resolve, IsGivenUpInTheMiddleOfATable) {
    constexpr int functions = 64;
    const std::string begin(1U << 15U, 'a'); // of each name: 2 MiB in all
    std::string text = ".text\n";
    for (int i = 0; i < functions; ++i) {
        std::string name = begin + std::to_string(i);
        text += ".globl " + name + "\n.type " + name + ", @function\n" + name + ": ret\n.size " + name + ", .-" + name +
                "\n.section .note.GNU-stack\n.text\n";
    }
    Workshop workshop;
    workshop.write("names.s", text);
    workshop.run("gcc -shared -nostdlib names.s -o names.so");
    auto module = workshop.open("names.so");
    auto all = symbols::NamePattern::glob("a*");
    EXPECT_EQ(module->matching(all, [] { return false; }).size(), functions);
    EXPECT_EQ(module->matching(all).size(), functions);
    int asked = 0;
    auto gives_up = [&asked] { return ++asked == 1; };
    auto found = module->matching(all, gives_up).size();
    EXPECT_EQ(asked, 1);
    EXPECT_GT(found, 0U);
    EXPECT_LT(found, functions);
    std::vector<Loaded> modules{{module, 0, true}};
    auto resolved = resolve(*parse_spec("a*"), Kind::probe, modules, nullptr, [] { return true; });
    ASSERT_FALSE(resolved);
    EXPECT_EQ(resolved.error().kind, Error::Kind::given_up);
}

TEST(Resolve, FindsTheNameInAllModules) {
    Workshop workshop;
    workshop.compile("a.so", "int same(void) { return 1; } int alias(void) __attribute__((alias(\"same\")));",
                     "-shared -fPIC");
    workshop.compile("b.so", "static int same(void) { return 2; } int (*pointer)(void) = same;", "-shared -fPIC");
    std::vector<Loaded> modules{{workshop.open("b.so"), 0x1000, false}, {workshop.open("a.so"), 0x2000, false}};
    auto found = resolve(*parse_spec("same"), Kind::probe, modules, nullptr);
    ASSERT_TRUE(found);
    ASSERT_EQ(found->locations.size(), 2U);
    EXPECT_EQ(found->locations[0].module->name(), "b.so"); // in the order of the modules
    EXPECT_EQ(found->locations[1].module->name(), "a.so");
    EXPECT_EQ(resolve(*parse_spec("a:*"), Kind::probe, modules, nullptr)->locations.size(),
              resolve(*parse_spec("a.so:*"), Kind::probe, modules, nullptr)->locations.size());
    auto wrong = resolve(*parse_spec("b:alias"), Kind::probe, modules, nullptr);
    ASSERT_FALSE(wrong);
    EXPECT_EQ(wrong.error().hint, "a.so has it");
    // One function with two names is one location.
    auto glob = resolve(*parse_spec("a.so:*a*"), Kind::probe, modules, nullptr);
    ASSERT_TRUE(glob);
    EXPECT_EQ(std::count_if(glob->locations.begin(), glob->locations.end(),
                            [&](const Location &l) { return l.vaddr == found->locations[1].vaddr; }),
              1);
}

// --- a process: this one

class OwnMemory : public Memory {
  public:
    std::size_t read(VirtAddr at, std::span<std::byte> into) override {
        int fds[2];
        if (::pipe(fds) != 0) return 0;
        ssize_t size = ::write(fds[1], reinterpret_cast<const void *>(at.value), into.size()); // EFAULT where unmapped
        if (size > 0) size = ::read(fds[0], into.data(), static_cast<std::size_t>(size));
        ::close(fds[0]);
        ::close(fds[1]);
        return size < 0 ? 0 : static_cast<std::size_t>(size);
    }
    bool write(VirtAddr, std::span<const std::byte>) override { return false; }
};

std::vector<Loaded> own_modules() {
    std::vector<Loaded> modules;
    ::dl_iterate_phdr(
        [](dl_phdr_info *info, std::size_t, void *into) {
            auto &all = *static_cast<std::vector<Loaded> *>(into);
            std::string path = all.empty() ? "/proc/self/exe" : info->dlpi_name;
            auto module =
                symbols::Module::open(path, all.empty() ? std::filesystem::read_symlink(path).string() : path);
            if (module) all.push_back({*module, info->dlpi_addr, all.empty()});
            return 0;
        },
        &modules);
    return modules;
}

TEST(ResolveProcess, FindsTheImplementationOfAnIfunc) {
    OwnMemory memory;
    auto modules = own_modules();
    void *libc = ::dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD); // a sanitizer may have its own in front
    ASSERT_TRUE(libc);
    for (const char *name : {"strlen", "memcpy", "strchr"}) {
        auto expected = reinterpret_cast<std::uint64_t>(::dlsym(libc, name));
        auto found = resolve(*parse_spec(std::string("libc.so.6:") + name), Kind::ret, modules, &memory);
        ASSERT_TRUE(found) << found.error().message;
        EXPECT_TRUE(found->ifunc_resolvers.empty());
        bool there = std::any_of(found->locations.begin(), found->locations.end(), [&](const Location &location) {
            for (const Loaded &loaded : modules)
                if (loaded.module == location.module && location.vaddr + loaded.bias == expected)
                    return location.symbol == name && location.offset == 0 && location.function == location.vaddr;
            return false;
        });
        EXPECT_TRUE(there) << name;
    }
}

TEST(ResolveProcess, WaitsForTheResolverWhereNoSlotIsFilled) {
    struct Nothing : OwnMemory {
        std::size_t read(VirtAddr, std::span<std::byte>) override { return 0; }
    } memory;
    auto modules = own_modules();
    auto found = resolve(*parse_spec("libc.so.6:strlen"), Kind::ret, modules, &memory);
    ASSERT_TRUE(found);
    EXPECT_TRUE(found->locations.empty());
    ASSERT_EQ(found->ifunc_resolvers.size(), 1U);
    EXPECT_EQ(found->ifunc_resolvers[0].symbol, "strlen");
    EXPECT_EQ(found->ifunc_resolvers[0].vaddr, found->ifunc_resolvers[0].module->named("strlen").at(0)->vaddr);
}

TEST(ResolveProcess, TakesRawAddresses) {
    OwnMemory memory;
    auto modules = own_modules();
    auto find = [&](std::uint64_t address, Kind kind = Kind::probe) {
        char text[32];
        std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(address));
        return resolve(*parse_spec(text), kind, modules, &memory);
    };
    auto found = find(reinterpret_cast<std::uint64_t>(::dlsym(RTLD_DEFAULT, "getpid")));
    ASSERT_TRUE(found);
    EXPECT_TRUE(found->locations[0].symbol.ends_with("getpid")) << found->locations[0].symbol;
    EXPECT_EQ(found->locations[0].offset, 0U);
    void *page = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    auto generated = find(reinterpret_cast<std::uint64_t>(page));
    ASSERT_TRUE(generated);
    EXPECT_EQ(generated->locations[0].module, nullptr);
    EXPECT_EQ(generated->locations[0].vaddr, reinterpret_cast<std::uint64_t>(page));
    ::munmap(page, 4096);
    EXPECT_FALSE(find(reinterpret_cast<std::uint64_t>(page)));
    EXPECT_FALSE(find(reinterpret_cast<std::uint64_t>(::dlsym(RTLD_DEFAULT, "_IO_2_1_stdout_")))); // data of libc
}

TEST(ResolveProcess, StaticProgramsHaveIfuncsToo) {
    Workshop workshop;
    const char *text =
        "static int fast(int n) { return n; } static void *choose(void) { return fast; }"
        "int work(int n) __attribute__((ifunc(\"choose\"))); int main(int c, char **v) { (void)v; return work(c); }";
    for (const char *flags : {"-O0 -static", "-O0 -static-pie -fPIE"}) {
        workshop.compile("program", text, flags);
        auto module = workshop.open("program");
        // As in the process: the slots filled as the start-up code fills them.
        struct Filled : Memory {
            std::map<std::uint64_t, std::uint64_t> slots;
            std::size_t read(VirtAddr at, std::span<std::byte> into) override {
                auto slot = slots.find(at.value);
                if (slot == slots.end() || into.size() != 8) return 0;
                std::memcpy(into.data(), &slot->second, 8);
                return 8;
            }
            bool write(VirtAddr, std::span<const std::byte>) override { return false; }
        } memory;
        constexpr std::uint64_t bias = 0x10000;
        std::uint64_t fast = module->named("fast").at(0)->vaddr, work = module->named("work").at(0)->vaddr;
        for (auto &slot : module->irelative_slots())
            if (slot.resolver == work) memory.slots[slot.slot + bias] = fast + bias;
        std::vector<Loaded> modules{{module, bias, true}};
        auto found = resolve(*parse_spec("work"), Kind::ret, modules, &memory);
        ASSERT_TRUE(found);
        ASSERT_EQ(found->locations.size(), 1U) << flags;
        EXPECT_EQ(found->locations[0].vaddr, fast);
        EXPECT_EQ(found->locations[0].symbol, "work");
        // Before that the slots point at stubs.
        for (auto &slot : module->irelative_slots()) {
            auto initial = module->bytes_at(slot.slot, 8);
            std::uint64_t value = 0;
            std::memcpy(&value, initial.data(), initial.size());
            memory.slots[slot.slot + bias] = value == 0 ? 0 : value + bias;
        }
        found = resolve(*parse_spec("work"), Kind::ret, modules, &memory);
        ASSERT_TRUE(found);
        EXPECT_TRUE(found->locations.empty()) << flags;
        EXPECT_EQ(found->ifunc_resolvers.size(), 1U);
    }
}

TEST(ModuleName, MayBeShort) {
    Workshop workshop;
    workshop.compile("libfoo-2.0.so.0.7", "int f(void) { return 1; }", "-shared -fPIC -Wl,-soname,libsoname.so.3");
    auto file = workshop.path("libfoo-2.0.so.0.7");
    auto module = *symbols::Module::open(file, file);
    for (std::string name : {std::string("libfoo-2.0.so.0.7"), std::string("libfoo"), std::string("libfoo-2.0"),
                             std::string("libfoo-2.0.so"), std::string("libsoname"), std::string("libsoname.so.3"),
                             std::string("libf*"), file})
        EXPECT_TRUE(names_module(name, *module)) << name;
    for (std::string name :
         {std::string("lib"), std::string("foo"), std::string("libfo"), std::string("libfoo-2.0.so.0.71"),
          std::string("/other/libfoo-2.0.so.0.7"), std::string("")})
        EXPECT_FALSE(names_module(name, *module)) << name;
}

TEST(ModuleName, MayBeThatOfALinkBesideTheFile) {
    Workshop workshop;
    workshop.compile("tool-real", "int main(void) { return 0; }", "-O1");
    auto file = workshop.path("tool-real");
    std::filesystem::create_symlink("tool-real", workshop.path("tool"));
    std::filesystem::create_symlink("tool", workshop.path("tool-of-old"));
    std::filesystem::create_symlink("elsewhere", workshop.path("dangling"));
    std::filesystem::copy_file(file, workshop.path("copy"));
    auto module = *symbols::Module::open(file, file);
    for (const char *name : {"tool-real", "tool", "tool-of-old"}) EXPECT_TRUE(names_module(name, *module)) << name;
    for (const char *name : {"dangling", "copy", "nothing", "", "."}) EXPECT_FALSE(names_module(name, *module)) << name;
}

} // namespace
} // namespace ktrace::probe
