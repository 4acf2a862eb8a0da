// Module::in_sequence: restartable sequences by their descriptors, in files linked in every way.
#include "symbols/module.h"

#include <cstdlib>
#include <string_view>

#include "workshop.h"

namespace ktrace::symbols {
namespace {

/// A function of one-byte instructions, with a sequence [4, 8) and a handler at 16.
std::string file_with(const std::string &section, const std::string &descriptor, const std::string &more = {}) {
    return "asm(\".text\\n.globl work\\n.type work, @function\\nwork: .fill 32, 1, 0x90\\n.size work, 32\\n"
           ".section " +
           section + ", \\\"aw\\\"\\n.balign 32\\nseq:\\n" + descriptor + more + "\\n.text\");\n";
}

constexpr const char *usual = ".long 0, 0\\n.quad work + 4, 4, work + 16\\n";

/// The offsets in `work` whose one-byte instructions are refused.
std::vector<int> refused(const std::string &text, const std::string &flags) {
    Workshop workshop;
    workshop.compile("file", text, flags);
    auto module = workshop.open("file");
    auto work = module->named("work");
    EXPECT_EQ(work.size(), 1U);
    std::vector<int> offsets;
    for (int offset = 0; offset < 32 && !work.empty(); offset++)
        if (module->in_sequence(work[0]->vaddr + static_cast<std::uint64_t>(offset), 1)) offsets.push_back(offset);
    return offsets;
}

class InSequence : public testing::TestWithParam<const char *> {};

TEST_P(InSequence, IsToldOfItAndOfTheInstructionBefore) {
    if (std::string_view(GetParam()).ends_with("lld") && std::getenv("KTRACE_TEST_SLOW") != nullptr)
        GTEST_SKIP() << "no lld in an emulated machine";
    const std::string main = "int main(void) { return 0; }\n";
    const std::vector<int> expected{3, 4, 5, 6, 7, 12, 13, 14, 15};
    EXPECT_EQ(refused(main + file_with("__rseq_cs", usual), GetParam()), expected);
    EXPECT_EQ(
        refused(main + file_with(".data", usual, ".section __rseq_cs_ptr_array, \\\"aw\\\"\\n.quad seq"), GetParam()),
        expected);
}

INSTANTIATE_TEST_SUITE_P(Links, InSequence,
                         testing::Values("-pie -fPIE", "-no-pie", "-static", "-static-pie -fPIE",
                                         "-pie -fPIE -Wl,-z,pack-relative-relocs", "-shared -fPIC -Wl,-Bsymbolic",
                                         "-pie -fPIE -fuse-ld=lld"),
                         [](const auto &kind) {
                             std::string name = kind.param;
                             std::erase_if(name, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); });
                             return name;
                         });

TEST(NotInSequence, IsWhatTheKernelWouldNotTake) {
    const char *flags = "-shared -fPIC -Wl,-Bsymbolic";
    EXPECT_TRUE(refused(file_with(".data", usual), flags).empty());
    for (const char *descriptor :
         {".long 1, 0\\n.quad work + 4, 4, work + 16", ".long 0, 0\\n.quad work + 4, 0, work + 16",
          ".long 0, 0\\n.quad work + 4, 20, work + 16", ".long 0, 0\\n.quad work + 4, -1, work + 16",
          ".long 0, 0\\n.quad work + 4"})
        EXPECT_TRUE(refused(file_with("__rseq_cs", descriptor), flags).empty()) << descriptor;
}

} // namespace
} // namespace ktrace::symbols
