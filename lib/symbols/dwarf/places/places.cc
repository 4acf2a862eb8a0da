// Places of variables: which description holds at an address (dwarf_places.h). The descriptions themselves:
// dwarf_expressions.cc.
#include "symbols/dwarf/places/places.h"

#include <algorithm>
#include <cstring>

namespace ktrace::symbols {

using value::Piece;
using value::Place;

namespace {

constexpr std::size_t most_bytes = 1 << 16; // of a constant

bool is_expression(Dwarf_Attribute &attr) {
    switch (dwarf_whatform(&attr)) {
    case DW_FORM_exprloc:
    case DW_FORM_block:
    case DW_FORM_block1:
    case DW_FORM_block2:
    case DW_FORM_block4: return true;
    default: return false;
    }
}

Place constant(std::vector<std::uint8_t> bytes) {
    Place place;
    place.pieces.resize(1);
    place.pieces[0].kind = Piece::Kind::bytes;
    place.pieces[0].bytes = std::move(bytes);
    return place;
}

/// DW_AT_const_value, as the bytes that the variable would have in memory (little endian).
std::optional<Place> constant_of(Dwarf_Die variable, std::uint64_t size) {
    auto attr = inherited(variable, DW_AT_const_value);
    if (!attr) return std::nullopt;
    Dwarf_Block block;
    if (dwarf_formblock(&*attr, &block) == 0) {
        std::size_t length = std::min<std::size_t>(block.length, most_bytes);
        return constant(std::vector<std::uint8_t>(block.data, block.data + length));
    }
    if (const char *text = dwarf_formstring(&*attr)) {
        std::size_t length = std::min<std::size_t>(std::strlen(text) + 1, most_bytes);
        return constant(std::vector<std::uint8_t>(text, text + length));
    }
    auto number = constant_value(variable, size);
    if (!number) return std::nullopt;
    std::vector<std::uint8_t> bytes(size == 0 || size > 16 ? 8 : size, *number < 0 ? 0xff : 0);
    std::memcpy(bytes.data(), &*number, std::min<std::size_t>(bytes.size(), sizeof *number));
    return constant(std::move(bytes));
}

std::uint64_t total_size(const Place &place) {
    std::uint64_t total = 0;
    for (const Piece &piece : place.pieces) total += piece.size;
    return total;
}

/// A place in memory at a register and an offset, however it is computed.
std::optional<std::pair<unsigned, std::uint64_t>> register_and_offset(const Place &place) {
    if (!place.why.empty() || place.pieces.size() != 1 || place.pieces[0].kind != Piece::Kind::memory)
        return std::nullopt;
    std::optional<unsigned> reg;
    std::uint64_t offset = 0;
    for (const value::Op &op : place.pieces[0].ops) {
        bool is_register = op.code == value::Op::Code::push_register;
        if ((is_register && reg) ||
            (!is_register && op.code != value::Op::Code::push && op.code != value::Op::Code::plus))
            return std::nullopt;
        if (is_register) reg = op.reg;
        offset += static_cast<std::uint64_t>(op.operand);
    }
    if (!reg) return std::nullopt;
    return std::pair(*reg, offset);
}

/// True where an expression begins with the register that is the function's frame base.
bool counts_from_frame_base(const Dwarf_Op &op, Dwarf_Die function) {
    auto base = attribute(function, DW_AT_frame_base);
    Dwarf_Op *ops = nullptr;
    std::size_t count = 0;
    if (!base || dwarf_getlocation(&*base, &ops, &count) != 0 || count != 1) return false;
    return op.atom >= DW_OP_breg0 && ops[0].atom == op.atom - unsigned{DW_OP_breg0} + unsigned{DW_OP_reg0};
}

std::optional<Place> located(Dwarf_Attribute &attr, const Viewpoint &view, Frames &frames) {
    Dwarf_Op *ops = nullptr;
    std::size_t count = 0;
    int found = dwarf_getlocation_addr(&attr, view.vaddr, &ops, &count, 1);
    if (found < 0) return Place::unavailable("its debug information is broken");
    if (found == 0) return std::nullopt;
    return translate(&attr, ops, count, view, frames);
}

} // namespace

Place place_of(Dwarf_Die variable, std::uint64_t size, const Viewpoint &view, Frames &frames) {
    if (auto attr = inherited(variable, DW_AT_location)) {
        auto place = located(*attr, view, frames);
        return place ? std::move(*place) : Place::unavailable("it is optimized out here");
    }
    if (auto place = constant_of(variable, size)) return std::move(*place);
    return Place::unavailable("it is optimized out");
}

std::optional<Place> entry_place_of(Dwarf_Die parameter, std::uint64_t size, const Viewpoint &entry, Frames &frames,
                                    bool always_holds) {
    auto attr = attribute(parameter, DW_AT_location);
    if (!attr) return attribute(parameter, DW_AT_const_value) ? constant_of(parameter, size) : std::nullopt;
    auto place = is_expression(*attr) && !always_holds ? std::nullopt : located(*attr, entry, frames);
    if (!place || !place->why.empty() || place->pieces.empty()) return std::nullopt;
    bool incomplete = std::any_of(place->pieces.begin(), place->pieces.end(),
                                  [](const Piece &piece) { return piece.kind == Piece::Kind::unavailable; });
    if (incomplete || (place->pieces.back().size != 0 && total_size(*place) < size)) return std::nullopt;
    return place;
}

bool same_address(const Place &a, const Place &b) {
    auto first = register_and_offset(a), second = register_and_offset(b);
    return first && second && *first == *second;
}

bool lives_in_memory(Dwarf_Die variable) {
    auto attr = inherited(variable, DW_AT_location);
    Dwarf_Op *ops = nullptr;
    std::size_t count = 0;
    if (!attr || !is_expression(*attr) || dwarf_getlocation(&*attr, &ops, &count) != 0 || count == 0) return false;
    return ops[0].atom == DW_OP_fbreg || (ops[0].atom >= DW_OP_breg0 && ops[0].atom <= DW_OP_breg31);
}

bool is_address_passed(Dwarf_Die parameter) {
    auto attr = attribute(parameter, DW_AT_location);
    Dwarf_Addr base = 0, start = 0, end = 0;
    Dwarf_Op *ops = nullptr;
    std::size_t count = 0;
    if (!attr || dwarf_getlocations(&*attr, 0, &base, &start, &end, &ops, &count) <= 0 || count == 0) return false;
    if (ops[count - 1].atom == DW_OP_deref) return true;
    return count == 1 && !is_expression(*attr) && ops[0].atom >= DW_OP_breg0 && ops[0].atom <= DW_OP_breg31;
}

bool is_below_cfa(Dwarf_Die parameter, Dwarf_Die function) {
    auto attr = attribute(parameter, DW_AT_location), base = attribute(function, DW_AT_frame_base);
    Dwarf_Op *ops = nullptr, *of_base = nullptr;
    std::size_t count = 0, count_of_base = 0;
    if (!attr || !is_expression(*attr) || dwarf_getlocation(&*attr, &ops, &count) != 0 || count == 0) return false;
    if (!base || !is_expression(*base) || dwarf_getlocation(&*base, &of_base, &count_of_base) != 0) return false;
    return ops[0].atom == DW_OP_fbreg && static_cast<std::int64_t>(ops[0].number) < 0 && count_of_base == 1 &&
           of_base[0].atom == DW_OP_call_frame_cfa;
}

Stored stored_in_frame(Dwarf_Die parameter, Dwarf_Die function) {
    auto attr = attribute(parameter, DW_AT_location);
    Dwarf_Addr base = 0, start = 0, end = 0;
    Dwarf_Op *ops = nullptr;
    std::size_t count = 0;
    if (!attr || dwarf_getlocations(&*attr, 0, &base, &start, &end, &ops, &count) <= 0 || count == 0)
        return Stored::unknown;
    bool in_frame = ops[0].atom == DW_OP_fbreg || counts_from_frame_base(ops[0], function);
    bool at_register = ops[0].atom >= DW_OP_breg0 && ops[0].atom <= DW_OP_breg31;
    if (count == 2 && ops[1].atom == DW_OP_deref && in_frame) return Stored::address;
    if (count == 1 && ops[0].atom == DW_OP_fbreg) return Stored::value;
    return count == 1 && at_register && !in_frame && ops[0].number == 0 ? Stored::nothing : Stored::unknown;
}

} // namespace ktrace::symbols
