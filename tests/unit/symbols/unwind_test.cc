// Unwind: stacks of a running program of known shape, at every instruction of a function, through libc and signal
// frames.
#include <bit>
#include <cstring>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "dwarf_program.h"
#include "dwarf_stopped.h"
#include "symbols/unwind/unwind.h"

namespace ktrace::symbols::test {
namespace {

const char *const source = R"(
#include <signal.h>
#include <stdlib.h>
volatile int sink;
__attribute__((noinline)) void leaf(void) { sink++; }
__attribute__((noinline)) int busy(int n, char *text) {
    volatile char buffer[200];
    for (int i = 0; i < 3; i++) buffer[i] = (char)(n + i);
    leaf();
    sink += buffer[1] + text[0];
    leaf();
    return sink + n;
}
__attribute__((noinline)) int compare(const void *a, const void *b) { int r = busy(*(const int *)a, "x"); sink++; return r; }
__attribute__((noinline)) int outer(void) { int v[2] = {2, 1}; qsort(v, 2, sizeof *v, compare); sink++; return v[0]; }
__attribute__((noinline)) void in_handler(void) { sink++; }
__attribute__((noinline)) void handler(int s) { in_handler(); sink += s; }
__attribute__((noinline)) int signalled(void) { raise(SIGUSR1); sink++; return sink; }
int main(void) { int r = outer(); signal(SIGUSR1, handler); r += signalled(); sink += r; return 0; }
)";

/// The memory of a stopped program.
class ProgramMemory final : public Memory {
  public:
    explicit ProgramMemory(const StoppedProgram &program) : program_(program) {}
    std::size_t read(VirtAddr at, std::span<std::byte> into) override {
        auto bytes = program_.read(at.value, into.size());
        if (!bytes.empty()) std::memcpy(into.data(), bytes.data(), bytes.size());
        return bytes.size();
    }
    bool write(VirtAddr, std::span<const std::byte>) override { return false; }

  private:
    const StoppedProgram &program_;
};

/// The modules of a stopped program, by its maps.
class Modules {
  public:
    explicit Modules(pid_t pid) {
        std::ifstream maps("/proc/" + std::to_string(pid) + "/maps");
        for (std::string line; std::getline(maps, line);) {
            std::istringstream words(line);
            std::string range, permissions, offset, device, inode, path;
            words >> range >> permissions >> offset >> device >> inode >> path;
            if (permissions[2] != 'x' || path.empty() || path[0] != '/') continue;
            std::uint64_t low = std::stoull(range, nullptr, 16),
                          high = std::stoull(range.substr(range.find('-') + 1), nullptr, 16);
            auto module = Module::open(path, path);
            if (!module) continue;
            auto vaddr = (*module)->vaddr_of_offset(std::stoull(offset, nullptr, 16));
            if (vaddr) all_.push_back({low, high, {*module, low - *vaddr}});
        }
    }
    ModuleAt at(std::uint64_t address) const {
        for (const Mapped &mapped : all_)
            if (address >= mapped.low && address < mapped.high) return mapped.module;
        return {};
    }
    std::string name(std::uint64_t address) const {
        ModuleAt found = at(address);
        const Symbol *symbol = found.module ? found.module->covering(address - found.bias) : nullptr;
        return symbol != nullptr ? std::string(symbol->name) : "?";
    }

  private:
    struct Mapped {
        std::uint64_t low, high;
        ModuleAt module;
    };
    std::vector<Mapped> all_;
};

class Unwinding : public testing::TestWithParam<Build> {
  protected:
    void SetUp() override {
        Build build = GetParam();
        build.extra = "-no-pie -fomit-frame-pointer";
        program_ = std::make_unique<Program>(Program::compile(build, source));
        stopped_ = std::make_unique<StoppedProgram>(program_->path());
        ASSERT_TRUE(stopped_->run_to(program_->symbol("main")));
        modules_ = std::make_unique<Modules>(stopped_->pid());
    }

    std::vector<std::uint64_t> stack(std::size_t most = 64) {
        const arch::Host::Registers &registers = stopped_->registers();
        ProgramMemory memory(*stopped_);
        std::vector<StackFrame> frames(most);
        frames.resize(unwinder_.unwind(
            registers, memory, [this](VirtAddr at) { return modules_->at(at.value); }, frames));
        std::vector<std::uint64_t> addresses;
        for (const StackFrame &frame : frames) addresses.push_back(frame.pc);
        return addresses;
    }

    /// The names of the program's own functions on the stack, innermost first; `...` for libc's.
    std::vector<std::string> names() {
        std::vector<std::string> all;
        auto addresses = stack();
        for (std::size_t i = 0; i < addresses.size(); ++i) {
            ModuleAt at = modules_->at(addresses[i] - (i != 0));
            bool own = at.module && at.module->path() == program_->path();
            std::string name = own ? modules_->name(addresses[i] - (i != 0)) : "...";
            if (name != "..." || all.empty() || all.back() != "...") all.push_back(name);
        }
        return all;
    }

