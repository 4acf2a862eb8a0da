// Units: the units of a file, which of them covers an address, and the outline of each: its functions, variables, type
// definitions, scopes and inlined instances by position.
//
// Invariants: opening reads no unit; finding the unit of an address reads .debug_aranges and the own DIEs of those
// units that have no entry there; an outline is made by one scan of its unit, when first asked for, and kept.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "symbols/dwarf/die/die.h"
#include "symbols/dwarf/lines/line_table.h"

namespace ktrace::symbols {

/// A piece of code and the DW_TAG_subprogram that it belongs to.
struct CodeRange {
    std::uint64_t low = 0, high = 0;
    const std::uint8_t *function = nullptr; // Dwarf_Die::addr
};

/// A DIE whose children have its name in front of theirs: namespace, class, enumeration, function.
struct Scope {
    const std::uint8_t *begin = nullptr, *end = nullptr; // the bytes of the DIE and all below it
    int parent = -1;
    unsigned tag = 0;
};

/// One DW_TAG_inlined_subroutine.
struct Inlined {
    const void *origin = nullptr; // Dwarf_Die::addr and cu of the abstract instance
    Dwarf_CU *origin_unit = nullptr;
    const std::uint8_t *instance = nullptr;
};

struct Outline {
    std::vector<CodeRange> code;                   // by low
    std::vector<const std::uint8_t *> functions;   // out-of-line and abstract instances, no plain declarations
    std::vector<const std::uint8_t *> variables;   // of the unit, namespaces and classes; statics of functions
    std::vector<const std::uint8_t *> definitions; // types with a name that are defined here, typedefs
    std::vector<Scope> scopes;                     // by begin
    std::vector<const std::uint8_t *> inlined_at;  // inlined instances
    std::vector<Inlined> inlined;                  // the same by origin; made by Units::inlined()
    bool inlined_ready = false;
};

struct Unit {
    Dwarf_Die skeleton{}; // has the ranges and the line table
    Dwarf_Die top{};      // the root of the tree: the skeleton's split unit, or itself
    bool top_ready = false;
    std::optional<bool> tells_types;
    std::unique_ptr<Outline> outline;
    std::unique_ptr<LineHeader> lines;
    std::unique_ptr<std::vector<LineRow>> rows;
};

class Units {
  public:
    /// `directory`: where the file lies.
    Units(::Dwarf *dwarf, std::vector<AddressRange> executable, std::string directory);

    /// All units of .debug_info and .debug_types, without outlines.
    const std::vector<Unit *> &all();
    /// The units whose code covers an address; usually one.
    std::vector<Unit *> covering(std::uint64_t vaddr);
    /// The unit that a DIE lies in: of this file, a split one's or the dwz file's.
    Unit &of(Dwarf_Die die);

    /// The root of its tree (finds the .dwo file of a skeleton).
    Dwarf_Die top(Unit &unit);
    /// Why the first .dwo file that was looked for in vain was not read: a clause, or empty.
    const std::string &missing_part() const { return missing_part_; }
    Outline &outline(Unit &unit);
    /// The outline's inlined instances, by origin.
    const std::vector<Inlined> &inlined(Unit &unit);

    /// The DIE of the innermost function whose ranges cover vaddr.
    std::optional<Dwarf_Die> function(std::uint64_t vaddr);

    /// The names of the scopes around a declaration, outermost first, with `::` behind each: `ns::Foo::`. Functions do
    /// not count.
    std::string scope_prefix(Dwarf_Die die);
    /// Its name with scopes, through abstract origins and specifications; empty where it has no name.
    std::string qualified_name(Dwarf_Die die);
    /// The innermost function around a DIE that lies in one.
    std::optional<Dwarf_Die> function_around(Dwarf_Die die);

    /// The header of a unit's line table; without files where it has none.
    const LineHeader &line_header(Unit &unit);
    /// The rows of its line table, sequences in order of addresses; those of code that the linker left out are not
    /// there.
    const std::vector<LineRow> &line_rows(Unit &unit);
    /// The file that DW_AT_decl_file or DW_AT_call_file of a DIE means (`index` its value).
    std::string file_of(Dwarf_Die die, std::uint64_t index);

    /// DW_AT_language of the unit of a DIE. Partial units (dwz) do not say it; they count as the file's first unit that
    /// does.
    std::optional<std::uint64_t> language(Dwarf_Die die);
    /// True where a DIE is C's, which writes `struct`, `union` and `enum` in front of names.
    bool is_c(Dwarf_Die die);
    /// True where clang before version 18 has made the unit of a DIE: __int128 is to it two words that are passed
    /// apart.
    bool is_made_by_early_clang(Dwarf_Die die);
    /// False where functions are described without their types: in assembly, and where only lines were asked for (-g1).
    bool tells_types(Unit &unit);

    /// True where code can be: outside the linker's marks for what it left out.
    bool executable(std::uint64_t vaddr) const;
    /// Bytes of .debug_info, to judge what a pass over all of it costs.
    std::uint64_t info_size();

  private:
    struct UnitRange {
        std::uint64_t low = 0, high = 0, highest = 0; // highest: of all up to here
        Unit *unit = nullptr;
    };
    void read_all();
    void read_ranges();
    void add_arange_units(std::unordered_map<std::uint64_t, Unit *> &by_offset, std::vector<Unit *> &without);
    int innermost_scope(const Outline &outline, const std::uint8_t *at) const;

    ::Dwarf *dwarf_;
    std::vector<AddressRange> executable_;
    std::string directory_, missing_part_;
    bool all_read_ = false, ranges_read_ = false;
    std::vector<Unit *> all_;
    std::vector<std::unique_ptr<Unit>> owned_;
    std::unordered_map<Dwarf_CU *, Unit *> by_cu_;
    std::vector<UnitRange> ranges_;
    std::uint64_t info_size_ = 0;
    std::optional<std::uint64_t> language_;                     // of the first unit that says it
    std::unordered_map<::Dwarf *, LineSections> line_sections_; // of this file, split and dwz files
};

} // namespace ktrace::symbols
