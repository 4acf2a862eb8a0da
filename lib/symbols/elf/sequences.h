// Sequences: the restartable sequences of a file, rseq(2): a few instructions that a thread has to make on one
// processor and without a break; the kernel breaks one off that is interrupted. Found by the sections that librseq,
// tcmalloc and their like announce them to debuggers by.
//
// Invariants: read once; descriptors that the kernel would not take are left out; looked up by bisection.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "symbols/elf/elf.h"
#include "symbols/elf/symbol.h"

namespace ktrace::symbols {

class Sequences {
  public:
    explicit Sequences(const ElfFile &file);

    bool empty() const { return ranges_.empty(); }
    /// Why the instruction [vaddr, vaddr + length) may not be replaced by a trap; nothing: it may.
    std::optional<InSequence> around(std::uint64_t vaddr, std::uint64_t length) const;

  private:
    void add_described_by(const ElfFile &file, std::uint64_t descriptor);
    std::uint64_t pointer_at(const ElfFile &file, std::uint64_t vaddr) const;

    struct Range {
        std::uint64_t start = 0, end = 0;
    };
    struct Pointer { // that the dynamic linker writes
        std::uint64_t at = 0, value = 0;
    };
    std::vector<Pointer> relocated_;    // by address; only while the constructor runs
    std::vector<Range> ranges_;         // by address, merged
    std::vector<std::uint64_t> starts_; // of the sequences alone
};

} // namespace ktrace::symbols
