// SymbolTable: one symbol table as it lies in a file, .symtab or .dynsym, with its names and versions, read in place.
//
// Invariants: it decodes nothing ahead of time; every index, name and hash chain is checked against the file, and names
// are views into it. A symbol is listed only if it is defined, has an address inside the file's image, and is of a kind
// that can be probed or watched: what PLT entries and undefined symbols look like never gets out of here.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "symbols/elf/bytes.h"
#include "symbols/elf/elf.h"
#include "symbols/elf/symbol.h"

namespace ktrace::symbols {

/// Names of the versions that .gnu.version's numbers mean, from .gnu.version_d and .gnu.version_r (LSB core, "Symbol
/// Versioning").
class SymbolVersions {
  public:
    SymbolVersions() = default;
    explicit SymbolVersions(const ElfFile &file);

    struct Version {
        std::string_view name; // empty: none
        bool hidden = false;   // not the default one
    };
    Version of(std::uint64_t symbol_index) const;

  private:
    void read_definitions(const ElfFile &file);
    void read_needs(const ElfFile &file);
    void set(std::uint16_t number, std::string_view name);

    std::span<const std::byte> numbers_; // .gnu.version: a u16 per symbol
    std::vector<std::string_view> names_;
};

class SymbolTable {
  public:
    /// The .symtab of a file (`loaded` itself, or a debug file of its), or the dynamic symbols, which are found through
    /// PT_DYNAMIC, so that files without section headers have them too. Nothing where the file has none.
    static std::optional<SymbolTable> static_of(const ElfFile &file, const ElfFile &loaded);
    static std::optional<SymbolTable> dynamic_of(const ElfFile &file);

    const ElfFile &file() const { return *file_; }
    bool dynamic() const { return dynamic_; }
    std::uint64_t count() const { return count_; }
    /// The bytes that a pass over all symbols touches.
    std::span<const std::byte> entries() const { return entries_; }
    std::span<const std::byte> strings() const { return strings_; }

    /// The name and version of any symbol, undefined ones included (relocations refer to them).
    std::string_view name(std::uint64_t index) const;
    std::string_view version(std::uint64_t index) const;

    /// The symbol at an index, where it is one that is listed.
    std::optional<Symbol> symbol(std::uint64_t index) const;

    /// Calls `wanted(name)` for each symbol that could be listed, and `found(symbol)` where it answered true. `name` is
    /// as in the string table; .symtab's may have `@VERSION` behind it.
    template <class Wanted, class Found> void visit(Wanted &&wanted, Found &&found) const {
        for (std::uint64_t index = 1; index < count_; index++) {
            if (!maybe_told(index)) continue;
            if (!wanted(name(index))) continue;
            if (auto symbol = this->symbol(index)) found(*symbol);
        }
    }

    /// True where `lookup` can be asked instead of visiting all.
    bool hashed() const { return !hash_.empty(); }
    /// Indexes of the symbols with exactly this name, by DT_GNU_HASH.
    std::vector<std::uint64_t> lookup(std::string_view name) const;

  private:
    SymbolTable(const ElfFile &file, const ElfFile &loaded, bool dynamic)
        : file_(&file), loaded_(&loaded), dynamic_(dynamic) {}
    bool maybe_told(std::uint64_t index) const;

    const ElfFile *file_;   // what the table is in
    const ElfFile *loaded_; // what is executed
    bool dynamic_;
    std::uint64_t count_ = 0;
    std::span<const std::byte> entries_, strings_, hash_;
    std::shared_ptr<const SymbolVersions> versions_; // dynamic symbols only
};

} // namespace ktrace::symbols
