// Smart pointers: what they point to; a null one as a pointer. Also std::atomic: its value.
#include "program/contents/printers.h"

namespace ktrace::program::contents {

using value::Type;

namespace {

bool show_pointed(Writer &w, const std::optional<Found> &pointer) {
    if (!pointer) return false;
    w.load(pointer->offset);
    w.check(1);
    const Type *target = pointer->type->target ? &w.complete(*pointer->type->target) : nullptr;
    const bool is_known = target && size_of(*target) != 0 && target->kind != Type::Kind::function;
    if (is_known) {
        w.put(Opcode::dup);
        const std::size_t is_null = w.jump(Opcode::jump_false);
        w.show(*target);
        const std::size_t done = w.jump(Opcode::jump);
        w.land(is_null);
        w.show_address();
        w.land(done);
    } else {
        w.show_address();
    }
    w.finish();
    return true;
}

} // namespace

/// That of an array has no count: it is shown as a pointer.
bool show_unique_ptr(Writer &w) {
    auto pointer = find(w.type(), "_M_head_impl", Type::Kind::pointer);
    if (!pointer) pointer = find(w.type(), "__value_", Type::Kind::pointer);
    if (!pointer || w.type().parameters.empty()) return false;
    if (w.type().parameters[0]->kind != Type::Kind::array) return show_pointed(w, pointer);
    w.load(pointer->offset);
    w.show_address();
    return true;
}

bool show_shared_ptr(Writer &w) {
    auto pointer = find(w.type(), "_M_ptr", Type::Kind::pointer);
    if (!pointer) pointer = find(w.type(), "__ptr_", Type::Kind::pointer);
    return show_pointed(w, pointer);
}

bool show_atomic(Writer &w) {
    for (const char *name : {"_M_i", "_M_fp", "_M_p", "_M_b", "__a_value"}) {
        const auto value = find(w.type(), name);
        if (!value || value->type->kind == Type::Kind::structure || size_of(*value->type) == 0) continue;
        w.add(value->offset);
        w.show(*value->type);
        return true;
    }
    return false;
}

} // namespace ktrace::program::contents