    std::unique_ptr<Program> program_;
    std::unique_ptr<StoppedProgram> stopped_;
    std::unique_ptr<Modules> modules_;
    Unwinder unwinder_;
};

using Names = std::vector<std::string>;

TEST_P(Unwinding, ThroughLibcToTheStart) {
    ASSERT_TRUE(stopped_->run_to(program_->symbol("leaf")));
    EXPECT_EQ(names(), (Names{"leaf", "busy", "compare", "...", "outer", "main", "...", "_start"}));
}

TEST_P(Unwinding, AtEveryInstructionOfAFunction) {
    std::uint64_t entry = program_->symbol("busy");
    ASSERT_TRUE(stopped_->run_to(entry));
    auto first = stack();
    ASSERT_GT(first.size(), 5U);
    int steps = 0;
    while (stopped_->pc() != first[1]) {
        auto now = stack();
        std::size_t extra = modules_->name(stopped_->pc()) == "leaf" ? 1 : 0;
        ASSERT_EQ(now.size(), first.size() + extra) << "at busy + " << stopped_->pc() - entry;
        for (std::size_t i = 1; i < first.size(); ++i)
            EXPECT_EQ(now[i + extra], first[i]) << "frame " << i << " at busy + " << stopped_->pc() - entry;
        ASSERT_TRUE(stopped_->step());
        ++steps;
    }
    EXPECT_GT(steps, 15);
}

TEST_P(Unwinding, ThroughASignalFrame) {
    ASSERT_TRUE(stopped_->run_to(program_->symbol("in_handler")));
    EXPECT_EQ(names(), (Names{"in_handler", "handler", "...", "signalled", "main", "...", "_start"}));
}

TEST_P(Unwinding, WithoutRegistersAsFarAsNoneIsNeeded) {
    ASSERT_TRUE(stopped_->run_to(program_->symbol("busy")));
    ASSERT_TRUE(stopped_->step()); // behind the first instruction, which a frame pointer's push may be
    const auto whole = stack();
    ProgramMemory memory(*stopped_);
    std::vector<StackFrame> frames(64);
    const Unwound unwound = unwinder_.unwind(
        VirtAddr{stopped_->pc()}, VirtAddr{stopped_->sp()}, memory,
        [this](VirtAddr at) { return modules_->at(at.value); }, frames);
    ASSERT_LE(unwound.frames, whole.size());
    for (std::size_t i = 0; i < unwound.frames; ++i) EXPECT_EQ(frames[i].pc, whole[i]) << i;
    EXPECT_EQ(unwound.lacks_registers, unwound.frames < whole.size());
}

TEST_P(Unwinding, ARegisterThatIsNotKnownEndsIt) {
    ASSERT_TRUE(stopped_->run_to(program_->symbol("leaf")));
    ProgramMemory memory(*stopped_);
    std::vector<StackFrame> frames(64);
    auto generated = [](VirtAddr) { return ModuleAt{}; }; // no call frame information: by frame pointers
    const Unwound unwound =
        unwinder_.unwind(VirtAddr{stopped_->pc()}, VirtAddr{stopped_->sp()}, memory, generated, frames);
    EXPECT_EQ(unwound.frames, 1U);
    EXPECT_TRUE(unwound.lacks_registers);
}

TEST_P(Unwinding, NoMoreThanThereIsRoomFor) {
    ASSERT_TRUE(stopped_->run_to(program_->symbol("leaf")));
    auto whole = stack();
    auto two = stack(2);
    ASSERT_EQ(two.size(), 2U);
    EXPECT_EQ(two[1], whole[1]);
    EXPECT_TRUE(stack(0).empty());
}

TEST_P(Unwinding, ABrokenStackEnds) {
    ASSERT_TRUE(stopped_->run_to(program_->symbol("leaf")));
    class Repeated final : public Memory {
      public:
        explicit Repeated(std::uint64_t value) : value_(value) {}
        std::size_t read(VirtAddr, std::span<std::byte> into) override {
            for (std::size_t i = 0; i < into.size(); ++i) into[i] = static_cast<std::byte>(value_ >> (8 * (i % 8)));
            return into.size();
        }
        bool write(VirtAddr, std::span<const std::byte>) override { return false; }

      private:
        std::uint64_t value_;
    };
    const arch::Host::Registers &registers = stopped_->registers();
    std::vector<StackFrame> into(1000);
    auto find = [this](VirtAddr at) { return modules_->at(at.value); };
    for (std::uint64_t value : {std::uint64_t{0}, stopped_->pc(), stopped_->sp(), ~std::uint64_t{0}}) {
        Repeated memory(value);
        EXPECT_GE(unwinder_.unwind(registers, memory, find, into), 1U);
    }
}

std::vector<Build> builds() {
    std::vector<Build> made{{"gcc", 5, "-O0", ""}};
    for (const std::string &compiler : compilers()) made.push_back({compiler, 5, "-O2", ""});
    return made;
}

INSTANTIATE_TEST_SUITE_P(Unwind, Unwinding, testing::ValuesIn(builds()),
                         [](const auto &each) { return each.param.name(); });

} // namespace
} // namespace ktrace::symbols::test
