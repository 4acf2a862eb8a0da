// Names: which units define a name: functions (with code or inlined), variables, types. One pass over the file, made
// when first asked for.
//
// Invariant: it holds hashes, a few bytes a name; whoever asks looks the name up again in the units told, so that a
// wrong unit costs time and is no wrong answer.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "symbols/dwarf_units.h"

namespace ktrace::symbols {

class Names {
  public:
    enum class Kind : std::uint8_t { function, variable, type };

    explicit Names(Units &units) : units_(units) {}

    /// The units that may define `name`: a plain name or a linkage name, without scopes.
    std::vector<Unit *> units(Kind kind, std::string_view name);
    bool ready() const { return ready_; }

  private:
    struct Entry {
        std::uint32_t hash = 0;
        std::uint32_t unit = 0; // index in Units::all()
        bool operator==(const Entry &) const = default;
        auto operator<=>(const Entry &) const = default;
    };
    void build();
    void add_unit(std::uint32_t index);

    Units &units_;
    std::vector<Entry> entries_;
    bool ready_ = false;
};

/// The part of a qualified name behind its last `::` (of those outside <>, () and []).
std::string_view last_component(std::string_view qualified);

/// True where `wanted` is a qualified name or its last whole components: `Foo::bar` and `bar` match `ns::Foo::bar`.
bool matches_qualified(std::string_view qualified, std::string_view wanted);

} // namespace ktrace::symbols
