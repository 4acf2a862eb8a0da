// An ELF file's symbols, segments and restartable sequences, as data.
#pragma once

#include <cstdint>
#include <string_view>

namespace ktrace::symbols {

/// A symbol of a function, an indirect function or a variable.
struct Symbol {
    enum class Kind : std::uint8_t { function, ifunc, object, tls };
    std::string_view name;    // as in the string table, without a version; lives as long as the Module
    std::string_view version; // GLIBC_2.14, or empty
    std::uint64_t vaddr = 0;
    std::uint64_t size = 0;
    Kind kind = Kind::function;
    bool global = false; // global or weak
    bool default_version = true;

    bool is_function() const { return kind == Kind::function || kind == Kind::ifunc; }
};

/// A PT_LOAD of the file.
struct Segment {
    std::uint64_t vaddr = 0, file_offset = 0, file_size = 0, memory_size = 0;
    bool executable = false, writable = false;
};

/// An instruction is one of a restartable sequence, rseq(2), begins one, or is what the kernel knows an abort handler
/// by: a trap there would break the sequence off each time.
struct InSequence {
    std::uint64_t end = 0; // vaddr behind the sequence
};

/// A slot that the dynamic linker fills with what a resolver returns (R_*_IRELATIVE); vaddrs.
struct Irelative {
    std::uint64_t slot = 0, resolver = 0;
};

} // namespace ktrace::symbols
