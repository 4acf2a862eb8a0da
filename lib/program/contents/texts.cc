// Texts: std::string and std::string_view of libstdc++ and libc++, Rust's String and &str, Go's string.
//
// std::string is known by its name alone: clang only declares it where it is made by the library.
#include "program/contents/printers.h"

namespace ktrace::program::contents {

using value::Type;

namespace {

/// The way in which a class keeps its text.
enum class Way : std::uint8_t { none, counted, libcxx };

struct Layout {
    Way way = Way::none;
    std::uint64_t pointer = 0, length = 0, size = 16;
};

Layout counted(const Type &type, std::string_view pointer, std::string_view length) {
    const auto at = find(type, pointer, Type::Kind::pointer), size = find(type, length, Type::Kind::integer);
    if (!at || !size || size->type->size != 8) return {};
    if (at->type->target && at->type->target->size > 1) return {};
    return {Way::counted, at->offset, size->offset, type.size};
}

bool is_of_bytes(std::string_view name) {
    return name.find("<char,") != std::string_view::npos || name.find("<char>") != std::string_view::npos ||
           name.find("<char8_t,") != std::string_view::npos;
}

Layout layout_of(const Type &type) {
    if (type.kind != Type::Kind::structure) return {};
    const std::string &name = type.alias_of ? type.alias_of->name : type.name;
    if (name == "&str" || name == "a text") return counted(type, "data_ptr", "length");
    if (name == "string") return counted(type, "str", "len"); // Go
    if (name == "alloc::string::String") return counted(type, "pointer", "len");
    if (!name.starts_with("std::") || !is_of_bytes(name)) return {};
    const std::string of = family(type);
    if (of == "std::basic_string_view") {
        const Layout libstdcxx = counted(type, "_M_str", "_M_len");
        return libstdcxx.way != Way::none ? libstdcxx : counted(type, "__data", "__size");
    }
    if (of != "std::basic_string") return {};
    if (name.starts_with("std::__cxx11::")) return {Way::counted, 0, 8, 32};
    if (name.starts_with("std::__1::")) return {Way::libcxx, 16, 8, 24};
    return {}; // before C++11's ABI
}

} // namespace

bool is_text(const Type &type) { return layout_of(type).way != Way::none; }

std::uint64_t size_of(const Type &type) {
    if (type.size != 0 || !type.incomplete) return type.size;
    const Layout layout = layout_of(type);
    return layout.way != Way::none ? layout.size : 0;
}

namespace {

class Nothing : public Surroundings {
    const Type &complete(const Type &type) override { return type; }
    void show(const Type &) override {}
};

void load_pointer_and_length(Writer &w, const Layout &layout) {
    w.peek(layout.pointer);
    w.put(Opcode::swap);
    w.load(layout.length);
}

/// The first byte's lowest bit: it is somewhere else; else the byte has the length, and the text is behind it.
void load_libcxx(Writer &w, const Layout &layout) {
    w.peek(0, 1);
    w.push(1);
    w.put(Opcode::bit_and);
    const std::size_t is_short = w.jump(Opcode::jump_false);
    load_pointer_and_length(w, layout);
    const std::size_t done = w.jump(Opcode::jump);
    w.land(is_short);
    w.put(Opcode::dup);
    w.add(1);
    w.put(Opcode::swap);
    w.load(0, 1);
    w.push(1);
    w.put(Opcode::shr_u);
    w.land(done);
}

} // namespace

void load_text(const Type &type, std::uint64_t most, std::vector<Instr> &out) {
    const Layout layout = layout_of(type);
    Nothing around;
    Writer w(type, out, around);
    if (layout.way == Way::libcxx)
        load_libcxx(w, layout);
    else
        load_pointer_and_length(w, layout);
    w.put(Opcode::dup); // a length that is none is not known
    w.push(largest_count);
    w.put(Opcode::swap);
    w.put(Opcode::lt_u);
    const std::size_t is_length = w.jump(Opcode::jump_false);
    w.put(Opcode::drop);
    w.put(Opcode::push_unavailable, unavailable_not_known);
    w.land(is_length);
    w.put(Opcode::counted_text, static_cast<std::int64_t>(most));
}

bool show_text(Writer &w) {
    w.load_text(default_str);
    w.put(Opcode::emit_text);
    return true;
}

} // namespace ktrace::program::contents
