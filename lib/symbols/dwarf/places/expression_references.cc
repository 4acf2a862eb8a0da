// Expressions: operations that refer to something else: the frame, other DIEs, values at entry (dwarf_translator.h).
#include "symbols/dwarf/places/translator.h"

namespace ktrace::symbols {

using value::Op;
using value::Piece;
using value::Place;
using Code = value::Op::Code;

namespace {

constexpr int deepest = 4; // DW_OP_call, frame base, CFA

} // namespace

void Translator::push_inner(const Place &inner) {
    if (inner.pieces.size() != 1 || inner.pieces[0].kind == Piece::Kind::unavailable ||
        inner.pieces[0].kind == Piece::Kind::bytes) {
        refuse(inner.why.empty() ? "its frame is not described" : inner.why);
        return;
    }
    const Piece &piece = inner.pieces[0];
    if (piece.kind == Piece::Kind::register_) {
        push_register(piece.reg, 0);
        return;
    }
    for (const Op &op : piece.ops) emit(op.code, op.operand, op.reg, op.size);
    stack_.push_back({});
}

Place Translator::nested(Dwarf_Attribute *attr, const Dwarf_Op *ops, std::size_t count) {
    if (depth_ >= deepest) return Place::unavailable("its debug information is broken");
    Translator inner(view_, frames_);
    inner.depth_ = depth_ + 1;
    inner.emitted_ = emitted_;
    return inner.translate(attr, ops, count);
}

void Translator::push_cfa() {
    auto ops = depth_ < deepest ? frames_.cfa(view_.vaddr) : std::nullopt;
    if (!ops) {
        refuse("its frame is not described (no call frame information there)");
        return;
    }
    push_inner(nested(nullptr, ops->data(), ops->size()));
}

void Translator::push_frame_base() {
    auto attr = view_.function ? inherited(*view_.function, DW_AT_frame_base) : std::nullopt;
    Dwarf_Op *ops = nullptr;
    std::size_t count = 0;
    if (!attr || dwarf_getlocation_addr(&*attr, view_.vaddr, &ops, &count, 1) != 1) {
        refuse("its frame is not described");
        return;
    }
    if (count == 1 && ops[0].atom >= DW_OP_reg0 && ops[0].atom <= DW_OP_reg31 &&
        !is_frame_register(ops[0].atom - unsigned{DW_OP_reg0})) {
        refuse("its frame is not set up there");
        return;
    }
    push_inner(nested(&*attr, ops, count));
}

bool Translator::is_frame_register(unsigned reg) {
    auto rule = frames_.cfa_rule(view_.vaddr);
    if (!rule) return true;
    for (auto [low, high] : address_ranges(*view_.function)) {
        if (view_.vaddr < low || view_.vaddr >= high) continue;
        auto usual = frames_.usual_cfa_rule(low, high);
        return !usual || usual->reg != reg || *usual == *rule;
    }
    return true;
}

bool Translator::call(Dwarf_Attribute &attr, const Dwarf_Op &op) {
    Dwarf_Die callee;
    if (dwarf_getlocation_die(&attr, &op, &callee) != 0) return broken();
    auto location = attribute(callee, DW_AT_location);
    if (!location) return true; // 2.5.1.5: no effect then
    Dwarf_Op *ops = nullptr;
    std::size_t count = 0;
    if (dwarf_getlocation_addr(&*location, view_.vaddr, &ops, &count, 1) != 1) return refuse("it is optimized out");
    push_inner(nested(&*location, ops, count));
    return why_.empty();
}

bool Translator::entry_value(Dwarf_Attribute &attr, const Dwarf_Op &op) {
    Dwarf_Attribute inner;
    Dwarf_Op *ops = nullptr;
    std::size_t count = 0;
    if (dwarf_getlocation_attr(&attr, &op, &inner) != 0 || dwarf_getlocation(&inner, &ops, &count) != 0)
        return broken();
    bool is_register = count == 1 && ((ops[0].atom >= DW_OP_reg0 && ops[0].atom <= DW_OP_reg31) ||
                                      (ops[0].atom == DW_OP_regx && ops[0].number <= 0xffff));
    if (!is_register) return refuse("it is optimized out (only its value at entry is known)");
    std::uint64_t reg = ops[0].atom == DW_OP_regx ? ops[0].number : ops[0].atom - unsigned{DW_OP_reg0};
    if (view_.at_entry) {
        push_register(reg, 0);
    } else {
        emit(Code::entry_register, 0, static_cast<std::uint16_t>(reg));
        stack_.push_back({});
    }
    return true;
}

} // namespace ktrace::symbols
