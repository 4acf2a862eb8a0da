// Types of a file's debug information as value::Type.
//
// Invariants: a DIE has one Type, and equal definitions in several units (same kind, name, size, place of declaration
// and members) share one; members by value are complete, types behind pointers are filled in for a number of hops and
// `incomplete` beyond, until complete() is asked for it: so one function of a large C++ program does not pull the whole
// program's types in.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "symbols/dwarf/units/units.h"
#include "value/type.h"

namespace ktrace::symbols {

/// One of an array's dimensions.
struct Dimension {
    std::uint64_t count = 0; // 0: not known
    std::int64_t lower = 0;  // the first index
};
/// An array's dimensions in the order of the source. `language`: DW_LANG_*, which has a lower bound where none is said.
std::vector<Dimension> dimensions(Dwarf_Die array, std::optional<std::uint64_t> language);

bool is_fortran(std::optional<std::uint64_t> language);

class Types {
  public:
    explicit Types(Units &units) : units_(units) {}

    const value::TypeTable &table() const { return table_; }

    /// The type that a DIE is, ready to be used.
    const value::Type *type(Dwarf_Die die);
    /// The type that a DIE's DW_AT_type (inherited) names; nullptr: void, or none.
    const value::Type *type_of(Dwarf_Die die);
    /// `type` with what was left out behind pointers filled in; a declaration becomes its definition where there is
    /// one.
    const value::Type *complete(const value::Type *type);

    /// A structure of values that have none in the source: each begins at the next multiple of 8 bytes.
    const value::Type *tuple(const std::vector<const value::Type *> &values, const std::vector<std::string> &names);

    /// Finds the definition of a type that is only declared in its unit; set by the owner of the name index. `patient`:
    /// a pass over the whole file is worth it.
    using FindDefinition = std::optional<Dwarf_Die> (*)(void *owner, Dwarf_Die declared, const std::string &name,
                                                        bool patient);
    void set_definitions(void *owner, FindDefinition find) {
        owner_ = owner;
        find_definition_ = find;
    }

  private:
    /// Facts of a Type beside those that it publishes.
    struct State {
        Dwarf_Die die{}; // without typedefs and qualifiers
        bool filled = false, filling = false;
        int hops = -1;                   // pointers followed from here on
        std::uint32_t copy_of = no_copy; // typedefs and qualified types: the type that they copy
    };
    static constexpr std::uint32_t no_copy = ~0U;

    /// The Type of a DIE with kind, size and name, members not read yet. `depth` bounds chains of types.
    value::Type &node(Dwarf_Die die, int depth);
    value::Type *node_of(Dwarf_Die die, int depth);
    value::Type &alias(Dwarf_Die named, std::optional<Dwarf_Die> base, int depth);
    value::Type &intern(value::Type draft, Dwarf_Die die, std::uint32_t copy_of = no_copy);
    std::string identity(const value::Type &draft, Dwarf_Die die, std::uint32_t copy_of);
    value::Type header_of(Dwarf_Die die, int depth);
    void set_base(value::Type &type, Dwarf_Die die);
    void set_complex(value::Type &type, Dwarf_Die die);
    void set_array(value::Type &type, Dwarf_Die die, int depth);
    void set_text(value::Type &type, Dwarf_Die die);
    void set_member_pointer(value::Type &type, Dwarf_Die die, int depth);
    const value::Type *by_index(const std::vector<Dimension> &sizes, const value::Type *element, Dwarf_Die die);
    void set_enumeration(value::Type &type, Dwarf_Die die, int depth);

    /// Reads members and enumerators of a type and of all that it holds by value.
    void fill(value::Type &type, int depth);
    void fill_from_base(value::Type &type, int depth);
    void fill_members(value::Type &type, Dwarf_Die die, int depth);
    void fill_enumerators(value::Type &type, Dwarf_Die die);
    bool add_member(value::Type &type, Dwarf_Die die, int depth);
    void add_variants(value::Type &type, Dwarf_Die part, int depth);
    void add_parameters(value::Type &type, Dwarf_Die die, int depth);
    void resolve_declaration(value::Type &type, bool patient);

    void expand(value::Type &type, int hops, bool patient);
    bool passes_by_reference(const value::Type &type, Dwarf_Die die);

    State &state(const value::Type &type) { return states_[type.index]; }
    value::Type &at(std::uint32_t index) { return const_cast<value::Type &>(table_.at(index)); }

    Units &units_;
    value::TypeTable table_;
    std::vector<State> states_;                              // by Type::index
    std::unordered_map<const void *, std::uint32_t> by_die_; // Type::index
    std::unordered_map<std::string, std::uint32_t> by_identity_;
    void *owner_ = nullptr;
    FindDefinition find_definition_ = nullptr;
};

/// How a type is written: `const char *`, `int (*)(int)`, `struct point`, `ns::Foo<int> &`.
std::string type_name(Units &units, Dwarf_Die die);

/// A type of a standard library whose template's parameters say what it holds.
bool is_of_library(const value::Type &type);

/// A type without typedefs and qualifiers; nullopt: void. At most a bounded number of steps.
std::optional<Dwarf_Die> strip(Dwarf_Die die);

/// The definition that a type DIE stands for where it names a type unit (DW_AT_signature), else itself.
Dwarf_Die through_signature(Dwarf_Die die);

/// C++ (Itanium ABI, 3.1.1): true where a class is passed by a hidden reference, as far as its own DIE shows: by
/// DW_AT_calling_convention, else by its declared copy and move constructors, destructor and virtual parts. Members and
/// bases are the caller's.
bool declares_pass_by_reference(Dwarf_Die die, bool is_cplusplus);

} // namespace ktrace::symbols
