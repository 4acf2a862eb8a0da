// Lowering of names, and of the operators that lead through objects: . -> [] * & str buf.
#include "program/lower/lower.h"

#include <algorithm>
#include <bit>

#include "base/errno_names.h"
#include "base/text.h"
#include "program/lower/lower_place.h"
#include "program/lower/types.h"

namespace ktrace::program {

using Kind = Expr::Kind;

void Lowering::misfit(const Expr &e, std::string message, std::string hint) const {
    throw Misfit{tree_.error(Error::Kind::refused, e.at, std::move(message), std::move(hint))};
}

std::string Lowering::text_of(const Expr &e) const {
    return tree_.source.substr(static_cast<std::size_t>(e.at.begin), static_cast<std::size_t>(e.at.end - e.at.begin));
}

std::vector<Instr> Lowering::aside(std::size_t from) {
    std::vector<Instr> taken(out_.begin() + static_cast<std::ptrdiff_t>(from), out_.end());
    out_.resize(from);
    return taken;
}

std::size_t Lowering::jump(Opcode op) {
    put(op);
    return out_.size() - 1;
}

void Lowering::land(std::size_t jump) {
    out_[jump].imm = static_cast<std::int64_t>(out_.size()) - static_cast<std::int64_t>(jump) - 1;
}

const value::Type &Lowering::pointer_to(const Type &target) {
    for (const Type &type : code_.derived)
        if (type.target == &target) return type;
    Type &type = code_.derived.emplace_back();
    type.kind = Type::Kind::pointer;
    type.size = 8;
    type.target = &target;
    type.name = target.name + " *";
    return type;
}

bool Lowering::in_table(const Type &type) {
    const value::TypeTable *table = scope_.types();
    return table && type.index < table->size() && &table->at(type.index) == &type;
}

Operand Lowering::lower(int node) {
    const Expr &e = tree_.at(node);
    switch (e.kind) {
    case Kind::integer:
        return constant(e.number, e.is_long ? (e.is_unsigned ? types::uint64 : types::int64)
                                            : (e.is_unsigned ? types::uint32 : types::int32));
    case Kind::floating:
        return constant(std::bit_cast<std::uint64_t>(e.real), e.is_single ? types::float32 : types::float64);
    case Kind::text:
    case Kind::func:
        code_.constants.push_back(e.kind == Kind::text ? e.text : scope_.function());
        put({.op = Opcode::push_text, .index = static_cast<std::uint32_t>(code_.constants.size() - 1)});
        return {.type = &types::text};
    case Kind::name: return name(e, nullptr);
    case Kind::integer_arg:
    case Kind::arg: return argument(e);
    case Kind::var: return bound(e, scope_.variable(e.text), false);
    case Kind::retval: return retval(e);
    case Kind::error_number: return bound(e, scope_.error_number(), false);
    case Kind::tid: put(Opcode::push_tid); return {.type = &types::int32};
    case Kind::pid: put(Opcode::push_pid); return {.type = &types::int32};
    case Kind::comm: put(Opcode::push_comm); return {.type = &types::text};
    case Kind::nsecs: put(Opcode::push_nsecs); return {.type = &types::uint64};
    case Kind::duration:
        if (!scope_.has_duration()) misfit(e, "only a return probe knows a duration", "place it with -r");
        put(Opcode::push_duration);
        return {.type = &types::uint64};
    case Kind::stack: return {.type = &types::stack};
    case Kind::caller: return {.type = &types::caller};
    case Kind::usym: return usym(e);
    case Kind::reg: return reg(e);
    case Kind::str: return str(e);
    case Kind::buf: return buf(e);
    case Kind::unary: return unary(e);
    case Kind::binary: return binary(e);
    case Kind::conditional: return conditional(e);
    case Kind::member: return member(e);
    case Kind::index: return index(e);
    case Kind::cast: return cast(e);
    case Kind::size_of: return size_of(e);
    }
    misfit(e, "this cannot be evaluated");
}

Operand Lowering::constant(std::uint64_t bits, const Type &type) {
    put({.op = Opcode::push, .imm = static_cast<std::int64_t>(bits)});
    return {.type = &type, .computed = true};
}

Operand Lowering::reg(const Expr &e) {
    std::string_view wanted = e.text;
    if (wanted.starts_with('%')) wanted.remove_prefix(1);
    for (const arch::RegisterInfo &info : arch::Host::registers())
        if (info.name == wanted || (!info.alias.empty() && info.alias == wanted)) {
            put({.op = Opcode::push_register,
                 .size = std::min<std::uint8_t>(info.width, 8),
                 .is_float = info.file == arch::RegisterInfo::File::floating,
                 .index = info.offset});
            return {.type = &types::int64, .untyped = true};
        }
    std::string names;
    for (const arch::RegisterInfo &info : arch::Host::registers())
        if (info.file == arch::RegisterInfo::File::general)
            names += (names.empty() ? "" : ", ") + std::string(info.name);
    misfit(e, "this machine has no register `" + e.text + "`", "its registers are " + names);
}

Operand Lowering::bound(const Expr &e, Result<Binding> binding, bool untyped) {
    if (!binding) misfit(e, binding.error().message, binding.error().hint);
    Operand operand;
    operand.type = binding->type ? binding->type : &types::int64;
    operand.untyped = untyped;
    operand.place_size = operand.type->size;
    if (binding->place.pieces.empty() && !binding->place.why.empty()) misfit(e, binding->place.why);
    if (is_in_memory(binding->place, operand.type->size)) {
        lower_ops(binding->place.pieces[0], out_);
        operand.where = Operand::Where::memory;
    } else {
        operand.where = Operand::Where::place;
        operand.place = std::move(binding->place);
    }
    return through_reference(std::move(operand));
}

/// One of no known type is taken for a number of 32 bits where it may be one that is negative: bit 31 is the highest.
Operand Lowering::retval(const Expr &e) {
    Result<Binding> binding = scope_.retval();
    const bool is_typed = !binding || binding->type;
    Operand operand = bound(e, std::move(binding), false);
    if (is_typed) return operand;
    load(operand);
    put(Opcode::dup);
    put({.op = Opcode::push, .imm = 31});
    put(Opcode::shr_u);
    put({.op = Opcode::push, .imm = 1});
    put(Opcode::eq);
    const std::size_t otherwise = jump(Opcode::jump_false);
    put({.op = Opcode::narrow, .size = 4, .is_signed = true});
    land(otherwise);
    return operand;
}

/// As it stands in its register where it is cast or shown.
Operand Lowering::uninterpreted(int node) {
    const Expr &e = tree_.at(node);
    return e.kind == Kind::retval ? bound(e, scope_.retval(), false) : lower(node);
}

Operand Lowering::argument(const Expr &e) {
    if (capture_) return captured(e);
    if (e.kind == Kind::integer_arg) return bound(e, scope_.integer_argument(static_cast<unsigned>(e.number)), true);
    return bound(e, scope_.argument(e.text), false);
}

Operand Lowering::captured(const Expr &e) {
    std::string key = e.kind == Kind::integer_arg ? "#" + std::to_string(e.number) : e.text;
    auto again = [&](const Operand &saved) {
        if (saved.where == Operand::Where::value) put({.op = Opcode::push_captured, .index = saved.saved});
        return through_reference(saved);
    };
    for (const auto &[known, saved] : capture_->known)
        if (known == key) return again(saved);
    Instrs code;
    Lowering entry(code_, capture_->entry, tree_, code, nullptr);
    Operand operand = entry.argument(e);
    Operand saved{.where = Operand::Where::value, .type = operand.type, .untyped = operand.untyped};
    saved.saved = static_cast<std::uint32_t>(capture_->next);
    if (types::is_scalar(*operand.type)) {
        entry.load(operand);
        code.push_back({.op = Opcode::save_slot, .index = saved.saved});
        capture_->next += saved_slot_size;
    } else {
        saved.where = Operand::Where::captured;
        saved.place_size = std::min<std::uint64_t>(operand.type->size, max_value);
        entry.object_of(operand);
        code.push_back(
            {.op = Opcode::save_object, .index = saved.saved, .imm = static_cast<std::int64_t>(saved.place_size)});
        capture_->next += saved_slot_size + (saved.place_size + 7) / 8 * 8;
    }
    capture_->body.push_back(std::move(code));
    capture_->known.emplace_back(key, saved);
    return again(saved);
}

namespace {

/// A guess for a bare name that nothing here has.
std::string hint_for_name(const std::string &name) {
    if (auto near = text::nearest(name, words_of_expr(), 1); !near.empty()) return "did you mean " + near[0] + "?";
    std::string hint = "args.NAME is a parameter, var.NAME a variable, reg(\"NAME\") a register, \"text\" a string; or "
                       "use arg0 to arg9";
    for (std::string_view word : words_of_expr()) hint += ", " + std::string(word);
    return hint;
}

} // namespace

Operand Lowering::name(const Expr &e, const Type *expected_enum) {
    Scope &arguments = capture_ ? capture_->entry : scope_;
    if (arguments.argument(e.text)) return argument(e);
    Result<Binding> variable = scope_.variable(e.text);
    if (variable) return bound(e, std::move(variable), false);
    if (expected_enum)
        for (const value::Enumerator &enumerator : expected_enum->enumerators)
            if (enumerator.name == e.text)
                return constant(static_cast<std::uint64_t>(enumerator.value), *expected_enum);
    if (auto value = scope_.enumerator(e.text)) return constant(static_cast<std::uint64_t>(value->value), *value->type);
    if (auto number = errno_number(e.text)) return constant(static_cast<std::uint64_t>(*number), types::int32);
    misfit(e, "`" + e.text + "` means nothing here", hint_for_name(e.text));
}

namespace {

struct Found {
    const value::Member *member = nullptr;
    std::uint64_t offset = 0; // from the outermost object
};

/// A member by name, also of anonymous members and base classes.
Found find_member(const value::Type &type, std::string_view name, Scope &scope, int depth, int &budget) {
    for (const value::Member &m : type.members)
        if (m.name == name && !m.is_base) return {&m, m.offset};
    if (depth == 0 || --budget < 0) return {}; // only malformed debug information nests so deeply
    for (const value::Member &m : type.members) {
        if (!(m.name.empty() || m.is_base) || !m.type || !types::is_record(*m.type)) continue;
        const value::Type *inner = m.type->incomplete ? scope.complete(m.type) : m.type;
        if (Found found = find_member(*inner, name, scope, depth - 1, budget); found.member)
            return {found.member, found.offset + m.offset};
    }
    return {};
}

/// A part of an object that has a virtual base with a member of that name.
struct ByVirtualBase {
    std::uint64_t offset = 0;
    const value::VirtualBase *base = nullptr;
};

bool has_member(const value::Type &type, std::string_view name, Scope &scope, int depth);

std::optional<ByVirtualBase> find_virtual(const value::Type &type, std::string_view name, Scope &scope, int depth) {
    if (depth == 0) return std::nullopt;
    for (const value::VirtualBase &base : type.virtual_bases)
        if (has_member(*scope.complete(base.type), name, scope, depth - 1)) return ByVirtualBase{0, &base};
    for (const value::Member &m : type.members) {
        if (!m.is_base || !m.type) continue;
        if (auto found = find_virtual(*scope.complete(m.type), name, scope, depth - 1))
            return ByVirtualBase{found->offset + m.offset, found->base};
    }
    return std::nullopt;
}

bool has_member(const value::Type &type, std::string_view name, Scope &scope, int depth) {
    int budget = 10000;
    return find_member(type, name, scope, depth, budget).member || find_virtual(type, name, scope, depth);
}

void add_names(const value::Type &type, Scope &scope, int depth, std::string &names) {
    constexpr std::size_t enough = 200;
    for (const value::Member &m : type.members) {
        if (names.size() >= enough || depth == 0) return;
        if (m.is_base && m.type)
            add_names(*scope.complete(m.type), scope, depth - 1, names);
        else if (!m.name.empty() && !m.name.starts_with("_vptr"))
            names += (names.empty() ? "" : ", ") + m.name;
    }
    for (const value::VirtualBase &base : type.virtual_bases)
        add_names(*scope.complete(base.type), scope, depth - 1, names);
}

std::string member_names(const value::Type &type, Scope &scope) {
    std::string names;
    add_names(type, scope, 8, names);
    return names.empty() ? "" : "it has " + names;
}

} // namespace

Operand Lowering::select(const Expr &e, Operand object, const Type &type) {
    const Type &whole = type.incomplete || type.members.empty() ? *scope_.complete(&type) : type;
    if (whole.incomplete) misfit(e, "the debug information only declares " + type.name);
    int budget = 10000;
    Found found = find_member(whole, e.text, scope_, 16, budget);
    if (!found.member && object.where == Operand::Where::memory) {
        if (const auto by = find_virtual(whole, e.text, scope_, 16)) {
            object.offset += by->offset;
            settle_address(object);
            to_virtual_base(by->base->at);
            object.type = by->base->type;
            return select(e, std::move(object), *by->base->type);
        }
    }
    if (!found.member || !found.member->type)
        misfit(e, type.name + " has no member `" + e.text + "`", member_names(whole, scope_));
    if (found.member->is_static)
        misfit(e, "`" + e.text + "` is a static member", "write var." + whole.name + "::" + e.text);
    object.type = found.member->type;
    object.offset += found.offset;
    object.bit_offset = found.member->bit_offset;
    object.bit_size = found.member->bit_size;
    object.untyped = false;
    return through_reference(std::move(object));
}

Operand Lowering::member(const Expr &e) {
    const Expr &inner = tree_.at(e.a);
    Operand object = lower(e.a);
    if (types::is_record(*object.type)) {
        if (e.arrow)
            misfit(e, "`" + text_of(inner) + "` is no pointer but " + object.type->name, "write . instead of ->");
        return select(e, std::move(object), *object.type);
    }
    const Type &type = rvalue(inner, object);
    if (!types::is_pointer(type) || !type.target || !types::is_record(*type.target))
        misfit(e,
               "`" + text_of(inner) + "` is " +
                   (types::is_pointer(type) ? "no pointer to a struct but " : "no struct but ") + type.name,
               "a cast makes one of it: ((struct NAME *)x)->" + e.text);
    if (!e.arrow) misfit(e, "`" + text_of(inner) + "` is a pointer (" + type.name + ")", "write -> instead of .");
    return select(e, {.where = Operand::Where::memory, .type = type.target}, *type.target);
}

/// The object that the pointer (or the number of no type) on the stack points to.
Operand Lowering::pointed(const Expr &e, const Type &pointer) {
    if (types::is_integer(pointer) && pointer.size == 8)
        return {.where = Operand::Where::memory, .type = &types::int64};
    if (!types::is_pointer(pointer))
        misfit(e, "`" + text_of(e) + "` is no pointer but " + pointer.name, "a cast makes one of it: (int32 *)x");
    const Type *target = pointer.target;
    if (!target || target->kind == Type::Kind::void_)
        misfit(e, "`" + text_of(e) + "` points to no known type", "a cast gives the type: *(int32 *)x");
    if (target->kind == Type::Kind::function) misfit(e, "`" + text_of(e) + "` points to a function");
    if (target->incomplete) target = scope_.complete(target);
    return through_reference({.where = Operand::Where::memory, .type = target});
}

Operand Lowering::deref(const Expr &e) {
    const Expr &inner = tree_.at(e.a);
    Operand operand = lower(e.a);
    const Type &type = rvalue(inner, operand);
    return pointed(inner, type);
}

Operand Lowering::index(const Expr &e) {
    const Expr &array_expr = tree_.at(e.a), &index_expr = tree_.at(e.b);
    Operand array = lower(e.a);
    if (array.type->by_index) array.type = array.type->by_index;
    bool is_array = array.type->kind == Type::Kind::array && array.type->target;
    if (is_array && array.where != Operand::Where::memory) {
        const std::uint64_t number = index_expr.number - static_cast<std::uint64_t>(array.type->lower);
        if (index_expr.kind != Kind::integer || (array.type->count != 0 && number >= array.type->count))
            misfit(index_expr, "this array is not in memory: only a number within it can be its index");
        array.offset += number * (array.type->stride != 0 ? array.type->stride : array.type->target->size);
        array.type = array.type->target;
        return array;
    }
    if (is_array && (array.type->lower != 0 || array.type->stride != 0)) return element_of(array, e);
    const Type &pointer = rvalue(array_expr, array);
    Operand element = pointed(array_expr, pointer);
    Operand subscript = lower(e.b);
    const Type &number = rvalue(index_expr, subscript);
    if (!types::is_integer(number)) misfit(index_expr, "an index is an integer, not " + number.name);
    put({.op = Opcode::push, .imm = step_of(array_expr, element.type)});
    put(Opcode::mul);
    put(Opcode::add);
    return element;
}

/// The element of an array in memory that begins at another index than 0, or has its elements apart.
Operand Lowering::element_of(Operand array, const Expr &e) {
    const Expr &index_expr = tree_.at(e.b);
    const Type &type = *array.type;
    settle_address(array);
    Operand subscript = lower(e.b);
    const Type &number = rvalue(index_expr, subscript);
    if (!types::is_integer(number)) misfit(index_expr, "an index is an integer, not " + number.name);
    put({.op = Opcode::add_imm, .imm = -type.lower});
    put({.op = Opcode::push, .imm = static_cast<std::int64_t>(type.stride != 0 ? type.stride : type.target->size)});
    put(Opcode::mul);
    put(Opcode::add);
    return {.where = Operand::Where::memory, .type = type.target};
}

Operand Lowering::address_of(const Expr &e) {
    Operand operand = lower(e.a);
    if (operand.where != Operand::Where::memory || operand.bit_size != 0)
        misfit(e, "`" + text_of(tree_.at(e.a)) + "` is not in memory: it has no address");
    settle_address(operand);
    return {.type = &pointer_to(*operand.type), .computed = true};
}

namespace {

/// A length that the spec states: not one that has to be calculated, or is below zero, of which nothing is read.
bool is_stated_length(const Expr &e) {
    return e.kind == Kind::integer && (e.is_unsigned || static_cast<std::int64_t>(e.number) >= 0);
}

} // namespace

Operand Lowering::str(const Expr &e) {
    const Expr &inner = tree_.at(e.a);
    Operand operand = lower(e.a);
    if (e.b >= 0 && !is_stated_length(tree_.at(e.b))) {
        if (!types::is_pointer(rvalue(inner, operand)) && !types::is_integer(*operand.type))
            misfit(inner, "str takes a pointer, not " + operand.type->name);
        Operand length = lower(e.b);
        if (!types::is_integer(rvalue(tree_.at(e.b), length))) misfit(tree_.at(e.b), "a length is an integer");
        put(Opcode::str);
        return {.type = &types::text};
    }
    std::uint64_t length = e.b < 0 ? default_str : tree_.at(e.b).number;
    if (length > max_str) misfit(tree_.at(e.b), "str reads 1024 bytes at most");
    if (text_value(inner, operand, length)) return {.type = &types::text};
    const Type &type = rvalue(inner, operand);
    if (!types::is_pointer(type) && !(types::is_integer(type) && type.size == 8))
        misfit(inner, "str takes a pointer, not " + type.name, "a cast makes one of it: str((char *)x)");
    put({.op = Opcode::str_imm, .imm = static_cast<std::int64_t>(length)});
    return {.type = &types::text};
}

Operand Lowering::usym(const Expr &e) {
    const Expr &inner = tree_.at(e.a);
    Operand operand = lower(e.a);
    const Type &type = rvalue(inner, operand);
    if (!types::is_pointer(type) && !(types::is_integer(type) && type.size == 8))
        misfit(inner, "usym takes an address, not " + type.name, "a cast makes one of it: usym((void *)x)");
    return {.type = &types::symbol};
}

Operand Lowering::buf(const Expr &e) {
    const Expr &inner = tree_.at(e.a), &length_expr = tree_.at(e.b);
    Operand operand = lower(e.a);
    const Type &type = rvalue(inner, operand);
    if (!types::is_pointer(type) && !(types::is_integer(type) && type.size == 8))
        misfit(inner, "buf takes a pointer, not " + type.name, "a cast makes one of it: buf((char *)x, N)");
    if (is_stated_length(length_expr) && length_expr.number > max_value)
        misfit(length_expr, "buf reads 1024 bytes at most");
    Operand length = lower(e.b);
    if (!types::is_integer(rvalue(length_expr, length))) misfit(length_expr, "a length is an integer");
    put(Opcode::buf);
    return {.type = &types::buffer};
}

namespace {

void collect(const Tree &tree, int node, Scope &entry, Uses &found) {
    const Expr &e = tree.at(node);
    switch (e.kind) {
    case Kind::integer_arg:
    case Kind::caller: // at the return it runs itself
    case Kind::arg: found.arguments = true; break;
    case Kind::name: (entry.argument(e.text) ? found.arguments : found.present) = true; break;
    case Kind::retval:
    case Kind::error_number:
    case Kind::duration: found.outcome = true; break;
    case Kind::nsecs:
    case Kind::reg:
    case Kind::var:
    case Kind::stack: found.present = true; break;
    default: break;
    }
    for (int child : {e.a, e.b, e.c})
        if (child >= 0) collect(tree, child, entry, found);
}

} // namespace

Uses uses(const Tree &tree, Scope &entry) {
    Uses found;
    collect(tree, tree.root, entry, found);
    return found;
}

} // namespace ktrace::program
