#include "program/lower/lower_place.h"

#include "program/lower/types.h"

#include <algorithm>
#include <string>

namespace ktrace::program {

namespace {

using value::Op;
using value::Piece;
using value::Place;

const arch::RegisterInfo *register_by_dwarf(int number) {
    for (const arch::RegisterInfo &info : arch::Host::registers())
        if (info.dwarf == number) return &info;
    return nullptr;
}

Instr simple(Opcode op) { return Instr{.op = op}; }

/// In the place of what is somewhere, but cannot be read.
Instr not_known() { return {.op = Opcode::push_unavailable, .imm = static_cast<std::int64_t>(unavailable_not_known)}; }

Instr push_register(const arch::RegisterInfo &info, std::uint64_t from, unsigned size, bool is_signed) {
    return Instr{.op = Opcode::push_register,
                 .size = static_cast<std::uint8_t>(size),
                 .is_signed = is_signed,
                 .is_float = info.file == arch::RegisterInfo::File::floating,
                 .index = static_cast<std::uint32_t>(info.offset + from)};
}

Opcode plain(Op::Code code) {
    switch (code) {
    case Op::Code::dup: return Opcode::dup;
    case Op::Code::drop: return Opcode::drop;
    case Op::Code::over: return Opcode::over;
    case Op::Code::swap: return Opcode::swap;
    case Op::Code::rot: return Opcode::rot;
    case Op::Code::abs: return Opcode::abs;
    case Op::Code::and_: return Opcode::bit_and;
    case Op::Code::div: return Opcode::div_s;
    case Op::Code::minus: return Opcode::sub;
    case Op::Code::mod: return Opcode::mod_u;
    case Op::Code::mul: return Opcode::mul;
    case Op::Code::neg: return Opcode::neg;
    case Op::Code::not_: return Opcode::bit_not;
    case Op::Code::or_: return Opcode::bit_or;
    case Op::Code::plus: return Opcode::add;
    case Op::Code::shl: return Opcode::shl;
    case Op::Code::shr: return Opcode::shr_u;
    case Op::Code::shra: return Opcode::shr_s;
    case Op::Code::xor_: return Opcode::bit_xor;
    case Op::Code::eq: return Opcode::eq;
    case Op::Code::ne: return Opcode::ne;
    case Op::Code::lt: return Opcode::lt_s;
    case Op::Code::le: return Opcode::le_s;
    default: return Opcode::push_na;
    }
}

/// The instructions of one op; two at most. Jumps still count ops, not instructions.
void lower_op(const Op &op, Instrs &out) {
    switch (op.code) {
    case Op::Code::push: out.push_back({.op = Opcode::push, .imm = op.operand}); return;
    case Op::Code::push_register: {
        const arch::RegisterInfo *info = register_by_dwarf(op.reg);
        if (!info) {
            out.push_back(simple(Opcode::push_unavailable));
            return;
        }
        out.push_back(push_register(*info, 0, std::min<unsigned>(info->width, 8), false));
        if (op.operand != 0) out.push_back({.op = Opcode::add_imm, .imm = op.operand});
        return;
    }
    case Op::Code::deref: out.push_back({.op = Opcode::load, .size = std::min<std::uint8_t>(op.size, 8)}); return;
    case Op::Code::pick: out.push_back({.op = Opcode::pick, .imm = std::max<std::int64_t>(op.operand, 0)}); return;
    case Op::Code::ge:
    case Op::Code::gt:
        out.push_back(simple(Opcode::swap));
        out.push_back(simple(op.code == Op::Code::ge ? Opcode::le_s : Opcode::lt_s));
        return;
    case Op::Code::bra: // DWARF jumps where the value is not zero
        out.push_back(simple(Opcode::logical_not));
        out.push_back({.op = Opcode::jump_false, .imm = op.operand});
        return;
    case Op::Code::skip: out.push_back({.op = Opcode::jump, .imm = op.operand}); return;
    case Op::Code::tls: out.push_back({.op = Opcode::tls, .imm = op.operand}); return;
    case Op::Code::entry_register: out.push_back({.op = Opcode::push_unavailable, .index = op.reg + 1u}); return;
    default: out.push_back(simple(plain(op.code))); return;
    }
}

} // namespace

bool is_in_memory(const Place &place, std::uint64_t size) {
    return place.pieces.size() == 1 && place.pieces[0].kind == Piece::Kind::memory &&
           (place.pieces[0].size == 0 || place.pieces[0].size >= size);
}

Instrs lower_register(std::uint16_t dwarf_number) {
    Instrs instrs;
    lower_op({.code = Op::Code::push_register, .size = 8, .reg = dwarf_number, .operand = 0}, instrs);
    return instrs;
}

void lower_ops(const Piece &piece, Instrs &out) {
    std::size_t base = out.size();
    std::vector<std::size_t> starts;                        // of each op, and of the end
    std::vector<std::pair<std::size_t, std::size_t>> jumps; // instruction, op
    for (std::size_t i = 0; i < piece.ops.size(); ++i) {
        starts.push_back(out.size());
        lower_op(piece.ops[i], out);
        if (piece.ops[i].code == Op::Code::bra || piece.ops[i].code == Op::Code::skip)
            jumps.emplace_back(out.size() - 1, i);
    }
    starts.push_back(out.size());
    for (auto [at, op] : jumps) {
        std::int64_t target = static_cast<std::int64_t>(op) + 1 + out[at].imm;
        if (target < 0 || target >= static_cast<std::int64_t>(starts.size())) { // malformed
            out.resize(base);
            out.push_back(simple(Opcode::push_unavailable));
            return;
        }
        out[at].imm =
            static_cast<std::int64_t>(starts[static_cast<std::size_t>(target)]) - static_cast<std::int64_t>(at) - 1;
    }
    if (piece.ops.empty()) out.push_back(simple(Opcode::push_unavailable));
}

bool lower_scalar(const Place &place, unsigned size, bool is_signed, Instrs &out) {
    if (place.pieces.size() != 1 || size > 8) return false;
    const Piece &piece = place.pieces[0];
    if (piece.size != 0 && piece.size < size) return false;
    if (piece.kind == Piece::Kind::unavailable || piece.kind == Piece::Kind::not_known) {
        out.push_back(piece.kind == Piece::Kind::not_known ? not_known() : simple(Opcode::push_unavailable));
        return true;
    }
    if (piece.kind == Piece::Kind::value) {
        lower_ops(piece, out);
        out.push_back({.op = Opcode::narrow, .size = static_cast<std::uint8_t>(size), .is_signed = is_signed});
        return true;
    }
    if (piece.kind != Piece::Kind::register_) return false;
    const arch::RegisterInfo *info = register_by_dwarf(piece.reg);
    if (!info || piece.reg_offset + size > info->width) return false;
    out.push_back(push_register(*info, piece.reg_offset, size, is_signed));
    return true;
}

namespace {

/// The register has all of them; a long double's last bytes are padding.
bool holds(const arch::RegisterInfo &info, std::uint64_t offset, std::uint64_t bytes) {
    constexpr std::uint64_t long_double = 16, without_padding = 10;
    const std::uint64_t width = info.width == without_padding ? long_double : info.width;
    return bytes != 0 && offset + bytes <= width + arch::Host::upper_part(info.dwarf).width;
}

/// Puts `bytes` of a register from `offset` on at `at` of the object on top of the stack.
void lower_register(const arch::RegisterInfo &info, std::uint64_t offset, std::uint64_t bytes, std::uint64_t at,
                    Instrs &out) {
    const std::uint64_t low = offset < info.width ? std::min<std::uint64_t>(bytes, info.width - offset) : 0;
    if (low != 0)
        out.push_back({.op = Opcode::object_register,
                       .size = static_cast<std::uint8_t>(low),
                       .is_float = info.file == arch::RegisterInfo::File::floating,
                       .index = static_cast<std::uint32_t>(at),
                       .imm = static_cast<std::int64_t>(info.offset + offset)});
    const arch::UpperPart upper = arch::Host::upper_part(info.dwarf);
    if (low == bytes || upper.width == 0) return;
    out.push_back({.op = Opcode::object_upper,
                   .size = static_cast<std::uint8_t>(bytes - low),
                   .index = static_cast<std::uint32_t>(at + low),
                   .imm = static_cast<std::int64_t>(upper.offset + offset + low - info.width)});
}

/// Puts one piece of `size` bytes at `offset` of the object on top of the stack.
void lower_piece(const Piece &piece, std::uint64_t offset, std::uint64_t size, Code &code, Instrs &out) {
    auto at = static_cast<std::uint32_t>(offset);
    auto count = static_cast<std::int64_t>(size);
    switch (piece.kind) {
    case Piece::Kind::memory:
        lower_ops(piece, out);
        out.push_back({.op = Opcode::object_read, .index = at, .imm = count});
        return;
    case Piece::Kind::value:
        lower_ops(piece, out);
        out.push_back({.op = Opcode::object_put,
                       .size = static_cast<std::uint8_t>(std::min<std::uint64_t>(size, 8)),
                       .index = at});
        return;
    case Piece::Kind::bytes:
        code.constants.emplace_back(reinterpret_cast<const char *>(piece.bytes.data()),
                                    std::min<std::size_t>(piece.bytes.size(), size));
        out.push_back(
            {.op = Opcode::object_const, .index = at, .imm = static_cast<std::int64_t>(code.constants.size() - 1)});
        return;
    case Piece::Kind::register_:
        if (const arch::RegisterInfo *info = register_by_dwarf(piece.reg);
            info && holds(*info, piece.reg_offset, size)) {
            lower_register(*info, piece.reg_offset, size, offset, out);
            return;
        }
        break;
    case Piece::Kind::unavailable:
    case Piece::Kind::not_known: break;
    }
    out.push_back(piece.kind == Piece::Kind::unavailable ? simple(Opcode::push_unavailable) : not_known());
    out.push_back({.op = Opcode::object_put, .size = 1, .index = at});
}

} // namespace

void lower_object(const Place &place, std::uint64_t size, Code &code, Instrs &out) {
    if (place.pieces.empty()) {
        out.push_back(simple(Opcode::push_unavailable));
        return;
    }
    size = std::min<std::uint64_t>(size, max_value);
    out.push_back({.op = Opcode::object_new, .imm = static_cast<std::int64_t>(size)});
    std::uint64_t offset = 0;
    for (const Piece &piece : place.pieces) {
        if (offset >= size) break;
        std::uint64_t bytes = piece.size == 0 ? size - offset : std::min<std::uint64_t>(piece.size, size - offset);
        lower_piece(piece, offset, bytes, code, out);
        offset += bytes;
    }
}

namespace {

/// The number that is added to the first value, where nothing else is done with it.
std::optional<std::int64_t> sum_behind(const std::vector<value::Op> &ops) {
    using Code = value::Op::Code;
    std::int64_t sum = 0;
    for (std::size_t i = 1; i < ops.size(); i += 2) {
        if (ops[i].code != Code::push || i + 1 == ops.size()) return std::nullopt;
        if (ops[i + 1].code != Code::plus && ops[i + 1].code != Code::minus) return std::nullopt;
        sum += ops[i + 1].code == Code::plus ? ops[i].operand : -ops[i].operand;
    }
    return sum;
}

} // namespace

std::optional<Destination> destination_of(const value::Place &place, const value::Type &type) {
    if (place.pieces.size() != 1 || !types::is_scalar(type) || type.size == 0 || type.size > 8) return std::nullopt;
    const value::Piece &piece = place.pieces[0];
    Destination to;
    to.size = static_cast<std::uint8_t>(type.size);
    to.single = types::is_floating(type) && type.size == 4;
    if (piece.kind == value::Piece::Kind::register_ && piece.reg_offset == 0) {
        const arch::RegisterInfo *info = register_by_dwarf(piece.reg);
        if (!info) return std::nullopt;
        bool is_general = info->file == arch::RegisterInfo::File::general;
        to.kind = is_general ? Destination::Kind::general : Destination::Kind::floating;
        to.offset = info->offset;
        if (is_general && !types::is_floating(type))
            to.size = 8; // as wide as the register: calls may look at all of it
        return to;
    }
    if (piece.kind != value::Piece::Kind::memory || piece.ops.empty()) return std::nullopt;
    const value::Op &base = piece.ops[0];
    auto displacement = sum_behind(piece.ops);
    const arch::RegisterInfo *info = register_by_dwarf(base.reg);
    bool at_register = base.code == value::Op::Code::push_register && displacement && info &&
                       info->file == arch::RegisterInfo::File::general;
    if (!at_register) return std::nullopt;
    to.kind = Destination::Kind::memory;
    to.offset = info->offset;
    to.displacement = base.operand + *displacement;
    return to;
}

} // namespace ktrace::program
