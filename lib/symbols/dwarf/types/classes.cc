// Which C++ classes are passed by a hidden reference (dwarf_types.h: declares_pass_by_reference).
//
// Compilers say so in DW_AT_calling_convention (DWARF 5, 5.7.1). Where they do not, the declared special member
// functions show: a class whose copy or move constructor or destructor is not trivial, or that has virtual functions or
// bases (its implicit copy constructor is not trivial then), or a part of it that is such a class.
#include "symbols/dwarf/types/types.h"

namespace ktrace::symbols {

namespace {

/// Defaulted on its first declaration, or deleted: it is not what makes a class non-trivial by itself.
bool is_trivial_by_declaration(Dwarf_Die function) {
    if (flag(function, DW_AT_deleted)) return true;
    return number(function, DW_AT_defaulted).value_or(DW_DEFAULTED_no) == DW_DEFAULTED_in_class;
}

bool is_this_class(Dwarf_Die type, const void *class_address) {
    auto stripped = strip(type);
    return stripped && stripped->addr == class_address;
}

/// A constructor whose only parameter beside `this` (others may have defaults, which DWARF does not say) refers to the
/// same class.
bool is_copy_or_move_constructor(Dwarf_Die function, const void *class_address) {
    std::size_t count = 0;
    bool first_is_reference = false;
    for (Dwarf_Die child : children(function)) {
        if (tag(child) != DW_TAG_formal_parameter || flag(child, DW_AT_artificial)) continue;
        auto type = reference(child, DW_AT_type);
        unsigned kind = type ? tag(*type) : 0;
        if (++count == 1 && (kind == DW_TAG_reference_type || kind == DW_TAG_rvalue_reference_type)) {
            auto target = reference(*type, DW_AT_type);
            first_is_reference = target && is_this_class(*target, class_address);
        }
    }
    return count == 1 && first_is_reference;
}

std::string_view without_template_arguments(std::string_view name) { return name.substr(0, name.find('<')); }

} // namespace

bool declares_pass_by_reference(Dwarf_Die die, bool is_cplusplus) {
    if (auto convention = number(die, DW_AT_calling_convention)) {
        if (*convention == DW_CC_pass_by_reference) return true;
        if (*convention == DW_CC_pass_by_value) return false;
    }
    if (!is_cplusplus) return false;
    std::string_view class_name = without_template_arguments(own_name(die));
    std::size_t copiers = 0, deleted = 0;
    for (Dwarf_Die child : children(die)) {
        unsigned kind = tag(child);
        bool is_member = kind == DW_TAG_inheritance || kind == DW_TAG_subprogram;
        if (is_member && number(child, DW_AT_virtuality).value_or(0) != 0) return true;
        if (kind != DW_TAG_subprogram) continue;
        std::string_view name = own_name(child);
        bool destroys = name.starts_with("~");
        bool copies = !destroys && !class_name.empty() && without_template_arguments(name) == class_name &&
                      is_copy_or_move_constructor(child, die.addr);
        if ((destroys || copies) && !is_trivial_by_declaration(child)) return true;
        copiers += copies;
        deleted += copies && flag(child, DW_AT_deleted);
    }
    return copiers != 0 && copiers == deleted; // nothing may copy it into registers
}

} // namespace ktrace::symbols
