// Lowering of loads and conversions, and of how values are shown.
#include "program/lower/lower.h"

#include <algorithm>

#include "program/contents/contents.h"
#include "program/lower/lower_place.h"
#include "program/lower/types.h"

namespace ktrace::program {

using Where = Operand::Where;

namespace {

std::uint8_t byte_size(const value::Type &type) {
    return static_cast<std::uint8_t>(std::min<std::uint64_t>(type.size, 16));
}

} // namespace

void Lowering::settle_address(Operand &operand) {
    if (operand.offset != 0) put({.op = Opcode::add_imm, .imm = static_cast<std::int64_t>(operand.offset)});
    operand.offset = 0;
}

/// Leaves the object itself: the whole of what holds the operand, or the operand where it is in memory.
void Lowering::object_of(const Operand &operand) {
    auto size = static_cast<std::int64_t>(std::min<std::uint64_t>(operand.type->size, max_value));
    if (operand.where == Where::memory) {
        Operand settled = operand;
        settle_address(settled);
        put({.op = Opcode::fetch, .imm = size});
        return;
    }
    if (operand.where == Where::captured)
        put({.op = Opcode::object_captured,
             .index = operand.saved,
             .imm = static_cast<std::int64_t>(operand.place_size)});
    else
        lower_object(operand.place, operand.place_size, code_, out_);
    if (operand.offset != 0 || operand.type->size < operand.place_size)
        put({.op = Opcode::object_part, .index = static_cast<std::uint32_t>(operand.offset), .imm = size});
}

void Lowering::load_bit_field(Operand &operand) {
    std::uint64_t byte = operand.bit_offset / 8, bit = operand.bit_offset % 8;
    auto size = static_cast<std::uint8_t>(std::min<std::uint64_t>((bit + operand.bit_size + 7) / 8, 8));
    operand.offset += byte;
    if (bit + operand.bit_size > 64) { // of a packed structure, in nine bytes
        put(Opcode::push_unavailable);
        return;
    }
    if (operand.where == Where::memory) {
        settle_address(operand);
        put({.op = Opcode::load, .size = size});
    } else {
        std::uint64_t at = operand.offset;
        operand.offset = 0;
        Operand whole = operand;
        Type bytes;
        bytes.size = operand.place_size;
        whole.type = &bytes;
        object_of(whole);
        put({.op = Opcode::object_load, .size = size, .index = static_cast<std::uint32_t>(at)});
    }
    put({.op = Opcode::extract,
         .is_signed = types::is_signed(*operand.type),
         .index = static_cast<std::uint32_t>(bit),
         .imm = operand.bit_size});
}

/// Leaves the value of a scalar operand; the operand becomes one of Where::value.
void Lowering::load(Operand &operand) {
    if (operand.where == Where::value) return;
    const Type &type = *operand.type;
    bool is_float = types::is_floating(type), is_signed = types::is_signed(type);
    if (operand.bit_size != 0) {
        load_bit_field(operand);
    } else if (operand.where == Where::memory) {
        settle_address(operand);
        put({.op = is_float ? Opcode::load_float : Opcode::load, .size = byte_size(type), .is_signed = is_signed});
    } else {
        bool as_integer = !is_float || type.size == 8;
        bool whole = operand.where == Where::place && operand.offset == 0 && operand.place_size == type.size;
        if (!(whole && as_integer && lower_scalar(operand.place, byte_size(type), is_signed, out_))) {
            object_of(operand);
            put({.op = is_float ? Opcode::object_float : Opcode::object_load,
                 .size = byte_size(type),
                 .is_signed = is_signed});
        }
    }
    operand.where = Where::value;
    operand.place = {};
    operand.offset = 0;
    operand.bit_size = operand.bit_offset = 0;
}

/// The object that a C++ reference refers to.
Operand Lowering::through_reference(Operand operand) {
    if (operand.type->kind != Type::Kind::reference || !operand.type->target) return operand;
    const Type *target = operand.type->target;
    if (target->incomplete) target = scope_.complete(target);
    operand.type = &types::uint64;
    operand.place_size = operand.where == Where::place && operand.offset == 0 ? 8 : operand.place_size;
    load(operand);
    return {.where = Where::memory, .type = target};
}

const value::Type &Lowering::rvalue(const Expr &e, Operand &operand) {
    const Type &type = *operand.type;
    if (type.kind == Type::Kind::array && type.target && operand.where == Where::memory) {
        settle_address(operand);
        operand = {.type = &pointer_to(*type.target)};
        return *operand.type;
    }
    for (const Type *shown : {&types::text, &types::buffer, &types::stack, &types::caller, &types::symbol})
        if (&type == shown) return type;
    if (!types::is_scalar(type)) {
        if (type.kind == Type::Kind::void_) misfit(e, "`" + text_of(e) + "` has no value: it is void");
        misfit(e, "`" + text_of(e) + "` is " + type.name + ": that is no number and no pointer",
               types::is_record(type) ? "choose a member of it" : "");
    }
    load(operand);
    return type;
}

bool Lowering::text_value(const Expr &e, Operand &operand, std::uint64_t length) {
    const Type &type = *operand.type;
    if (&type == &types::text) return true;
    bool of_chars = type.target && (types::is_char(*type.target) || type.target->size == 1);
    if (type.kind == Type::Kind::array && of_chars) {
        std::uint64_t size = type.size == 0 ? length : std::min(type.size, length);
        if (operand.where == Where::memory) {
            settle_address(operand);
            put({.op = Opcode::array_text, .imm = static_cast<std::int64_t>(size)});
        } else {
            object_of(operand);
            put({.op = Opcode::object_text, .imm = static_cast<std::int64_t>(size)});
        }
    } else if (types::is_pointer(type) && type.target && types::is_char(*type.target)) {
        rvalue(e, operand);
        put({.op = Opcode::str_imm, .imm = static_cast<std::int64_t>(length)});
    } else if (contents::is_text(type)) {
        address_of_object(operand);
        contents::load_text(type, length, out_);
    } else {
        return false;
    }
    operand = {.type = &types::text};
    return true;
}

/// The number on the stack, as C converts it.
void Lowering::convert(const Type &from, const Type &to) {
    if (&from == &to) return;
    bool from_float = types::is_floating(from), to_float = types::is_floating(to);
    if (to.kind == Type::Kind::bool_) {
        put(from_float ? Opcode::ftruth : Opcode::truth);
    } else if (to_float) {
        if (!from_float) put(types::is_signed(from) ? Opcode::from_signed : Opcode::from_unsigned);
        if (to.size == 4 && !(from_float && from.size == 4)) put(Opcode::round_float);
    } else if (from_float) {
        put({.op = Opcode::to_integer, .size = byte_size(to), .is_signed = types::is_signed(to)});
    } else if (to.size < 8 && (to.size < from.size || types::is_signed(from) != types::is_signed(to))) {
        put({.op = Opcode::narrow, .size = byte_size(to), .is_signed = types::is_signed(to)});
    }
}

void Lowering::truth(const Expr &e, Operand &operand) {
    const Type &type = rvalue(e, operand);
    if (!types::is_scalar(type)) misfit(e, "`" + text_of(e) + "` is " + type.name + ": that is neither true nor false");
    put(types::is_floating(type) ? Opcode::ftruth : Opcode::truth);
    operand = {.type = &types::int32, .computed = true};
}

std::size_t Lowering::show_pointer(const Operand &operand, Style style, bool follow) {
    const Type &type = *operand.type;
    bool typed = in_table(type);
    if (type.target && types::is_char(*type.target) && !operand.untyped) {
        put({.op = Opcode::emit_pointer, .is_signed = typed, .index = type.index, .imm = default_str});
        return default_str;
    }
    const Type *target = type.target;
    if (typed && target && types::is_wide_char(*target) && in_table(*target) && !operand.untyped) {
        put({.op = Opcode::emit_wide,
             .size = byte_size(*target),
             .index = type.index,
             .reg = target->index,
             .imm = static_cast<std::int64_t>(default_str * target->size)});
        return default_str * target->size;
    }
    if (follow && typed && target && types::is_record(*target) && !operand.untyped) {
        if (target->incomplete) target = scope_.complete(target);
        if (!target->incomplete && target->size != 0 && in_table(*target)) {
            std::uint64_t size = std::min<std::uint64_t>(target->size, max_value);
            put({.op = Opcode::emit_pointee,
                 .index = type.index,
                 .reg = target->index,
                 .imm = static_cast<std::int64_t>(size)});
            return size;
        }
    }
    bool raw = typed && style == Style::print && !operand.untyped && !operand.computed;
    put({.op = raw ? Opcode::emit_raw : Opcode::emit_hex, .index = type.index});
    return 8;
}

std::size_t Lowering::show_scalar(const Operand &operand, Style style, bool follow) {
    const Type &type = *operand.type;
    if (types::is_pointer(type)) return show_pointer(operand, style, follow);
    bool is_float = types::is_floating(type);
    bool has_names = type.kind == Type::Kind::enumeration || type.kind == Type::Kind::char_;
    bool typed = in_table(type) && !operand.computed && type.size <= 8;
    if (typed && (style == Style::print || has_names))
        put({.op = Opcode::emit_raw, .size = byte_size(type), .is_float = is_float, .index = type.index});
    else if (is_float)
        put(Opcode::emit_floating);
    else if (type.kind == Type::Kind::bool_)
        put(Opcode::emit_boolean);
    else
        put(types::is_signed(type) ? Opcode::emit_sint : Opcode::emit_uint);
    return 8;
}

std::size_t Lowering::show_object(Operand operand) {
    const Type &type = *operand.type;
    std::uint64_t size = std::min<std::uint64_t>(type.size, max_value);
    if (operand.where == Where::memory) {
        settle_address(operand);
        put({.op = Opcode::emit_memory, .index = type.index, .imm = static_cast<std::int64_t>(size)});
    } else {
        object_of(operand);
        put({.op = Opcode::emit_object, .index = type.index});
    }
    return size;
}

std::size_t Lowering::show(const Expr &e, Operand operand, Style style, bool follow) {
    const Type &type = *operand.type;
    if (&type == &types::text) {
        put(Opcode::emit_text);
        return max_str;
    }
    if (&type == &types::buffer) {
        put(Opcode::emit_buffer);
        return max_value;
    }
    if (&type == &types::stack) {
        const std::uint64_t frames = e.kind == Expr::Kind::stack && e.number != 0 ? e.number : max_frames;
        put({.op = Opcode::emit_stack, .imm = static_cast<std::int64_t>(frames)});
        return frames * 8;
    }
    if (&type == &types::caller || &type == &types::symbol) {
        put(&type == &types::caller ? Opcode::emit_caller : Opcode::emit_symbol);
        return 8;
    }
    // In a key it is a double: equal ones may differ in the bytes that pad them.
    bool wide = type.kind == Type::Kind::floating && type.size > 8 && style != Style::key;
    if (wide && in_table(type) && operand.where != Where::value) return show_object(std::move(operand));
    if (types::is_scalar(type)) {
        load(operand);
        return show_scalar(operand, style, follow);
    }
    bool as_text = contents::is_text(type) || (style == Style::key && type.kind == Type::Kind::array);
    std::uint64_t most = type.kind == Type::Kind::array ? max_str : default_str;
    if (as_text && text_value(e, operand, most)) {
        put(Opcode::emit_text);
        return most;
    }
    if (show_contents(operand)) return max_value;
    if (type.kind == Type::Kind::void_ || type.kind == Type::Kind::function)
        misfit(e, "`" + text_of(e) + "` has no value: it is " + type.name);
    // The object that a reference refers to, as far as the debug information says where it is.
    if (type.incomplete && follow && operand.where == Where::memory) {
        settle_address(operand);
        put(Opcode::emit_hex);
        return 8;
    }
    if (!type.incomplete && type.size != 0 && !in_table(type))
        misfit(e, "`" + text_of(e) + "` is " + type.name + " of another module: it cannot be shown as a whole",
               "show its members");
    if (type.incomplete || type.size == 0)
        misfit(e, "the size of `" + text_of(e) + "` (" + type.name + ") is not known");
    return show_object(std::move(operand));
}

Result<std::size_t> Lowering::shown(Style style) {
    const Expr &root = tree_.at(tree_.root);
    try {
        Operand operand = uninterpreted(tree_.root);
        bool reg_call = root.kind == Expr::Kind::reg;
        if (reg_call) {
            put(Opcode::emit_hex);
            return std::size_t{8};
        }
        return show(root, std::move(operand), style, false);
    } catch (const Misfit &misfit) {
        return fail(misfit.error);
    }
}

Status Lowering::condition() {
    try {
        Operand operand = lower(tree_.root);
        truth(tree_.at(tree_.root), operand);
        return {};
    } catch (const Misfit &misfit) {
        return fail(misfit.error);
    }
}

Result<const value::Type *> Lowering::number() {
    const Expr &root = tree_.at(tree_.root);
    try {
        Operand operand = lower(tree_.root);
        const Type &type = rvalue(root, operand);
        if (!types::is_scalar(type)) misfit(root, "`" + text_of(root) + "` is " + type.name + ", not a number");
        return &type;
    } catch (const Misfit &misfit) {
        return fail(misfit.error);
    }
}

Status Lowering::injected(const Type &to, std::uint32_t destination, bool emit) {
    auto from = number();
    if (!from) return fail(from.error());
    convert(**from, to);
    put({.op = Opcode::inject, .index = destination});
    if (emit) show_scalar({.type = &to}, Style::print, false);
    return {};
}

std::size_t Lowering::show_binding(const Binding &binding, bool hex, Code &code, Scope &scope, Instrs &out) {
    Tree none;
    Expr nowhere;
    std::size_t start = out.size();
    Lowering lowering(code, scope, none, out, nullptr);
    try {
        if (binding.place.pieces.empty()) throw Misfit{};
        Operand operand = lowering.bound(nowhere, binding, false);
        if (hex) {
            lowering.load(operand);
            out.push_back({.op = Opcode::emit_hex});
            return 8;
        }
        return lowering.show(nowhere, std::move(operand), Style::print, true);
    } catch (const Misfit &) {
        const bool is_somewhere = !binding.place.pieces.empty(); // of a type that is only declared
        out.resize(start);
        out.push_back({.op = Opcode::push_unavailable,
                       .imm = is_somewhere ? static_cast<std::int64_t>(unavailable_not_known) : 0});
        out.push_back({.op = Opcode::emit_hex});
        return 8;
    }
}

} // namespace ktrace::program
