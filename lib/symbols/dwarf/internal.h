// Dwarf::Impl: the parts that answer for one file's debug information, and what they share.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>

#include <libelf.h>

#include "base/fd.h"
#include "symbols/dwarf/dwarf.h"
#include "symbols/dwarf/places/frames.h"
#include "symbols/dwarf/places/places.h"
#include "symbols/dwarf/types/types.h"
#include "symbols/dwarf/units/names.h"
#include "symbols/dwarf/units/units.h"

namespace ktrace::symbols {

struct ElfEnd {
    void operator()(Elf *elf) const { elf_end(elf); }
};
struct DwarfEnd {
    void operator()(::Dwarf *dwarf) const { dwarf_end(dwarf); }
};

/// One open ELF file.
struct OpenElf {
    Fd fd;
    std::unique_ptr<Elf, ElfEnd> elf;
};

struct Dwarf::Impl {
    Impl(OpenElf debug, OpenElf image, std::unique_ptr<::Dwarf, DwarfEnd> handle);

    // In this order: each part uses those above.
    OpenElf debug;
    OpenElf image; // its elf is empty where `debug` is the loaded file itself
    std::unique_ptr<::Dwarf, DwarfEnd> handle;
    Units units;
    Frames frames;
    Types types;
    Names names;

    /// A Function and the DIE that it was made of.
    struct Known {
        Function function;
        Dwarf_Die die{};
        std::vector<Dwarf_Die> parameters; // in order of Function::parameters
        bool expressions_hold = false;     // at the entry too, those that are not in location lists
        bool is_rust = false;
        std::vector<std::optional<value::Place>> passed; // Rust: parameters at the entry, as far as they are known

        /// Where a parameter lies at the entry, as far as the debug information says, and what is known of Rust.
        std::optional<value::Place> entry_place(std::size_t parameter, std::uint64_t bias, Frames &described) const;
    };
    std::unordered_map<const void *, std::unique_ptr<Known>> functions; // by Dwarf_Die::addr
    std::unordered_map<const Function *, const Known *> known;          // for entry_places

    std::unordered_map<std::string, Dwarf_Die> declarations; // of functions that are elsewhere, by their linkage names
    bool asked_declarations = false;

    std::vector<DescribedType> described_types;
    std::vector<Dwarf_Die> described_dies; // by DescribedType::die
    bool asked_described_types = false;

    std::vector<Dwarf_Die> instances;                                 // by InlinedInstance::instance - 1
    std::unordered_map<const void *, std::uint32_t> instance_numbers; // by Dwarf_Die::addr

    const Known &function(Dwarf_Die die);
    /// The code of a function; nothing where it has none.
    std::optional<DescribedCode> code_of(Dwarf_Die die);
    std::uint32_t instance_number(Dwarf_Die instance);
    std::optional<Dwarf_Die> instance_die(std::uint32_t number) const;
    void find_declarations();
    void find_described_types();
    void find_results(Function &function, Dwarf_Die die);
    bool hides_parameters(const Known &known_function);
    std::optional<Dwarf_Die> function_die(std::uint64_t vaddr) { return units.function(vaddr); }
    Viewpoint viewpoint(std::uint64_t vaddr, std::uint64_t bias);
};

/// The scopes that an address lies in, below a function: lexical blocks and inlined instances, outermost first, the
/// function itself in front.
std::vector<Dwarf_Die> scopes_at(Dwarf_Die function, std::uint64_t vaddr);
/// The same, with this inlined instance, which lies in the function, as the innermost function.
std::vector<Dwarf_Die> scopes_of(Dwarf_Die function, Dwarf_Die instance, std::uint64_t vaddr);

} // namespace ktrace::symbols
