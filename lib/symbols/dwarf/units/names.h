// Names: which units define a name: functions (with code or inlined), variables, types. One pass over the file, made
// when first asked for.
//
// Invariant: it holds hashes, a few bytes a name; callers look the name up again in the units found, so that a
// wrong unit costs time and is no wrong answer.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "symbols/dwarf/units/units.h"

namespace ktrace::symbols {

class Names {
  public:
    enum class Kind : std::uint8_t { function, variable, type };

    explicit Names(Units &units) : units_(units) {}

    /// The units that may define `name`: a plain name or a linkage name, without scopes.
    std::vector<Unit *> units(Kind kind, std::string_view name);
    bool ready() const { return ready_; }

    /// Which of a list of a unit's outline may have `name`: indexes into functions, variables, definitions; of the
    /// inlined instances (Units::inlined) the first of each origin.
    enum class List : std::uint8_t { functions, variables, definitions, inlined };
    std::vector<std::uint32_t> in(Unit &unit, List list, std::string_view name);

  private:
    struct Entry {
        std::uint32_t hash = 0;
        std::uint32_t index = 0; // in Units::all(), or in the list
        bool operator==(const Entry &) const = default;
        auto operator<=>(const Entry &) const = default;
    };
    void build();
    void add_unit(std::uint32_t index);
    std::vector<Entry> &list_of(Unit &unit, List list);

    Units &units_;
    std::vector<Entry> entries_;
    std::unordered_map<Unit *, std::array<std::optional<std::vector<Entry>>, 4>> lists_;
    bool ready_ = false;
};

/// The part of a qualified name behind its last `::` (of those outside <>, () and []).
std::string_view last_component(std::string_view qualified);

/// True where `wanted` is a qualified name or its last whole components: `Foo::bar` and `bar` match `ns::Foo::bar`.
bool matches_qualified(std::string_view qualified, std::string_view wanted);

/// True where a DIE has this name: linkage, or the last components of its qualified name.
bool is_named(Units &units, Dwarf_Die die, std::string_view name);

} // namespace ktrace::symbols
