// The decoder beside another one, objdump: random words of all groups, and words near the encodings that matter.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <random>
#include <set>
#include <string>

#include <unistd.h>

#include "words.h"

namespace ktrace::arch::test {
namespace {

using enum A64Form;

constexpr const char *objdump = "aarch64-linux-gnu-objdump";

std::string output_of(const std::string &command) {
    std::string text;
    FILE *pipe = ::popen(command.c_str(), "r");
    std::array<char, 65536> part;
    for (std::size_t got; (got = std::fread(part.data(), 1, part.size(), pipe)) != 0;) text.append(part.data(), got);
    return ::pclose(pipe) == 0 ? text : "";
}

/// The texts of words that lie one behind the other at 0.
std::vector<std::string> disassembled(const std::vector<std::uint32_t> &words) {
    std::string path = ::testing::TempDir() + "ktrace-words-" + std::to_string(::getpid());
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char *>(words.data()), static_cast<std::streamsize>(words.size() * a64_size));
    const std::string text = output_of(std::string(objdump) + " -b binary -m aarch64 -D -z --no-show-raw-insn " + path);
    ::unlink(path.c_str());
    std::vector<std::string> texts;
    for (std::size_t at = text.find(":\t"); at != std::string::npos; at = text.find(":\t", at)) {
        at += 2;
        texts.push_back(text.substr(at, text.find('\n', at) - at));
    }
    return texts;
}

/// The forms that an instruction with objdump's mnemonic may have.
std::set<A64Form> forms_of(const std::string &text) {
    const std::string name = text.substr(0, text.find('\t'));
    static const std::map<std::string, std::set<A64Form>> known = {
        {"adr", {adr}},
        {"adrp", {adrp}},
        {"b", {branch}},
        {"bl", {branch_link}},
        {"cbz", {compare}},
        {"cbnz", {compare}},
        {"tbz", {test}},
        {"tbnz", {test}},
        {"br", {branch_register}},
        {"blr", {branch_link_register}},
        {"ret", {return_}},
        {"retaa", {return_authenticated}},
        {"retab", {return_authenticated}},
        {"svc", {svc}},
        {"hvc", {privileged}},
        {"smc", {privileged}},
        {"eret", {privileged}},
        {"eretaa", {privileged}},
        {"eretab", {privileged}},
        {"drps", {privileged}},
        {"dcps1", {privileged}},
        {"dcps2", {privileged}},
        {"dcps3", {privileged}},
        {"brk", {breakpoint}},
        {"hlt", {halt}},
        {"udf", {undefined}},
        {"clrex", {clear_exclusive}},
        {"movprfx", {move_prefix}},
        {"tcancel", {transaction}},
        {"tcommit", {transaction}},
        {"tstart", {transaction}},
        {"ttest", {transaction}},
    };
    if (text.starts_with("adr\tz")) return {plain}; // SVE's, of vectors
    if (const auto found = known.find(name); found != known.end()) return found->second;
    if (name.starts_with("b.") || name.starts_with("bc.")) return {branch_if};
    if (name.starts_with("bra")) return {branch_authenticated};
    if (name.starts_with("blra")) return {branch_link_authenticated};
    if (name.starts_with("ldxr") || name.starts_with("ldaxr") || name == "ldxp" || name == "ldaxp")
        return {load_exclusive};
    if (name.starts_with("stxr") || name.starts_with("stlxr") || name == "stxp" || name == "stlxp")
        return {store_exclusive};
    if (name.starts_with("cpy") || name.starts_with("setp") || name.starts_with("setm") || name.starts_with("sete") ||
        name.starts_with("setg"))
        return {memory_operation};
    const bool is_literal = text.find('[') == std::string::npos;
    if (name == "ldr" && is_literal) return {literal_w, literal_x, literal_s, literal_d, literal_q};
    if (name == "ldrsw" && is_literal) return {literal_sw};
    if (name == "prfm" && is_literal) return {literal_prefetch};
    if (name == "msr" || name == "mrs" || name == "sys" || name == "sysl" || name == "dc" || name == "ic" ||
        name == "at" || name == "tlbi" || name == "cfp" || name == "dvp" || name == "cpp" || name == "cosp")
        return {plain, privileged, unknown};
    return {plain};
}

/// Where a transfer or a literal leads, as objdump writes it: the last hexadecimal number.
std::optional<std::uint64_t> target_of(const std::string &text) {
    const std::size_t at = text.rfind("0x");
    return at == std::string::npos ? std::nullopt : std::optional(std::stoull(text.substr(at), nullptr, 16));
}

bool is_unknown_to_objdump(const std::string &text) {
    return text.find(".inst") != std::string::npos || text.find("undefined") != std::string::npos;
}

void expect_same(const std::vector<std::uint32_t> &words) {
    const auto texts = disassembled(words);
    ASSERT_EQ(texts.size(), words.size());
    for (std::size_t i = 0; i < words.size(); i++) {
        if (is_unknown_to_objdump(texts[i])) continue; // a word that newer processors may have
        const A64Form form = a64_form(words[i]);
        EXPECT_TRUE(forms_of(texts[i]).contains(form))
            << std::hex << words[i] << " is " << texts[i] << ", form " << std::dec << static_cast<int>(form);
        const auto displacement = a64_displacement(words[i], form);
        if (!displacement || form == adrp) continue;
        EXPECT_EQ(i * a64_size + static_cast<std::uint64_t>(*displacement), target_of(texts[i])) << texts[i];
    }
}

class Arm64Decoder : public testing::Test {
  protected:
    void SetUp() override {
        if (output_of(std::string(objdump) + " --version 2>&1").empty()) GTEST_SKIP() << "no " << objdump;
    }
    std::mt19937 random{20261128};
};

TEST_F(Arm64Decoder, AgreesOnWordsOfAllGroups) {
    std::vector<std::uint32_t> words(60000);
    for (std::uint32_t &word : words) word = random();
    expect_same(words);
}

TEST_F(Arm64Decoder, AgreesOnBranchesLiteralsExclusivesAndTheSystemsInstructions) {
    std::vector<std::uint32_t> words;
    const std::uint32_t tops[] = {0x10, 0x90, 0x14, 0x94, 0x54, 0x34, 0xb5, 0x36, 0xb7, 0xd6, 0xd7, 0xd4, 0xd5,
                                  0x18, 0x58, 0x98, 0xd8, 0x1c, 0x5c, 0x9c, 0x08, 0x48, 0x88, 0xc8, 0x19, 0x04};
    for (const std::uint32_t top : tops)
        for (int i = 0; i < 3000; i++) words.push_back(top << 24 | (random() & 0xffffff));
    expect_same(words);
}

} // namespace
} // namespace ktrace::arch::test
