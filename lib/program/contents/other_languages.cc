// Types of other languages: Rust's Vec and slices, Go's slices, Ada's arrays of any bounds.
#include "program/contents/printers.h"

namespace ktrace::program::contents {

using value::Type;

/// Its memory is one of bytes in later versions: the element is the parameter.
bool show_rust_vec(Writer &w) {
    const Type *element = w.parameter(0);
    const auto begin = find(w.type(), "pointer", Type::Kind::pointer),
               size = find(w.type(), "len", Type::Kind::integer);
    if (!element || size_of(*element) == 0 || !begin || !size) return false;
    w.peek(begin->offset);
    w.put(Opcode::swap);
    w.load(size->offset);
    w.check_count(2);
    w.show_sequence(*element);
    w.finish();
    return true;
}

bool show_slice(Writer &w) {
    auto begin = find(w.type(), "data_ptr", Type::Kind::pointer), size = find(w.type(), "length", Type::Kind::integer);
    if (!begin) begin = find(w.type(), "array", Type::Kind::pointer), size = find(w.type(), "len", Type::Kind::integer);
    if (!begin || !size || !begin->type->target) return false;
    const Type &element = w.complete(*begin->type->target);
    if (size_of(element) == 0) return false;
    w.peek(begin->offset);
    w.put(Opcode::swap);
    w.load(size->offset);
    w.check_count(2);
    w.show_sequence(element);
    w.finish();
    return true;
}

namespace {

/// Leaves high - low + 1 in the place of the address of an array's bounds, which Ada lets be below 0 for none.
void count_by_bounds(Writer &w, const Found &low, const Found &high) {
    const auto load = [&w](const Found &bound) {
        w.add(bound.offset);
        w.put({.op = Opcode::load, .size = static_cast<std::uint8_t>(bound.type->size), .is_signed = true});
    };
    w.put(Opcode::dup);
    load(high);
    w.put(Opcode::swap);
    load(low);
    w.put(Opcode::sub);
    w.add(1);
    w.put(Opcode::dup);
    w.push(63);
    w.put(Opcode::shr_s);
    w.put(Opcode::bit_not);
    w.put(Opcode::bit_and);
}

} // namespace

bool is_ada_array(const Type &type) {
    return find(type, "P_ARRAY", Type::Kind::pointer) && find(type, "P_BOUNDS", Type::Kind::pointer);
}

bool show_ada_array(Writer &w) {
    const auto array = find(w.type(), "P_ARRAY", Type::Kind::pointer),
               bounds = find(w.type(), "P_BOUNDS", Type::Kind::pointer);
    if (!array->type->target || !array->type->target->target || !bounds->type->target) return false;
    const Type &element = w.complete(*array->type->target->target), &record = w.complete(*bounds->type->target);
    const auto low = find(record, "LB0"), high = find(record, "UB0");
    if (!low || !high || find(record, "LB1") || size_of(element) == 0) return false;
    w.peek(array->offset);
    w.put(Opcode::swap);
    w.load(bounds->offset);
    count_by_bounds(w, *low, *high);
    w.check_count(2);
    if (element.kind == Type::Kind::char_ && element.size == 1) {
        w.put(Opcode::counted_text, static_cast<std::int64_t>(default_str));
        w.put(Opcode::emit_text);
    } else {
        w.show_sequence(element);
    }
    w.finish();
    return true;
}

} // namespace ktrace::program::contents
