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
    // DWARF 2: DW_AT_bit_offset counts from the most significant bit of the storage unit.
    std::uint64_t from_top = std::min(number(die, DW_AT_bit_offset).value_or(0), widest);
    std::int64_t bit = static_cast<std::int64_t>(unit * 8) - static_cast<std::int64_t>(from_top + bits);
    if (bit < 0) { // a packed field that starts below its unit
        std::int64_t back = (-bit + 7) / 8;
        member.offset -= static_cast<std::uint64_t>(back);
        bit += back * 8;
    }
    member.bit_offset = static_cast<std::uint32_t>(bit);
}

} // namespace

void Types::add_member(value::Type &type, Dwarf_Die die, int depth) {
    value::Member member;
    member.name = std::string(own_name(die));
    unsigned kind = tag(die);
    member.is_static = kind == DW_TAG_variable || (flag(die, DW_AT_external) && flag(die, DW_AT_declaration));
    member.is_base = kind == DW_TAG_inheritance;
    if (member.is_base && number(die, DW_AT_virtuality).value_or(0) != 0) return; // its place is found in the object
    value::Type *of = node_of(die, depth + 1);
    if (of != nullptr && !member.is_static) fill(*of, depth + 1);
    member.type = of;
    if (!member.is_static) {
        auto offset = member_offset(die);
        if (!offset) return;
        member.offset = *offset;
        auto bits = number(die, DW_AT_bit_size);
        if (bits && *bits > 0 && *bits <= widest) place_bits(member, die, *bits);
        bool inside = type.kind == value::Type::Kind::union_ || member.offset <= type.size;
        if (!inside) return;
    }
    type.members.push_back(std::move(member));
}

} // namespace ktrace::symbols
