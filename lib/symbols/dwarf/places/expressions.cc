// Expressions: the walk over the operations, and those that need nothing but the stack and registers
// (dwarf_translator.h).
#include "symbols/dwarf/places/translator.h"

#include <algorithm>
#include <limits>
#include <map>

namespace ktrace::symbols {

using value::Op;
using value::Piece;
using value::Place;
using Code = value::Op::Code;

namespace {

constexpr std::size_t most_ops = 512; // of all pieces together
constexpr std::size_t most_pieces = 64;

bool is_branch(std::uint8_t atom) { return atom == DW_OP_bra || atom == DW_OP_skip; }
bool is_tls(std::uint8_t atom) { return atom == DW_OP_form_tls_address || atom == DW_OP_GNU_push_tls_address; }

/// The plain operations on the stack: what they take, and what becomes of them.
struct Plain {
    std::uint8_t atom;
    Code code;
    enum class Shape : std::uint8_t { unary, binary, compare } shape;
};
constexpr Plain plain_operations[] = {
    {DW_OP_abs, Code::abs, Plain::Shape::unary},    {DW_OP_neg, Code::neg, Plain::Shape::unary},
    {DW_OP_not, Code::not_, Plain::Shape::unary},   {DW_OP_and, Code::and_, Plain::Shape::binary},
    {DW_OP_div, Code::div, Plain::Shape::binary},   {DW_OP_minus, Code::minus, Plain::Shape::binary},
    {DW_OP_mod, Code::mod, Plain::Shape::binary},   {DW_OP_mul, Code::mul, Plain::Shape::binary},
    {DW_OP_or, Code::or_, Plain::Shape::binary},    {DW_OP_plus, Code::plus, Plain::Shape::binary},
    {DW_OP_shl, Code::shl, Plain::Shape::binary},   {DW_OP_shr, Code::shr, Plain::Shape::binary},
    {DW_OP_shra, Code::shra, Plain::Shape::binary}, {DW_OP_xor, Code::xor_, Plain::Shape::binary},
    {DW_OP_eq, Code::eq, Plain::Shape::compare},    {DW_OP_ge, Code::ge, Plain::Shape::compare},
    {DW_OP_gt, Code::gt, Plain::Shape::compare},    {DW_OP_le, Code::le, Plain::Shape::compare},
    {DW_OP_lt, Code::lt, Plain::Shape::compare},    {DW_OP_ne, Code::ne, Plain::Shape::compare},
};

} // namespace

Place Translator::translate(Dwarf_Attribute *attr, const Dwarf_Op *ops, std::size_t count) {
    if (count == 0) return Place::unavailable("it is optimized out here");
    if (count > most_ops) return Place::unavailable("its location is too long");
    add_all(attr, ops, count);
    if (!why_.empty()) return Place::unavailable(why_);
    if (place_.pieces.empty() || located_ || !piece_.ops.empty()) finish_piece(0);
    if (!why_.empty()) return Place::unavailable(why_);
    bool all_gone = std::all_of(place_.pieces.begin(), place_.pieces.end(),
                                [](const Piece &piece) { return piece.kind == Piece::Kind::unavailable; });
    if (all_gone) place_.why = gone_.empty() ? "it is optimized out here" : gone_;
    return std::move(place_);
}

bool Translator::refuse(std::string why) {
    if (why_.empty()) why_ = std::move(why);
    return false;
}

void Translator::emit(Code code, std::int64_t operand, std::uint16_t reg, std::uint8_t size) {
    if (++emitted_ > most_ops) {
        refuse("its location is too long");
        return;
    }
    piece_.ops.push_back({code, size, reg, operand});
}

void Translator::push(std::uint64_t value, WordType type) {
    emit(Code::push, static_cast<std::int64_t>(value));
    stack_.push_back(type);
}

void Translator::push_register(std::uint64_t reg, std::int64_t offset, WordType type) {
    emit(Code::push_register, offset, static_cast<std::uint16_t>(reg));
    stack_.push_back(type);
}

bool Translator::pop(std::size_t count) {
    if (has_branches_) return true; // how deep the stack is depends on the way; eval checks
    if (stack_.size() < count) return broken();
    stack_.resize(stack_.size() - count);
    return true;
}

WordType Translator::top(std::size_t below) const {
    return stack_.size() > below ? stack_[stack_.size() - 1 - below] : WordType{};
}

void Translator::extend(WordType type) {
    if (type.size == 0 || type.size >= 8) return;
    std::int64_t bits = 64 - type.size * 8;
    emit(Code::push, bits);
    emit(Code::shl);
    emit(Code::push, bits);
    emit(type.is_signed ? Code::shra : Code::shr);
}

bool Translator::locate(Piece::Kind kind) {
    if (located_) return broken();
    located_ = true;
    piece_.kind = kind;
    return true;
}

void Translator::finish_piece(std::uint64_t size) {
    if (place_.pieces.size() >= most_pieces || size > ~std::uint32_t{0}) {
        broken();
        return;
    }
    if (!located_ && piece_.ops.empty()) piece_.kind = Piece::Kind::unavailable;
    piece_.size = static_cast<std::uint32_t>(size);
    place_.pieces.push_back(std::move(piece_));
    piece_ = Piece{};
    located_ = false;
    stack_.clear();
}

void Translator::add_all(Dwarf_Attribute *attr, const Dwarf_Op *ops, std::size_t count) {
    if (std::any_of(ops, ops + count, [](const Dwarf_Op &op) { return is_branch(op.atom); })) {
        if (std::any_of(ops, ops + count, [](const Dwarf_Op &op) { return op.atom == DW_OP_piece; })) {
            refuse("its location branches between pieces");
            return;
        }
        has_branches_ = true;
    }
    std::map<std::uint64_t, std::size_t> starts; // expression offset → index in piece_.ops
    struct Jump {
        std::size_t at;
        std::uint64_t to;
    };
    std::vector<Jump> jumps;
    for (std::size_t i = 0; i < count && why_.empty(); ++i) {
        starts[ops[i].offset] = piece_.ops.size();
        if (is_branch(ops[i].atom)) {
            jumps.push_back({piece_.ops.size(),
                             ops[i].offset + 3 + static_cast<std::uint64_t>(static_cast<std::int16_t>(ops[i].number))});
            emit(ops[i].atom == DW_OP_bra ? Code::bra : Code::skip);
            continue;
        }
        add(attr, ops[i], i + 1 < count ? &ops[i + 1] : nullptr);
    }
    for (const Jump &jump : jumps) {
        auto target = starts.find(jump.to);
        std::size_t index = target != starts.end() ? target->second : piece_.ops.size();
        bool is_end = target == starts.end() && count != 0 && jump.to > ops[count - 1].offset;
        if (index <= jump.at || (target == starts.end() && !is_end) || jump.at >= piece_.ops.size()) {
            broken(); // backward: it might never end
            return;
        }
        piece_.ops[jump.at].operand = static_cast<std::int64_t>(index - jump.at - 1);
    }
}

bool Translator::add(Dwarf_Attribute *attr, const Dwarf_Op &op, const Dwarf_Op *next) {
    std::uint8_t atom = op.atom;
    if (located_ && atom != DW_OP_piece && atom != DW_OP_bit_piece) return broken();
    if (add_constant(attr, op, next) || add_register(op) || add_stack(op) || add_plain(atom)) return why_.empty();
    return add_memory(attr, op) || add_location(attr, op) || add_typed(attr, op) || refuse_rest(atom);
}

bool Translator::refuse_rest(std::uint8_t atom) {
    switch (atom) {
    case DW_OP_push_object_address: return refuse("its location depends on the object that holds it");
    case DW_OP_GNU_parameter_ref: return refuse("it is optimized out");
    default: return refuse(why_.empty() ? "its location uses an operation that is not known" : why_);
    }
}

bool Translator::add_constant(Dwarf_Attribute *attr, const Dwarf_Op &op, const Dwarf_Op *next) {
    if (op.atom >= DW_OP_lit0 && op.atom <= DW_OP_lit31) {
        push(op.atom - unsigned{DW_OP_lit0});
        return true;
    }
    bool for_tls = next != nullptr && is_tls(next->atom);
    switch (op.atom) {
    case DW_OP_const1u:
    case DW_OP_const1s:
    case DW_OP_const2u:
    case DW_OP_const2s:
    case DW_OP_const4u:
    case DW_OP_const4s:
    case DW_OP_const8u:
    case DW_OP_const8s:
    case DW_OP_constu:
    case DW_OP_consts: push(op.number); return true;
    case DW_OP_addr: push(op.number + (for_tls ? 0 : view_.bias)); return true;
    case DW_OP_addrx:
    case DW_OP_GNU_addr_index:
    case DW_OP_constx:
    case DW_OP_GNU_const_index: {
        Dwarf_Attribute value;
        bool is_address = op.atom == DW_OP_addrx || op.atom == DW_OP_GNU_addr_index;
        Dwarf_Addr number = 0;
        if (attr == nullptr || dwarf_getlocation_attr(attr, &op, &value) != 0 ||
            (is_address ? dwarf_formaddr(&value, &number) : dwarf_formudata(&value, &number)) != 0) {
            broken();
            return true;
        }
        push(number + (is_address && !for_tls ? view_.bias : 0));
        return true;
    }
    default: return false;
    }
}

bool Translator::add_register(const Dwarf_Op &op) {
    if (op.atom >= DW_OP_reg0 && op.atom <= DW_OP_reg31) return in_register(op.atom - unsigned{DW_OP_reg0});
    if (op.atom >= DW_OP_breg0 && op.atom <= DW_OP_breg31) {
        push_register(op.atom - unsigned{DW_OP_breg0}, static_cast<std::int64_t>(op.number));
        return true;
    }
    switch (op.atom) {
    case DW_OP_regx: return in_register(op.number);
    case DW_OP_bregx: push_register(op.number, static_cast<std::int64_t>(op.number2)); return true;
    case DW_OP_fbreg:
        push_frame_base();
        emit(Code::push, static_cast<std::int64_t>(op.number));
        emit(Code::plus);
        return true;
    case DW_OP_call_frame_cfa: push_cfa(); return true;
    default: return false;
    }
}

bool Translator::in_register(std::uint64_t reg) {
    if (!piece_.ops.empty() || reg > 0xffff)
        broken();
    else if (locate(Piece::Kind::register_))
        piece_.reg = static_cast<std::uint16_t>(reg);
    return true;
}

bool Translator::add_stack(const Dwarf_Op &op) {
    switch (op.atom) {
    case DW_OP_nop:
    case DW_OP_GNU_uninit: return true;
    case DW_OP_dup:
        emit(Code::dup);
        stack_.push_back(top());
        return true;
    case DW_OP_drop:
        pop(1);
        emit(Code::drop);
        return true;
    case DW_OP_over:
        emit(Code::over);
        stack_.push_back(top(1));
        return true;
    case DW_OP_pick:
        emit(Code::pick, static_cast<std::int64_t>(op.number));
        stack_.push_back(top(op.number));
        return true;
    case DW_OP_swap:
        emit(Code::swap);
        if (stack_.size() >= 2) std::swap(stack_[stack_.size() - 1], stack_[stack_.size() - 2]);
        return true;
    case DW_OP_rot:
        emit(Code::rot);
        if (stack_.size() >= 3) std::rotate(stack_.end() - 3, stack_.end() - 1, stack_.end());
        return true;
    case DW_OP_plus_uconst:
        emit(Code::push, static_cast<std::int64_t>(op.number));
        emit(Code::plus);
        extend(top());
        return true;
    default: return false;
    }
}

bool Translator::add_plain(std::uint8_t atom) {
    const auto *found = std::find_if(std::begin(plain_operations), std::end(plain_operations),
                                     [atom](const Plain &plain) { return plain.atom == atom; });
    if (found == std::end(plain_operations)) return false;
    if (found->shape == Plain::Shape::unary) {
        emit(found->code);
        extend(top());
        return true;
    }
    WordType type = top(1);
    if (!pop(2)) return true;
    bool is_word = type.size == 8 && !type.is_signed;
    if (is_word && found->code == Code::div) {
        refuse("its location divides unsigned 64-bit numbers");
        return true;
    }
    if (is_word && found->shape == Plain::Shape::compare) offset_both();
    if (found->code == Code::shr && type.is_signed) mask_below(type);
    emit(found->code);
    if (found->shape == Plain::Shape::compare) {
        stack_.push_back({});
        return true;
    }
    extend(type);
    stack_.push_back(type);
    return true;
}

void Translator::offset_both() {
    constexpr auto top_bit = std::numeric_limits<std::int64_t>::min();
    for (int i = 0; i < 2; ++i) {
        emit(Code::push, top_bit);
        emit(Code::xor_);
        emit(Code::swap);
    }
}

void Translator::mask_below(WordType type) {
    if (type.size == 0 || type.size >= 8) return;
    emit(Code::swap);
    emit(Code::push, (std::int64_t{1} << (type.size * 8)) - 1);
    emit(Code::and_);
    emit(Code::swap);
}

bool Translator::add_memory(Dwarf_Attribute *attr, const Dwarf_Op &op) {
    switch (op.atom) {
    case DW_OP_deref:
        if (!pop(1)) return false;
        emit(Code::deref);
        stack_.push_back({});
        return true;
    case DW_OP_deref_size:
        if (!pop(1) || op.number == 0 || op.number > 8) return broken();
        emit(Code::deref, 0, 0, static_cast<std::uint8_t>(op.number));
        stack_.push_back({});
        return true;
    case DW_OP_form_tls_address:
    case DW_OP_GNU_push_tls_address:
        if (!pop(1)) return false;
        emit(Code::tls);
        stack_.push_back({});
        return true;
    case DW_OP_call2:
    case DW_OP_call4:
    case DW_OP_call_ref: return attr != nullptr && call(*attr, op);
    case DW_OP_entry_value:
    case DW_OP_GNU_entry_value: return attr != nullptr && entry_value(*attr, op);
    default: return false;
    }
}

bool Translator::add_location(Dwarf_Attribute *attr, const Dwarf_Op &op) {
    switch (op.atom) {
    case DW_OP_stack_value: return piece_.ops.empty() ? broken() : locate(Piece::Kind::value);
    case DW_OP_implicit_value: {
        Dwarf_Block block;
        if (attr == nullptr || dwarf_getlocation_implicit_value(attr, &op, &block) != 0) return broken();
        if (!locate(Piece::Kind::bytes) || block.length > 4096) return broken();
        piece_.bytes.assign(block.data, block.data + block.length);
        return true;
    }
    case DW_OP_implicit_pointer:
    case DW_OP_GNU_implicit_pointer:
        gone_ = "it is optimized to an implicit pointer";
        return locate(Piece::Kind::unavailable);
    case DW_OP_piece: finish_piece(op.number); return why_.empty();
    case DW_OP_bit_piece: return bit_piece(op.number, op.number2);
    default: return false;
    }
}

bool Translator::bit_piece(std::uint64_t bits, std::uint64_t first) {
    if (bits % 8 != 0 || first % 8 != 0 || first / 8 > 0xffff) return refuse("its location has pieces of bits");
    if (first != 0 && located_ && piece_.kind == Piece::Kind::register_)
        piece_.reg_offset = static_cast<std::uint16_t>(first / 8);
    else if (first != 0)
        return refuse("its location has pieces of bits");
    finish_piece(bits / 8);
    return why_.empty();
}

Place translate(Dwarf_Attribute *attr, const Dwarf_Op *ops, std::size_t count, const Viewpoint &view, Frames &frames) {
    return Translator(view, frames).translate(attr, ops, count);
}

} // namespace ktrace::symbols
