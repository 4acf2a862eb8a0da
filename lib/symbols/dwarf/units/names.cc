// Names (dwarf_names.h).
#include "symbols/dwarf/units/names.h"

#include <algorithm>

#include "symbols/dwarf/die/scan.h"

namespace ktrace::symbols {

namespace {

/// FNV-1a; `kind` keeps names of different kinds apart.
std::uint32_t hash_of(std::string_view name, Names::Kind kind) {
    std::uint32_t hash = 2166136261U ^ static_cast<std::uint32_t>(kind);
    for (char c : name) hash = (hash ^ static_cast<std::uint8_t>(c)) * 16777619U;
    return hash;
}

bool defines_type(const Scanned &at) {
    switch (at.tag) {
    case DW_TAG_structure_type:
    case DW_TAG_class_type:
    case DW_TAG_union_type:
    case DW_TAG_typedef:
    case DW_TAG_enumeration_type: return (at.has & has_declaration) == 0 && (at.has & has_name) != 0;
    default: return false;
    }
}

bool defines_function(const Scanned &at) {
    if (at.tag == DW_TAG_subprogram) return (at.has & (has_code | has_inline)) != 0;
    // Its abstract instance lies in another unit (link-time optimization, dwz).
    return at.tag == DW_TAG_inlined_subroutine && (at.has & has_foreign_origin) != 0;
}

bool defines_variable(const Scanned &at) {
    bool has_place = (at.has & (has_single_location | has_const_value)) != 0;
    return (at.tag == DW_TAG_variable || (at.tag == DW_TAG_member && (at.has & has_const_value) != 0)) && has_place;
}

} // namespace

void Names::add_unit(std::uint32_t index) {
    Dwarf_Die root = units_.top(*units_.all()[index]);
    if (root.addr == nullptr) return;
    auto add = [&](Kind kind, std::string_view name) {
        if (!name.empty()) entries_.push_back({hash_of(name, kind), index});
    };
    std::size_t first = entries_.size();
    Scan scan(root);
    while (const Scanned *at = scan.next()) {
        Dwarf_Die die = scan.die(*at);
        if (defines_type(*at)) add(Kind::type, own_name(die));
        if (defines_variable(*at)) {
            add(Kind::variable, inherited_name(die));
            add(Kind::variable, linkage_name(die));
        }
        if (!defines_function(*at)) continue;
        add(Kind::function, inherited_name(die));
        add(Kind::function, linkage_name(die));
    }
    auto begin = entries_.begin() + static_cast<std::ptrdiff_t>(first);
    std::sort(begin, entries_.end());
    entries_.erase(std::unique(begin, entries_.end()), entries_.end());
}

void Names::build() {
    if (std::exchange(ready_, true)) return;
    for (std::uint32_t i = 0; i < units_.all().size(); ++i) add_unit(i);
    std::sort(entries_.begin(), entries_.end());
    entries_.shrink_to_fit();
}

std::vector<Unit *> Names::units(Kind kind, std::string_view name) {
    build();
    std::vector<Unit *> found;
    std::uint32_t hash = hash_of(name, kind);
    for (auto at = std::lower_bound(entries_.begin(), entries_.end(), Entry{hash, 0});
         at != entries_.end() && at->hash == hash; ++at)
        found.push_back(units_.all()[at->index]);
    return found;
}

std::vector<Names::Entry> &Names::list_of(Unit &unit, List list) {
    auto &made = lists_[&unit][static_cast<std::size_t>(list)];
    if (made) return *made;
    made.emplace();
    const Outline &outline = units_.outline(unit);
    Dwarf_CU *cu = units_.top(unit).cu;
    auto add = [&](std::size_t index, Dwarf_Die die) {
        for (std::string_view name : {inherited_name(die), linkage_name(die)})
            if (!name.empty()) made->push_back({hash_of(name, Kind::function), static_cast<std::uint32_t>(index)});
    };
    if (list == List::inlined) {
        const auto &inlined = units_.inlined(unit);
        for (std::size_t i = 0; i < inlined.size(); ++i)
            if (i == 0 || inlined[i].origin != inlined[i - 1].origin)
                add(i, die_at(inlined[i].origin, inlined[i].origin_unit));
    } else {
        const auto &dies = list == List::functions   ? outline.functions
                           : list == List::variables ? outline.variables
                                                     : outline.definitions;
        for (std::size_t i = 0; i < dies.size(); ++i) add(i, die_at(dies[i], cu));
    }
    std::sort(made->begin(), made->end());
    made->erase(std::unique(made->begin(), made->end()), made->end());
    return *made;
}

std::vector<std::uint32_t> Names::in(Unit &unit, List list, std::string_view name) {
    const auto &entries = list_of(unit, list);
    std::vector<std::uint32_t> found;
    std::uint32_t hash = hash_of(name, Kind::function);
    for (auto at = std::lower_bound(entries.begin(), entries.end(), Entry{hash, 0});
         at != entries.end() && at->hash == hash; ++at)
        found.push_back(at->index);
    return found;
}

std::string_view last_component(std::string_view qualified) {
    int depth = 0;
    for (std::size_t i = qualified.size(); i-- > 1;) {
        char c = qualified[i];
        if (c == '>' || c == ')' || c == ']') ++depth;
        if (c == '<' || c == '(' || c == '[') --depth;
        if (depth <= 0 && c == ':' && qualified[i - 1] == ':') return qualified.substr(i + 1);
    }
    return qualified;
}

bool matches_qualified(std::string_view qualified, std::string_view wanted) {
    if (wanted.starts_with("::")) return qualified == wanted.substr(2);
    if (!qualified.ends_with(wanted)) return false;
    return qualified.size() == wanted.size() || qualified.substr(0, qualified.size() - wanted.size()).ends_with("::");
}

bool is_named(Units &units, Dwarf_Die die, std::string_view name) {
    if (linkage_name(die) == name) return true;
    return inherited_name(die) == last_component(name) && matches_qualified(units.qualified_name(die), name);
}

} // namespace ktrace::symbols
