// Types of several others: a template's parameters, the results of a call (types.h: Types::add_parameters, tuple).
#include "symbols/dwarf/types/types.h"

namespace ktrace::symbols {

bool is_of_library(const value::Type &type) {
    return type.name.find('<') != std::string::npos &&
           (type.name.starts_with("std::") || type.name.starts_with("alloc::"));
}

/// In their order, those of packs among them; values are left out.
void Types::add_parameters(value::Type &type, Dwarf_Die die, int depth) {
    for (Dwarf_Die child : children(die)) {
        if (tag(child) == DW_TAG_GNU_template_parameter_pack) add_parameters(type, child, depth);
        if (tag(child) != DW_TAG_template_type_parameter) continue;
        if (value::Type *of = node_of(child, depth + 1)) type.parameters.push_back(of);
    }
}

const value::Type *Types::tuple(const std::vector<const value::Type *> &values, const std::vector<std::string> &names) {
    value::Type &type = table_.make();
    states_.emplace_back();
    states_.back().filled = true;
    type.kind = value::Type::Kind::structure;
    type.name = "(";
    for (std::size_t i = 0; i < values.size(); ++i) {
        const value::Type *of = values[i];
        if (of == nullptr) continue;
        type.size = (type.size + 7) / 8 * 8;
        value::Member member;
        member.name = names[i];
        member.type = of;
        member.offset = type.size;
        type.members.push_back(std::move(member));
        type.size += of->size;
        type.name += (i == 0 ? "" : ", ") + of->name;
    }
    type.name += ')';
    return &type;
}

} // namespace ktrace::symbols
