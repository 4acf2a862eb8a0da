// Types of other languages: Rust's Vec and slices, Go's slices.
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

} // namespace ktrace::program::contents
