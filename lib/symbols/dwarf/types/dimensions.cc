// Dimensions of arrays, by the rules of each language (types.h: dimensions).
#include "symbols/dwarf/types/types.h"

namespace ktrace::symbols {

namespace {

/// DWARF 5, table 7.17: where no lower bound is said.
std::int64_t usual_lower_bound(std::optional<std::uint64_t> language) {
    switch (language.value_or(DW_LANG_C)) {
    case DW_LANG_Ada83:
    case DW_LANG_Ada95:
    case DW_LANG_Cobol74:
    case DW_LANG_Cobol85:
    case DW_LANG_Modula2:
    case DW_LANG_Modula3:
    case DW_LANG_Pascal83:
    case DW_LANG_PLI: return 1;
    default: return is_fortran(language) ? 1 : 0;
    }
}

} // namespace

bool is_fortran(std::optional<std::uint64_t> language) {
    switch (language.value_or(DW_LANG_C)) {
    case DW_LANG_Fortran77:
    case DW_LANG_Fortran90:
    case DW_LANG_Fortran95:
    case DW_LANG_Fortran03:
    case DW_LANG_Fortran08: return true;
    default: return false;
    }
}

std::vector<Dimension> dimensions(Dwarf_Die array, std::optional<std::uint64_t> language) {
    constexpr std::size_t most = 16;
    constexpr std::uint64_t largest = std::uint64_t{1} << 48;
    std::vector<Dimension> found;
    for (Dwarf_Die child : children(array)) {
        unsigned kind = tag(child);
        if (kind != DW_TAG_subrange_type && kind != DW_TAG_enumeration_type) continue;
        auto lower = number(child, DW_AT_lower_bound);
        if (!lower) lower = static_cast<std::uint64_t>(usual_lower_bound(language));
        auto count = number(child, DW_AT_count);
        if (auto upper = number(child, DW_AT_upper_bound); !count && upper) count = *upper - *lower + 1;
        // An upper bound of -1 is how gcc writes [0] and [].
        found.push_back({count && *count < largest ? *count : 0, static_cast<std::int64_t>(*lower)});
        if (found.size() == most) break;
    }
    if (found.empty()) found.emplace_back();
    return found;
}

} // namespace ktrace::symbols
