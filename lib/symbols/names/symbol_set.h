// SymbolSet: the symbols of one module, from all of its tables (.symtab, .dynsym, .gnu_debugdata, a separate debug
// file's).
//
// Invariants: a search for names reads the tables in place and keeps only what it finds; the sorted table of all
// symbols is made on the first question about addresses, or after many searches, and then answers everything: a name in
// the logarithm of their number, but for mangled ones, which have no order by what users call them. Symbols that were
// given out stay where they are as long as the set lives, also when a table is added later. Within one address the name
// that people use comes first.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "symbols/elf/symtab.h"
#include "symbols/names/name_pattern.h"

namespace ktrace::symbols {

class SymbolSet {
  public:
    /// Adds a table, whose file must outlive the set.
    void add(SymbolTable table);

    /// Adds symbols that no table has, whose names live as long as the set: those of the debug information.
    void add(std::vector<Symbol> described);

    /// Symbols with exactly this name, in order of address.
    std::vector<const Symbol *> named(std::string_view name) const;
    /// Symbols that a pattern matches, in order of address. `gives_up` is asked now and then, and ends the search.
    std::vector<const Symbol *> matching(const NamePattern &pattern, const std::function<bool()> &gives_up = {}) const;
    /// All symbols, in order of address.
    std::span<const Symbol> all() const;
    /// The function symbol that covers an address (the innermost where they nest); where sizes are 0 the nearest before
    /// it. nullptr where there is none.
    const Symbol *covering(std::uint64_t vaddr) const;
    /// The first function symbol behind an address.
    const Symbol *function_after(std::uint64_t vaddr) const;

  private:
    template <class Wanted> std::vector<const Symbol *> search(Wanted &&wanted) const;
    std::vector<const Symbol *> matching_exactly(const NamePattern &pattern) const;
    void sort_names() const;
    void add_named(std::string_view begin, bool whole, std::vector<std::uint32_t> &found) const;
    std::vector<const Symbol *> keep(std::vector<Symbol> found) const;
    void build() const;
    void build_functions() const;

    void forget();

    std::vector<SymbolTable> tables_;
    std::vector<Symbol> described_;
    mutable bool built_ = false;
    mutable std::deque<std::vector<Symbol>>
        generations_;                              // the last one is the table; older ones are kept for their users
    mutable std::vector<std::uint32_t> by_name_;   // indexes into the table
    mutable std::vector<std::uint32_t> mangled_;   // those with mangled names, or arguments in brackets
    mutable std::vector<std::uint32_t> functions_; // indexes into the table: one for each address
    mutable std::vector<std::uint64_t> reach_;     // the highest end of functions_[0..i]
    mutable std::deque<Symbol> found_;
    mutable unsigned passes_ = 0;
};

} // namespace ktrace::symbols
