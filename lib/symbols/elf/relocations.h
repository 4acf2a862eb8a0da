// Relocations: which slots of a module's data the dynamic linker fills with which function's address (the GOT), from
// its dynamic relocations. How the implementation of an IFUNC that a process uses is found.
//
// Invariants: relative relocations, of which a large library has hundreds of thousands, are skipped without being read
// where the file says how many there are (DT_RELACOUNT); the rest is indexed once.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "symbols/elf/elf.h"
#include "symbols/elf/symtab.h"

namespace ktrace::symbols {

class Relocations {
  public:
    /// `dynamic`: the module's dynamic symbols, which must outlive this; nullptr where it has none.
    Relocations(const ElfFile &file, const SymbolTable *dynamic);

    /// A slot that will hold the address of a symbol (JUMP_SLOT, GLOB_DAT, and pointers in data).
    struct Slot {
        std::uint64_t vaddr = 0;
        std::uint64_t symbol = 0; // index in the dynamic symbols
    };
    /// Slots for this name, of this version if it is not empty (slots without a version match all).
    std::vector<std::uint64_t> slots(std::string_view name, std::string_view version) const;
    const Slot *slot_at(std::uint64_t vaddr) const;
    const std::vector<Irelative> &irelative() const { return irelative_; }

  private:
    void read(std::span<const std::byte> table, std::uint64_t skip);

    const SymbolTable *dynamic_;
    std::uint16_t machine_;
    std::vector<Slot> slots_;            // by vaddr
    std::vector<std::uint32_t> by_name_; // indexes into slots_, by hash of the name
    std::vector<Irelative> irelative_;   // by slot
};

} // namespace ktrace::symbols
