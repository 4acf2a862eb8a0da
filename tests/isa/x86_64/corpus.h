// Corpus: the instructions that every way of running one must agree about: made by the Zydis encoder for every mnemonic
// it knows, and taken from the text of real libraries.
#pragma once

#if defined(__x86_64__)

#include <cstddef>
#include <string>
#include <vector>

#include "tests/isa/x86_64/stage.h"

namespace ktrace::test {

struct Case {
    std::vector<std::byte> bytes;
    std::string text; // mnemonic and bytes, for messages
};

/// Up to `each` encodings of every mnemonic, with random operands.
std::vector<Case> encoded_cases(std::uint64_t seed, std::size_t each);

/// Near jumps, calls and branches in every form, with prefixes that matter to them and that do not.
std::vector<Case> transfer_cases(std::uint64_t seed, std::size_t count);

/// Byte strings that happen to be instructions, with prefixes and encodings that no assembler writes.
std::vector<Case> random_cases(std::uint64_t seed, std::size_t count);

/// Instructions of an ELF file's .text: at least one (at most `each`) of every mnemonic with every shape of operands,
/// and then every `stride`th.
std::vector<Case> harvested_cases(const std::string &path, std::size_t each, std::size_t stride);

/// Where the loader finds a library of this name, or empty.
std::string library_path(const std::string &name);

/// An instruction ready to run: its bytes, with pc-relative parts turned to the stage's regions, and what it starts
/// with.
struct Scene {
    std::vector<std::byte> code;
    arch::X86_64Registers regs;
    std::vector<std::byte> extended;
    std::vector<std::byte> memory;
    bool runnable = false; // false: gives no two equal runs even natively (time stamps, transactions, endless loops)
};

Scene make_scene(const Case &instruction, const Stage &stage, Random &random);

} // namespace ktrace::test

#endif
