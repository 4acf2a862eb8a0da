// Expressions: operations on values of a base type (DWARF 5, 2.5.1.2 to 2.5.1.6; dwarf_translator.h).
#include "symbols/dwarf/places/translator.h"

namespace ktrace::symbols {

using value::Op;
using value::Piece;
using value::Place;
using Code = value::Op::Code;

std::optional<WordType> Translator::word_type(Dwarf_Attribute &attr, const Dwarf_Op &op) {
    Dwarf_Die type;
    if (dwarf_getlocation_die(&attr, &op, &type) != 0 || tag(type) != DW_TAG_base_type) {
        broken();
        return std::nullopt;
    }
    std::uint64_t size = number(type, DW_AT_byte_size).value_or(0);
    std::uint64_t encoding = number(type, DW_AT_encoding).value_or(0);
    if (size == 0 || size > 8 || encoding == DW_ATE_float || encoding == DW_ATE_complex_float) {
        refuse("its location computes with floating point or wide numbers");
        return std::nullopt;
    }
    bool is_signed = encoding == DW_ATE_signed || encoding == DW_ATE_signed_char;
    return WordType{static_cast<std::uint8_t>(size), is_signed};
}

bool Translator::add_typed(Dwarf_Attribute *attr, const Dwarf_Op &op) {
    switch (op.atom) {
    case DW_OP_convert:
    case DW_OP_GNU_convert:
    case DW_OP_reinterpret:
    case DW_OP_GNU_reinterpret:
    case DW_OP_const_type:
    case DW_OP_GNU_const_type:
    case DW_OP_regval_type:
    case DW_OP_GNU_regval_type:
    case DW_OP_deref_type:
    case DW_OP_GNU_deref_type: break;
    default: return false;
    }
    if (attr == nullptr) return broken();
    if (has_branches_) return refuse("its location branches between typed values");
    bool is_conversion = op.atom == DW_OP_convert || op.atom == DW_OP_GNU_convert || op.atom == DW_OP_reinterpret ||
                         op.atom == DW_OP_GNU_reinterpret;
    if (is_conversion) return convert(*attr, op);
    auto type = word_type(*attr, op);
    return type && add_typed_value(*attr, op, *type);
}

bool Translator::convert(Dwarf_Attribute &attr, const Dwarf_Op &op) {
    WordType type;
    if (op.number != 0) {
        auto named = word_type(attr, op);
        if (!named) return false;
        type = *named;
    }
    if (!pop(1)) return false;
    extend(type);
    stack_.push_back(type);
    return true;
}

bool Translator::add_typed_value(Dwarf_Attribute &attr, const Dwarf_Op &op, WordType type) {
    switch (op.atom) {
    case DW_OP_const_type:
    case DW_OP_GNU_const_type: {
        Dwarf_Attribute constant;
        Dwarf_Block block;
        if (dwarf_getlocation_attr(&attr, &op, &constant) != 0 || dwarf_formblock(&constant, &block) != 0 ||
            block.length > 8)
            return broken();
        std::uint64_t number = 0;
        for (std::size_t i = 0; i < block.length; ++i) number |= std::uint64_t{block.data[i]} << (8 * i);
        push(number, type);
        extend(type);
        return true;
    }
    case DW_OP_regval_type:
    case DW_OP_GNU_regval_type:
        if (op.number > 0xffff) return broken();
        push_register(op.number, 0, type);
        extend(type);
        return true;
    default: // deref_type
        if (!pop(1) || op.number == 0 || op.number > 8) return broken();
        emit(Code::deref, 0, 0, static_cast<std::uint8_t>(op.number));
        extend(type);
        stack_.push_back(type);
        return true;
    }
}

} // namespace ktrace::symbols
