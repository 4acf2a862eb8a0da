// Members of structures: where they lie, bit fields in both of DWARF's ways (dwarf_types.h: Types::add_member).
#include "symbols/dwarf/types/types.h"

#include <algorithm>

namespace ktrace::symbols {

namespace {

constexpr std::uint64_t widest = 128; // bits of an integer

/// DW_AT_data_member_location: a constant, or in old files an expression that adds one.
std::optional<std::uint64_t> member_offset(Dwarf_Die die) {
    auto attr = attribute(die, DW_AT_data_member_location);
    if (!attr) return 0;
    Dwarf_Word value;
    if (dwarf_formudata(&*attr, &value) == 0) return value;
    Dwarf_Op *ops = nullptr;
    std::size_t count = 0;
    if (dwarf_getlocation(&*attr, &ops, &count) != 0 || count != 1) return std::nullopt;
    if (ops[0].atom == DW_OP_plus_uconst || ops[0].atom == DW_OP_constu) return ops[0].number;
    return std::nullopt; // computed at run time, as for a virtual base
}

/// Where the offset of a virtual base stands in its table (value::VirtualBase): `dup, deref, N, minus, deref, plus`.
std::optional<std::int64_t> virtual_place(Dwarf_Die die) {
    auto attr = attribute(die, DW_AT_data_member_location);
    Dwarf_Op *ops = nullptr;
    std::size_t count = 0;
    if (!attr || dwarf_getlocation(&*attr, &ops, &count) != 0 || count != 6) return std::nullopt;
    const bool is_usual = ops[0].atom == DW_OP_dup && ops[1].atom == DW_OP_deref && ops[3].atom == DW_OP_minus &&
                          ops[4].atom == DW_OP_deref && ops[5].atom == DW_OP_plus;
    const auto at = static_cast<std::int64_t>(
        ops[2].atom >= DW_OP_lit0 && ops[2].atom <= DW_OP_lit31 ? ops[2].atom - DW_OP_lit0 : ops[2].number);
    constexpr std::int64_t largest = std::int64_t{1} << 20;
    return is_usual && at > 0 && at < largest ? std::optional(-at) : std::nullopt;
}

/// Fills in a bit field's place: the bytes of its storage unit and the first bit in them.
void place_bits(value::Member &member, Dwarf_Die die, std::uint64_t bits) {
    member.bit_size = static_cast<std::uint32_t>(bits);
    std::uint64_t unit = member.type != nullptr && member.type->size != 0 ? member.type->size : 1;
    if (auto storage = number(die, DW_AT_byte_size); storage && *storage != 0) unit = *storage;
    unit = std::min(unit, widest / 8);
    if (auto data_offset = number(die, DW_AT_data_bit_offset)) {
        std::uint64_t first = *data_offset;
        std::uint64_t within = unit * 8;
        member.offset = first / within * unit;
        std::uint64_t bit = first - member.offset * 8;
        if (bit + bits > within) { // a packed field that crosses its unit: count from its own first byte
            member.offset = first / 8;
            bit = first % 8;
        }
        member.bit_offset = static_cast<std::uint32_t>(bit);
        return;
    }
    // DWARF 2: DW_AT_bit_offset counts from the most significant bit of the storage unit, and is negative where a
    // packed field ends above it.
    const auto limit = static_cast<std::int64_t>(widest), within = static_cast<std::int64_t>(unit * 8);
    const std::int64_t from_top = std::clamp(signed_number(die, DW_AT_bit_offset).value_or(0), -limit, limit);
    std::int64_t bit = within - from_top - static_cast<std::int64_t>(bits);
    if (bit < 0 || bit + static_cast<std::int64_t>(bits) > within) {
        const std::int64_t bytes = bit < 0 ? -((-bit + 7) / 8) : bit / 8;
        member.offset += static_cast<std::uint64_t>(bytes);
        bit -= bytes * 8;
    }
    member.bit_offset = static_cast<std::uint32_t>(bit);
}

} // namespace

/// Rust's enums, Ada's records: the discriminant, and the members of all variants, each with its number.
void Types::add_variants(value::Type &type, Dwarf_Die part, int depth) {
    const auto by = reference(part, DW_AT_discr);
    const bool is_first = type.variants.empty();
    for (Dwarf_Die child : children(part)) {
        if (tag(child) == DW_TAG_member) add_member(type, child, depth);
        if (tag(child) != DW_TAG_variant) continue;
        const auto value = number(child, DW_AT_discr_value);
        const bool is_known = is_first && !attribute(child, DW_AT_discr_list);
        if (is_known) type.variants.push_back({value});
        for (Dwarf_Die member : children(child))
            if (tag(member) == DW_TAG_member && add_member(type, member, depth) && is_known)
                type.members.back().variant = static_cast<std::int32_t>(type.variants.size() - 1);
    }
    if (!by || !is_first) return;
    type.discriminant = node_of(*by, depth + 1);
    type.discriminant_offset = member_offset(*by).value_or(0);
}

/// False: it has no place that is known.
bool Types::add_member(value::Type &type, Dwarf_Die die, int depth) {
    value::Member member;
    member.name = std::string(own_name(die));
    unsigned kind = tag(die);
    member.is_static = kind == DW_TAG_variable || (flag(die, DW_AT_external) && flag(die, DW_AT_declaration));
    member.is_base = kind == DW_TAG_inheritance;
    value::Type *of = node_of(die, depth + 1);
    if (of != nullptr && !member.is_static) fill(*of, depth + 1);
    if (member.is_base && number(die, DW_AT_virtuality).value_or(0) != 0) {
        if (const auto at = virtual_place(die); at && of) type.virtual_bases.push_back({of, *at});
        return false;
    }
    member.type = of;
    if (!member.is_static) {
        auto offset = member_offset(die);
        if (!offset) return false;
        member.offset = *offset;
        // One that is more than any type's own is that of the structure, too.
        constexpr std::uint64_t usual = 8, largest = 4096;
        const std::uint64_t alignment = number(die, DW_AT_alignment).value_or(0);
        if (alignment > usual && alignment <= largest) type.alignment = std::max(type.alignment, alignment);
        auto bits = number(die, DW_AT_bit_size);
        if (bits && *bits > 0 && *bits <= widest) place_bits(member, die, *bits);
        bool inside = type.kind == value::Type::Kind::union_ || member.offset <= type.size;
        if (!inside) return false;
    }
    type.members.push_back(std::move(member));
    return true;
}

} // namespace ktrace::symbols
