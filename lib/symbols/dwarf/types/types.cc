// Types: from DIEs to value::Type (dwarf_types.h).
#include "symbols/dwarf/types/types.h"

#include <algorithm>
#include <array>

namespace ktrace::symbols {

using value::Type;

namespace {

constexpr int deepest = 48; // types held by value or pointed to, in one chain
constexpr int default_hops = 3;
constexpr std::uint64_t largest = std::uint64_t{1} << 48; // bytes of an object

/// True for types whose members or enumerators are read when they are needed.
bool is_filled_later(Type::Kind kind) {
    return kind == Type::Kind::structure || kind == Type::Kind::union_ || kind == Type::Kind::enumeration;
}

bool is_named_char(std::string_view name) {
    static constexpr std::array<std::string_view, 10> names = {
        "char",     "signed char", "unsigned char", "char8_t",        "char16_t",
        "char32_t", "wchar_t",     "character",     "wide_character", "wide_wide_character"};
    return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_named_byte(std::string_view name) {
    return name.ends_with("int8_t") || name.ends_with("int8") || name == "u8" || name == "s8" || name == "__u8" ||
           name == "__s8" || name == "byte";
}

/// A typedef decides whether a small integer is a character: `uint8_t` is not, C's `wchar_t` (a typedef of int) is.
void set_character_kind(Type &alias, Dwarf_Die named) {
    bool can_be = alias.kind == Type::Kind::char_ || alias.kind == Type::Kind::integer;
    std::optional<Dwarf_Die> at = named;
    for (int step = 0; can_be && at && step < deepest; ++step) {
        std::string_view name = tag(*at) == DW_TAG_typedef ? own_name(*at) : std::string_view();
        if (is_named_char(name)) {
            alias.kind = Type::Kind::char_;
            return;
        }
        if (is_named_byte(name)) {
            alias.kind = Type::Kind::integer;
            return;
        }
        at = reference(*at, DW_AT_type);
        if (at && tag(*at) == DW_TAG_base_type) return;
    }
}

} // namespace

const Type *Types::type(Dwarf_Die die) {
    Type &type = node(die, 0);
    expand(type, default_hops, false);
    return &type;
}

const Type *Types::type_of(Dwarf_Die die) {
    auto target = inherited_reference(die, DW_AT_type);
    return target ? type(*target) : nullptr;
}

const Type *Types::complete(const Type *type) {
    if (type == nullptr || type->index >= table_.size() || &table_.at(type->index) != type) return type;
    expand(at(type->index), default_hops, true);
    return type;
}

Type *Types::node_of(Dwarf_Die die, int depth) {
    auto target = reference(die, DW_AT_type);
    return target ? &node(*target, depth) : nullptr;
}

Type &Types::node(Dwarf_Die die, int depth) {
    auto known = by_die_.find(die.addr);
    if (known != by_die_.end()) return at(known->second);
    if (depth > deepest) {
        Type unknown;
        unknown.name = "...";
        return intern(std::move(unknown), die);
    }
    auto base = strip(die);
    bool is_alias = !base || base->addr != die.addr;
    Type &type = is_alias ? alias(die, base, depth) : intern(header_of(die, depth), die);
    by_die_[die.addr] = type.index;
    return type;
}

/// A typedef or a qualified type: a copy of what is under it, with its own name.
Type &Types::alias(Dwarf_Die named, std::optional<Dwarf_Die> base, int depth) {
    if (!base) {
        Type nothing;
        nothing.kind = Type::Kind::void_;
        nothing.name = type_name(units_, named);
        return intern(std::move(nothing), named);
    }
    Type &original = node(*base, depth + 1);
    Type copy = original;
    copy.name = type_name(units_, named);
    copy.members.clear();
    copy.enumerators.clear();
    copy.variants.clear();
    copy.parameters.clear();
    copy.virtual_bases.clear();
    copy.alias_of = &original;
    set_character_kind(copy, named);
    return intern(std::move(copy), *base, original.index);
}

/// The Type with the identity of `draft`, or `draft` as a new one.
Type &Types::intern(Type draft, Dwarf_Die die, std::uint32_t copy_of) {
    std::string key = identity(draft, die, copy_of);
    auto known = by_identity_.find(key);
    if (known != by_identity_.end()) return at(known->second);
    bool is_whole = !is_filled_later(draft.kind) && draft.kind != Type::Kind::array;
    if (is_filled_later(draft.kind)) draft.incomplete = true;
    Type &type = table_.make();
    std::uint32_t index = type.index;
    type = std::move(draft);
    type.index = index;
    states_.emplace_back();
    states_.back().die = die;
    states_.back().copy_of = copy_of;
    states_.back().filled = is_whole;
    by_identity_.emplace(std::move(key), index);
    return type;
}

/// The key by which two types are the same: name, kind and size, and for copies the original, for types made of others
/// those, for definitions where they are declared. A definition without a name is itself alone, a declaration its
/// unit's.
std::string Types::identity(const Type &draft, Dwarf_Die die, std::uint32_t copy_of) {
    std::string key = draft.name;
    auto add = [&key](std::uint64_t number) {
        key += '\0';
        key += std::to_string(number);
    };
    add(static_cast<std::uint64_t>(draft.kind));
    add(draft.size);
    add(copy_of);
    add(draft.target != nullptr ? draft.target->index : no_copy);
    add(draft.count);
    add(static_cast<std::uint64_t>(draft.lower));
    add(draft.stride);
    add(draft.by_index != nullptr ? draft.by_index->index : no_copy);
    add(draft.is_vector);
    add(draft.member_of != nullptr ? draft.member_of->index : no_copy);
    add(draft.is_signed);
    if (copy_of != no_copy || !is_filled_later(draft.kind)) return key;
    if (own_name(die).empty()) {
        add(reinterpret_cast<std::uintptr_t>(die.addr));
    } else if (flag(die, DW_AT_declaration)) {
        add(reinterpret_cast<std::uintptr_t>(die.cu));
    } else {
        key += units_.file_of(die, number(die, DW_AT_decl_file).value_or(~std::uint64_t{0}));
        add(number(die, DW_AT_decl_line).value_or(0));
    }
    return key;
}

Type Types::header_of(Dwarf_Die die, int depth) {
    Type type;
    type.name = type_name(units_, die);
    type.size = std::min(number(die, DW_AT_byte_size).value_or(0), largest);
    type.alignment = number(die, DW_AT_alignment).value_or(0);
    auto point_to = [&](Type::Kind kind) {
        type.kind = kind;
        if (type.size == 0) type.size = 8;
        type.target = node_of(die, depth + 1);
    };
    switch (tag(die)) {
    case DW_TAG_base_type: set_base(type, die); break;
    case DW_TAG_enumeration_type: set_enumeration(type, die, depth); break;
    case DW_TAG_structure_type:
    case DW_TAG_class_type:
    case DW_TAG_interface_type: type.kind = Type::Kind::structure; break;
    case DW_TAG_union_type: type.kind = Type::Kind::union_; break;
    case DW_TAG_pointer_type: point_to(Type::Kind::pointer); break;
    case DW_TAG_reference_type:
    case DW_TAG_rvalue_reference_type: point_to(Type::Kind::reference); break;
    case DW_TAG_array_type: set_array(type, die, depth); break;
    case DW_TAG_string_type: set_text(type, die); break;
    case DW_TAG_subroutine_type:
    case DW_TAG_subprogram:
        type.kind = Type::Kind::function;
        type.target = node_of(die, depth + 1);
        break;
    case DW_TAG_ptr_to_member_type: set_member_pointer(type, die, depth); break;
    case DW_TAG_unspecified_type:
        if (type.name.find("nullptr") == std::string::npos) break;
        type.kind = Type::Kind::pointer;
        type.size = 8;
        break;
    case DW_TAG_subrange_type: {
        Type *base = node_of(die, depth + 1);
        type.kind = Type::Kind::integer;
        type.is_signed = base == nullptr || base->is_signed;
        if (type.size == 0) type.size = base != nullptr ? base->size : 8;
        break;
    }
    default: break;
    }
    return type;
}

void Types::set_base(Type &type, Dwarf_Die die) {
    type.kind = Type::Kind::integer;
    switch (number(die, DW_AT_encoding).value_or(0)) {
    case DW_ATE_boolean: type.kind = Type::Kind::bool_; break;
    case DW_ATE_signed: type.is_signed = true; break;
    case DW_ATE_signed_char:
        type.is_signed = true;
        type.kind = is_named_char(type.name) ? Type::Kind::char_ : Type::Kind::integer; // Rust: i8
        break;
    case DW_ATE_unsigned_char:
        type.kind = is_named_char(type.name) ? Type::Kind::char_ : Type::Kind::integer; // Rust: u8
        break;
    case DW_ATE_UTF:
    case DW_ATE_UCS:
    case DW_ATE_ASCII: type.kind = Type::Kind::char_; break;
    case DW_ATE_float: type.kind = Type::Kind::floating; break;
    case DW_ATE_decimal_float:
        type.kind = Type::Kind::floating;
        type.is_decimal = true;
        break;
    case DW_ATE_complex_float:
    case DW_ATE_lo_user: // complex integers, of gcc and clang
        if (type.name.find("omplex") != std::string::npos) set_complex(type, die);
        break;
    case DW_ATE_address: type.kind = Type::Kind::pointer; break;
    case DW_ATE_unsigned: break;
    default:
        if (type.size == 0) type.kind = Type::Kind::void_; // Rust's () and !
    }
    if (type.name == "wchar_t" || type.name == "char16_t" || type.name == "char32_t" || type.name == "char8_t")
        type.kind = Type::Kind::char_;
    if (type.kind == Type::Kind::integer && type.size == 0) type.kind = Type::Kind::void_;
    if (type.kind == Type::Kind::integer && type.size == 16 && units_.is_made_by_early_clang(die)) type.alignment = 8;
}

void Types::set_complex(Type &type, Dwarf_Die die) {
    Type part; // which has no DIE
    part.size = type.size / 2;
    type.kind = Type::Kind::complex;
    if (number(die, DW_AT_encoding) == DW_ATE_complex_float) {
        part.kind = Type::Kind::floating;
        part.name = type.size == 8 ? "float" : type.size == 16 ? "double" : "long double";
    } else {
        part.kind = Type::Kind::integer;
        part.is_signed = type.name.find("unsigned") == std::string::npos;
        part.name = type.name.substr(type.name.find(' ') + 1);
    }
    type.target = &intern(std::move(part), die);
}

/// Itanium ABI, 2.3: an offset for data (-1: null); for functions a pointer, or an offset in the table of virtual ones,
/// and what is added to `this`.
void Types::set_member_pointer(Type &type, Dwarf_Die die, int depth) {
    if (auto of = reference(die, DW_AT_containing_type)) type.member_of = &node(*of, depth + 1);
    Type word; // which has no DIE
    word.kind = Type::Kind::integer;
    word.is_signed = true;
    word.size = 8;
    word.name = "long";
    auto target = reference(die, DW_AT_type);
    auto pointee = target ? strip(*target) : std::nullopt;
    if (!pointee || tag(*pointee) != DW_TAG_subroutine_type) {
        type.kind = Type::Kind::integer;
        type.is_signed = true;
        type.size = 8;
        return;
    }
    Type address;
    address.kind = Type::Kind::pointer;
    address.size = 8;
    address.name = "void *";
    type.kind = Type::Kind::structure;
    type.size = 16;
    type.members.resize(2);
    type.members[0].name = "ptr";
    type.members[0].type = &intern(std::move(address), die);
    type.members[1].name = "adj";
    type.members[1].type = &intern(std::move(word), die);
    type.members[1].offset = 8;
}

/// Fortran's character(len=8). Where the length is a variable's, it is not known here.
void Types::set_text(Type &type, Dwarf_Die die) {
    Type character; // which has no DIE
    character.kind = Type::Kind::char_;
    character.size = 1;
    character.name = "char";
    type.kind = Type::Kind::array;
    type.count = type.size;
    type.target = &intern(std::move(character), die);
    type.name = "character(len=" + (type.count != 0 ? std::to_string(type.count) : "*") + ")";
}

/// DIEs have all dimensions of an array in one; here each is an array of the next.
void Types::set_array(Type &type, Dwarf_Die die, int depth) {
    type.kind = Type::Kind::array;
    type.is_vector = flag(die, DW_AT_GNU_vector);
    Type *element = node_of(die, depth + 1);
    auto sizes = dimensions(die, units_.language(die));
    // Fortran's first index varies fastest: the last one is the outermost in memory.
    const bool is_by_columns = sizes.size() > 1 && is_fortran(units_.language(die));
    if (is_by_columns) {
        type.by_index = by_index(sizes, element, die);
        std::reverse(sizes.begin(), sizes.end());
    }
    const Type *inner = element;
    std::uint64_t inner_size = element != nullptr ? element->size : 0;
    auto bytes = [&inner_size](std::uint64_t count) {
        return inner_size != 0 && count > largest / inner_size ? largest : count * inner_size;
    };
    for (std::size_t i = sizes.size() - 1; i > 0; --i) {
        Type row;
        row.kind = Type::Kind::array;
        row.count = sizes[i].count;
        row.lower = sizes[i].lower;
        row.size = bytes(row.count);
        row.target = inner;
        row.name = (inner != nullptr ? inner->name : "?") + " [" + std::to_string(row.count) + "]";
        inner_size = row.size;
        inner = &intern(std::move(row), die);
    }
    type.count = sizes.front().count;
    type.lower = sizes.front().lower;
    type.target = inner;
    if (type.size == 0) type.size = bytes(type.count);
}

/// An array of several dimensions in the order of its indices, the first of which has the smallest stride.
const Type *Types::by_index(const std::vector<Dimension> &sizes, const Type *element, Dwarf_Die die) {
    std::uint64_t stride = element != nullptr ? element->size : 0;
    std::vector<std::uint64_t> strides;
    for (const Dimension &size : sizes) {
        strides.push_back(stride);
        if (stride == 0 || size.count == 0 || size.count > largest / stride) return nullptr;
        stride *= size.count;
    }
    const Type *inner = element;
    for (std::size_t i = sizes.size(); i-- > 0;) {
        Type row;
        row.kind = Type::Kind::array;
        row.count = sizes[i].count;
        row.lower = sizes[i].lower;
        row.stride = strides[i];
        row.size = (row.count - 1) * row.stride + inner->size;
        row.target = inner;
        row.name = inner->name + " [" + std::to_string(row.count) + " by " + std::to_string(row.stride) + "]";
        inner = &intern(std::move(row), die);
    }
    return inner;
}

void Types::set_enumeration(Type &type, Dwarf_Die die, int depth) {
    type.kind = Type::Kind::enumeration;
    if (Type *underlying = node_of(die, depth + 1)) {
        type.target = underlying;
        type.is_signed = underlying->is_signed;
        if (type.size == 0) type.size = underlying->size;
        return;
    }
    type.is_signed = number(die, DW_AT_encoding).value_or(DW_ATE_signed) == DW_ATE_signed;
}

void Types::fill(Type &type, int depth) {
    if (state(type).filled || state(type).filling || depth > deepest) return;
    state(type).filling = true;
    if (state(type).copy_of != no_copy) {
        fill_from_base(type, depth);
    } else if (type.kind == Type::Kind::array) {
        if (type.target != nullptr) fill(at(type.target->index), depth + 1);
    } else {
        resolve_declaration(type, false);
        Dwarf_Die die = state(type).die;
        if (!flag(die, DW_AT_declaration)) {
            type.incomplete = false;
            if (type.kind == Type::Kind::enumeration)
                fill_enumerators(type, die);
            else
                fill_members(type, die, depth);
        }
    }
    state(type).filling = false;
    state(type).filled = true;
}

void Types::fill_from_base(Type &type, int depth) {
    Type &base = at(state(type).copy_of);
    fill(base, depth + 1);
    type.members = base.members;
    type.enumerators = base.enumerators;
    type.variants = base.variants;
    type.discriminant = base.discriminant;
    type.discriminant_offset = base.discriminant_offset;
    type.parameters = base.parameters;
    type.virtual_bases = base.virtual_bases;
    type.by_reference = base.by_reference;
    type.incomplete = base.incomplete;
    type.size = base.size;
    type.count = base.count;
    type.target = base.target;
    type.is_signed = base.is_signed;
}

void Types::resolve_declaration(Type &type, bool patient) {
    Dwarf_Die die = state(type).die;
    if (!flag(die, DW_AT_declaration) || find_definition_ == nullptr) return;
    std::string name = units_.qualified_name(die);
    if (name.empty()) return;
    auto definition = find_definition_(owner_, die, name, patient);
    if (!definition) return;
    state(type).die = *definition;
    type.size = std::min(number(*definition, DW_AT_byte_size).value_or(0), largest);
    if (type.kind == Type::Kind::enumeration) set_enumeration(type, *definition, 0);
}

void Types::fill_enumerators(Type &type, Dwarf_Die die) {
    bool negative = false;
    for (Dwarf_Die child : children(die)) {
        if (tag(child) != DW_TAG_enumerator) continue;
        std::int64_t value = constant_value(child, type.size).value_or(0);
        if (!type.is_signed && type.target != nullptr && type.size < 8)
            value &= static_cast<std::int64_t>((std::uint64_t{1} << (type.size * 8)) - 1);
        negative = negative || value < 0;
        type.enumerators.push_back({std::string(own_name(child)), value});
    }
    if (type.target == nullptr && !negative) type.is_signed = false;
}

void Types::fill_members(Type &type, Dwarf_Die die, int depth) {
    for (Dwarf_Die child : children(die)) {
        switch (tag(child)) {
        case DW_TAG_member:
        case DW_TAG_inheritance:
        case DW_TAG_variable: add_member(type, child, depth); break;
        case DW_TAG_variant_part: add_variants(type, child, depth); break;
        default: break;
        }
    }
    type.by_reference = passes_by_reference(type, die);
    if (is_of_library(type)) add_parameters(type, die, depth);
}

bool Types::passes_by_reference(const Type &type, Dwarf_Die die) {
    if (declares_pass_by_reference(die, !units_.is_c(die))) return true;
    if (number(die, DW_AT_calling_convention).value_or(0) == DW_CC_pass_by_value) return false;
    return std::any_of(type.members.begin(), type.members.end(), [](const value::Member &member) {
        const Type *part = member.type;
        for (int step = 0; part != nullptr && part->kind == Type::Kind::array && step < deepest; ++step)
            part = part->target;
        return !member.is_static && part != nullptr && part->by_reference;
    });
}

void Types::expand(Type &first, int hops, bool patient) {
    struct Item {
        std::uint32_t index;
        int hops;
    };
    std::vector<Item> work{{first.index, hops}};
    bool is_first = true;
    while (!work.empty()) {
        auto [index, left] = work.back();
        work.pop_back();
        Type &type = at(index);
        if (patient && is_first) {
            // Types that were left as declarations may be found by a pass over the file.
            Type &base = states_[index].copy_of != no_copy ? at(states_[index].copy_of) : type;
            if (base.incomplete && states_[base.index].filled) {
                resolve_declaration(base, true);
                states_[base.index].filled = states_[index].filled = false;
            }
        }
        is_first = false;
        if (states_[index].hops >= left) continue;
        states_[index].hops = left;
        if (states_[index].copy_of != no_copy) work.push_back({states_[index].copy_of, left});
        fill(type, 0);
        bool follows = type.kind == Type::Kind::pointer || type.kind == Type::Kind::reference;
        if (type.target != nullptr && (!follows || left > 0))
            work.push_back({type.target->index, follows ? left - 1 : left});
        for (const value::Member &member : type.members)
            if (member.type != nullptr) work.push_back({member.type->index, left});
        for (const value::VirtualBase &base : type.virtual_bases) work.push_back({base.type->index, left});
        if (type.member_of != nullptr && left > 0) work.push_back({type.member_of->index, left - 1});
        for (const Type *parameter : type.parameters)
            if (left > 0) work.push_back({parameter->index, left - 1});
    }
}

} // namespace ktrace::symbols
