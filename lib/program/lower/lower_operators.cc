// Lowering of C's operators, with C's conversions (C11 6.3.1, 6.5), and of comparisons of texts.
#include "program/lower/lower.h"

#include <algorithm>

#include "program/lower/types.h"

namespace ktrace::program {

using Kind = Expr::Kind;

Operand Lowering::unary(const Expr &e) {
    if (e.op == Expr::Op::deref) return deref(e);
    if (e.op == Expr::Op::address_of) return address_of(e);
    const Expr &inner = tree_.at(e.a);
    Operand operand = lower(e.a);
    if (e.op == Expr::Op::logical_not) {
        truth(inner, operand);
        put(Opcode::logical_not);
        return {.type = &types::int32, .computed = true};
    }
    const Type &type = rvalue(inner, operand);
    bool is_float = types::is_floating(type);
    if (!is_float && !types::is_integer(type)) misfit(e, "this operator takes a number, not " + type.name);
    if (is_float && e.op == Expr::Op::bit_not) misfit(e, "~ takes an integer, not " + type.name);
    const Type &result = is_float ? type : types::promoted(type);
    convert(type, result);
    if (e.op == Expr::Op::minus) put(is_float ? Opcode::fneg : Opcode::neg);
    if (e.op == Expr::Op::bit_not) put(Opcode::bit_not);
    if (!is_float && result.size < 8) put({.op = Opcode::narrow, .size = 4, .is_signed = types::is_signed(result)});
    return {.type = &result, .computed = true};
}

namespace {

bool is_comparison(Expr::Op op) { return op >= Expr::Op::lt && op <= Expr::Op::ne; }

/// An EXPR that is a text by itself, or may be made one: what makes a comparison one of texts.
bool is_text_literal(const Expr &e) {
    return e.kind == Kind::text || e.kind == Kind::func || e.kind == Kind::comm || e.kind == Kind::str;
}

} // namespace

Operand Lowering::binary(const Expr &e) {
    if (e.op == Expr::Op::logical_and || e.op == Expr::Op::logical_or) return logical(e);
    const Expr &left_expr = tree_.at(e.a), &right_expr = tree_.at(e.b);
    if (is_comparison(e.op) && (is_text_literal(left_expr) || is_text_literal(right_expr))) {
        Operand result;
        return captured_comparison(e, result) ? result : compare_text(e);
    }
    std::size_t start = out_.size();
    Operand left, right;
    if (left_expr.kind == Kind::name) { // an enumerator is looked for in the other side's type first
        right = lower(e.b);
        const Type *expected = right.type;
        rvalue(right_expr, right);
        Instrs behind = aside(start);
        left = name(left_expr, expected);
        rvalue(left_expr, left);
        out_.insert(out_.end(), behind.begin(), behind.end());
    } else {
        left = lower(e.a);
        const Type *expected = left.type;
        rvalue(left_expr, left);
        right = right_expr.kind == Kind::name ? name(right_expr, expected) : lower(e.b);
        rvalue(right_expr, right);
    }
    const Type &l = *left.type, &r = *right.type;
    if (!types::is_scalar(l)) misfit(left_expr, "`" + text_of(left_expr) + "` is " + l.name + ", not a number");
    if (!types::is_scalar(r)) misfit(right_expr, "`" + text_of(right_expr) + "` is " + r.name + ", not a number");
    if (is_comparison(e.op)) return compare(e, l, r);
    if (types::is_pointer(l) || types::is_pointer(r)) return pointer_arithmetic(e, l, r);
    if (e.op == Expr::Op::shl || e.op == Expr::Op::shr) return shift(e, l);
    return arithmetic(e, l, r);
}

Operand Lowering::logical(const Expr &e) {
    Operand left = lower(e.a);
    truth(tree_.at(e.a), left);
    std::size_t over = jump(e.op == Expr::Op::logical_and ? Opcode::and_else : Opcode::or_else);
    Operand right = lower(e.b);
    truth(tree_.at(e.b), right);
    land(over);
    return {.type = &types::int32, .computed = true};
}

/// Both operands are on the stack, the second on top: converts both.
void Lowering::second_to_common(const Type &left, const Type &right, const Type &to) {
    convert(right, to);
    std::size_t before = out_.size();
    convert(left, to);
    if (out_.size() == before) return;
    Instrs conversion = aside(before);
    put(Opcode::swap);
    out_.insert(out_.end(), conversion.begin(), conversion.end());
    put(Opcode::swap);
}

Operand Lowering::arithmetic(const Expr &e, const Type &left, const Type &right) {
    const Type &type = types::common(left, right);
    bool is_float = types::is_floating(type), is_signed = types::is_signed(type);
    second_to_common(left, right, type);
    switch (e.op) {
    case Expr::Op::add: put(is_float ? Opcode::fadd : Opcode::add); break;
    case Expr::Op::sub: put(is_float ? Opcode::fsub : Opcode::sub); break;
    case Expr::Op::mul: put(is_float ? Opcode::fmul : Opcode::mul); break;
    case Expr::Op::div: put(is_float ? Opcode::fdiv : is_signed ? Opcode::div_s : Opcode::div_u); break;
    default:
        if (is_float) misfit(e, "this operator takes integers, not " + (types::is_floating(left) ? left : right).name);
        if (e.op == Expr::Op::mod) put(is_signed ? Opcode::mod_s : Opcode::mod_u);
        if (e.op == Expr::Op::bit_and) put(Opcode::bit_and);
        if (e.op == Expr::Op::bit_or) put(Opcode::bit_or);
        if (e.op == Expr::Op::bit_xor) put(Opcode::bit_xor);
        break;
    }
    if (is_float && type.size == 4) put(Opcode::round_float);
    if (!is_float && type.size < 8) put({.op = Opcode::narrow, .size = 4, .is_signed = is_signed});
    return {.type = &type, .computed = true};
}

Operand Lowering::shift(const Expr &e, const Type &left) {
    const Type &type = types::promoted(left);
    if (!types::is_integer(type)) misfit(e, "this operator takes integers, not " + left.name);
    bool is_signed = types::is_signed(type);
    put(e.op == Expr::Op::shl ? Opcode::shl : is_signed ? Opcode::shr_s : Opcode::shr_u);
    if (type.size < 8) put({.op = Opcode::narrow, .size = 4, .is_signed = is_signed});
    return {.type = &type, .computed = true};
}

Operand Lowering::compare(const Expr &e, const Type &left, const Type &right) {
    bool pointers = types::is_pointer(left) || types::is_pointer(right);
    const Type &type = pointers ? types::uint64 : types::common(left, right);
    if (pointers && (types::is_floating(left) || types::is_floating(right)))
        misfit(e, "a pointer is not compared with " + (types::is_floating(left) ? left : right).name);
    second_to_common(left, right, type);
    bool is_float = types::is_floating(type), is_signed = types::is_signed(type);
    if (e.op == Expr::Op::gt || e.op == Expr::Op::ge) put(Opcode::swap);
    if (e.op == Expr::Op::eq) put(is_float ? Opcode::feq : Opcode::eq);
    if (e.op == Expr::Op::ne) put(is_float ? Opcode::fne : Opcode::ne);
    if (e.op == Expr::Op::lt || e.op == Expr::Op::gt)
        put(is_float ? Opcode::flt : is_signed ? Opcode::lt_s : Opcode::lt_u);
    if (e.op == Expr::Op::le || e.op == Expr::Op::ge)
        put(is_float ? Opcode::fle : is_signed ? Opcode::le_s : Opcode::le_u);
    return {.type = &types::int32, .computed = true};
}

Operand Lowering::compare_text(const Expr &e) {
    const Expr *sides[2] = {&tree_.at(e.a), &tree_.at(e.b)};
    std::uint64_t length = default_str; // enough to distinguish them
    for (const Expr *side : sides)
        if (side->kind == Kind::text) length = std::clamp<std::uint64_t>(side->text.size() + 1, length, max_str);
    for (const Expr *side : sides) {
        Operand operand = lower(side == sides[0] ? e.a : e.b);
        bool integer = types::is_scalar(*operand.type) && !types::is_pointer(*operand.type);
        if (operand.type == &types::text) continue;
        if (!text_value(*side, operand, length))
            misfit(*side, "`" + text_of(*side) + "` is " + operand.type->name + ", not a string",
                   integer ? "" : "str(P) reads the string at a pointer");
    }
    if (e.op == Expr::Op::gt || e.op == Expr::Op::ge) put(Opcode::swap);
    if (e.op == Expr::Op::eq) put(Opcode::text_eq);
    if (e.op == Expr::Op::ne) put(Opcode::text_ne);
    if (e.op == Expr::Op::lt || e.op == Expr::Op::gt) put(Opcode::text_lt);
    if (e.op == Expr::Op::le || e.op == Expr::Op::ge) put(Opcode::text_le);
    return {.type = &types::int32, .computed = true};
}

/// At a return, an argument is compared with a text as it was at entry: decided there, its answer is kept.
bool Lowering::captured_comparison(const Expr &e, Operand &result) {
    auto is_argument = [&](const Expr &side) {
        return side.kind == Kind::arg || side.kind == Kind::integer_arg ||
               (side.kind == Kind::name && capture_->entry.argument(side.text).has_value());
    };
    if (!capture_) return false;
    const Expr &left = tree_.at(e.a), &right = tree_.at(e.b);
    bool kept = (is_argument(left) && right.kind == Kind::text) || (left.kind == Kind::text && is_argument(right));
    if (!kept) return false;
    Instrs code;
    Lowering entry(code_, capture_->entry, tree_, code, nullptr);
    entry.compare_text(e);
    auto at = static_cast<std::uint32_t>(capture_->next);
    capture_->next += saved_slot_size;
    code.push_back({.op = Opcode::save_slot, .index = at});
    capture_->body.push_back(std::move(code));
    put({.op = Opcode::push_captured, .index = at});
    result = {.type = &types::int32, .computed = true};
    return true;
}

/// Bytes from one element to the next. A row of an array whose size is a variable's has no size.
std::int64_t Lowering::step_of(const Expr &e, const Type *element) {
    if (element && element->size == 0 && element->kind == Type::Kind::array)
        misfit(e, "the size of what `" + text_of(e) + "` points to (" + element->name + ") is not known");
    return static_cast<std::int64_t>(std::max<std::uint64_t>(element ? element->size : 1, 1));
}

Operand Lowering::pointer_arithmetic(const Expr &e, const Type &left, const Type &right) {
    auto step = [&](const Type &pointer) { return step_of(e, pointer.target); };
    bool both = types::is_pointer(left) && types::is_pointer(right);
    if (both && e.op == Expr::Op::sub) {
        put(Opcode::sub);
        put({.op = Opcode::push, .imm = step(left)});
        put(Opcode::div_s);
        return {.type = &types::int64, .computed = true};
    }
    const Type &number = types::is_pointer(left) ? right : left, &pointer = types::is_pointer(left) ? left : right;
    bool adds = e.op == Expr::Op::add || (e.op == Expr::Op::sub && &pointer == &left);
    if (!types::is_integer(number) || !adds) {
        bool masks = e.op == Expr::Op::bit_and && types::is_integer(number); // an address' low bits
        if (!masks) misfit(e, "this operator does not take " + left.name + " and " + right.name);
        put(Opcode::bit_and);
        return {.type = &types::uint64, .computed = true};
    }
    if (&pointer == &right) put(Opcode::swap);
    put({.op = Opcode::push, .imm = step(pointer)});
    put(Opcode::mul);
    put(e.op == Expr::Op::add ? Opcode::add : Opcode::sub);
    return {.type = &pointer, .computed = true};
}

Operand Lowering::conditional(const Expr &e) {
    Operand condition = lower(e.a);
    const Type &tested = rvalue(tree_.at(e.a), condition);
    if (!types::is_scalar(tested)) misfit(tree_.at(e.a), "this is neither true nor false");
    std::size_t bad = jump(Opcode::jump_bad); // its fault is the answer
    if (types::is_floating(tested)) put(Opcode::ftruth);
    std::size_t otherwise = jump(Opcode::jump_false);
    std::size_t start = out_.size();
    Operand yes = lower(e.b);
    const Type &yes_type = rvalue(tree_.at(e.b), yes);
    Instrs first = aside(start);
    Operand no = lower(e.c);
    const Type &no_type = rvalue(tree_.at(e.c), no);
    Instrs second = aside(start);
    bool numbers = types::is_scalar(yes_type) && types::is_scalar(no_type);
    bool pointers = types::is_pointer(yes_type) || types::is_pointer(no_type);
    if (!numbers && &yes_type != &no_type)
        misfit(e, "one of these is " + yes_type.name + ", the other " + no_type.name);
    const Type &type = !numbers                ? yes_type
                       : pointers              ? (types::is_pointer(yes_type) ? yes_type : no_type)
                       : &yes_type == &no_type ? yes_type
                                               : types::common(yes_type, no_type);
    out_.insert(out_.end(), first.begin(), first.end());
    if (numbers && !pointers) convert(yes_type, type);
    std::size_t end = jump(Opcode::jump);
    land(otherwise);
    out_.insert(out_.end(), second.begin(), second.end());
    if (numbers && !pointers) convert(no_type, type);
    land(end);
    land(bad);
    return {.type = &type, .computed = &yes_type != &no_type};
}

/// nullptr: there is none of that name.
const value::Type *Lowering::type_named(const TypeName &name) {
    const Type *type = types::named(name.name);
    if (!type) type = scope_.type_named(name.name);
    for (int i = 0; type && i < name.stars; ++i) type = &pointer_to(*type);
    return type;
}

/// The operand of sizeof; nothing of it is evaluated. A bare name is a variable's before it is a type's.
const value::Type *Lowering::size_of_what(const Expr &e) {
    if (e.a < 0) return type_named(e.type);
    const Expr &inner = tree_.at(e.a);
    std::size_t from = out_.size();
    try {
        Operand operand = lower(e.a);
        aside(from);
        if (operand.bit_size != 0) misfit(inner, "a bit field has no size in bytes");
        return operand.type;
    } catch (const Misfit &) {
        aside(from);
        const Type *type = inner.kind == Expr::Kind::name ? type_named({inner.text, 0}) : nullptr;
        if (!type) throw;
        return type;
    }
}

Operand Lowering::size_of(const Expr &e) {
    const Type *type = size_of_what(e);
    if (!type) misfit(e, "there is no type `" + e.type.name + "` here");
    type = scope_.complete(type);
    if (type->incomplete || type->size == 0) misfit(e, "the size of " + type->name + " is not known");
    return constant(type->size, types::uint64);
}

namespace {

/// Where a base class lies in a class, added to `found`, once for each time that it is there. Those of virtual bases
/// are found in the object, and not here.
void find_base(const value::Type &derived, const value::Type &base, std::uint64_t offset, int depth,
               std::vector<std::uint64_t> &found) {
    constexpr int deepest_base = 16;
    constexpr std::size_t enough = 2; // it is ambiguous
    for (const value::Member &each : derived.members) {
        if (!each.is_base || !each.type || depth > deepest_base || found.size() >= enough) continue;
        if (each.type->name == base.name)
            found.push_back(offset + each.offset);
        else
            find_base(*each.type, base, offset + each.offset, depth + 1, found);
    }
}

std::int64_t distance(const value::Type &from, const value::Type &to) {
    std::vector<std::uint64_t> up, down;
    find_base(from, to, 0, 0, up);
    find_base(to, from, 0, 0, down);
    if (up.size() == 1) return static_cast<std::int64_t>(up.front());
    return down.size() == 1 ? -static_cast<std::int64_t>(down.front()) : 0;
}

/// The virtual base of a class that is `base`, or has it as a base of its own.
struct WayUp {
    std::uint64_t before = 0, behind = 0; // offsets: of the part that has the virtual base, and in that
    std::int64_t at = 0;
};

std::optional<WayUp> by_virtual_base(const value::Type &derived, const value::Type &base, int depth) {
    for (const value::VirtualBase &each : derived.virtual_bases) {
        std::vector<std::uint64_t> found;
        if (each.type->name == base.name) return WayUp{0, 0, each.at};
        find_base(*each.type, base, 0, 0, found);
        if (found.size() == 1) return WayUp{0, found.front(), each.at};
    }
    for (const value::Member &each : derived.members) {
        if (!each.is_base || !each.type || depth == 0) continue;
        auto way = by_virtual_base(*each.type, base, depth - 1);
        if (way) return WayUp{way->before + each.offset, way->behind, way->at};
    }
    return std::nullopt;
}

} // namespace

/// A pointer to a class that is cast to one to its base, or the other way round, moves; a null pointer stays.
void Lowering::move_between_bases(const Type &from, const Type &to) {
    if (!types::is_pointer(from) || !types::is_pointer(to) || !from.target || !to.target) return;
    if (!types::is_record(*from.target) || !types::is_record(*to.target)) return;
    const Type &derived = *scope_.complete(from.target), &base = *scope_.complete(to.target);
    const std::int64_t by = distance(derived, base);
    const auto way = by == 0 ? by_virtual_base(derived, base, 16) : std::nullopt;
    if (by == 0 && !way) return;
    put(Opcode::dup);
    const std::size_t stays = jump(Opcode::jump_false);
    put({.op = Opcode::add_imm, .imm = way ? static_cast<std::int64_t>(way->before) : by});
    if (way) to_virtual_base(way->at);
    if (way) put({.op = Opcode::add_imm, .imm = static_cast<std::int64_t>(way->behind)});
    land(stays);
}

Operand Lowering::cast(const Expr &e) {
    const Type *target = type_named(e.type);
    if (!target) misfit(e, "there is no type `" + e.type.name + "` here");
    const Expr &inner = tree_.at(e.a);
    Operand operand = uninterpreted(e.a);
    const Type &from = rvalue(inner, operand);
    if (!types::is_scalar(from)) misfit(inner, "`" + text_of(inner) + "` is " + from.name + ": it cannot be cast");
    if (!types::is_scalar(*target)) misfit(e, "a cast makes a number or a pointer, not " + target->name);
    if (types::is_pointer(*target) && types::is_floating(from)) misfit(e, "a pointer is not made of " + from.name);
    if (!types::is_pointer(*target)) convert(types::is_pointer(from) ? types::uint64 : from, *target);
    move_between_bases(from, *target);
    return {.type = target};
}

} // namespace ktrace::program
