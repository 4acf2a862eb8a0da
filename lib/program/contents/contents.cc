#include "program/contents/contents.h"

#include <algorithm>
#include <map>

#include "program/contents/printers.h"

namespace ktrace::program::contents {

using value::Member;
using value::Type;

namespace {

Printer printer_of(const Type &type) {
    static const std::map<std::string, Printer, std::less<>> printers = {
        {"std::vector", show_vector},
        {"std::array", show_array},
        {"std::span", show_span},
        {"std::initializer_list", show_span},
        {"std::deque", show_deque},
        {"std::list", show_list},
        {"std::forward_list", show_forward_list},
        {"std::map", show_map},
        {"std::multimap", show_map},
        {"std::set", show_set},
        {"std::multiset", show_set},
        {"std::unordered_map", show_unordered_map},
        {"std::unordered_multimap", show_unordered_map},
        {"std::unordered_set", show_unordered_set},
        {"std::unordered_multiset", show_unordered_set},
        {"std::optional", show_optional},
        {"std::variant", show_variant},
        {"std::tuple", show_tuple},
        {"std::unique_ptr", show_unique_ptr},
        {"std::shared_ptr", show_shared_ptr},
        {"std::atomic", show_atomic},
        {"std::chrono::duration", show_duration},
        {"std::chrono::time_point", show_time_point},
        {"alloc::vec::Vec", show_rust_vec},
        {"runtime.iface", show_interface},
        {"runtime.eface", show_interface},
    };
    if (type.kind != Type::Kind::structure) return nullptr;
    if (is_text(type)) return show_text;
    if (is_ada_array(type)) return show_ada_array;
    const std::string name = family(type);
    if (name.starts_with("[]") || name.starts_with("&[") || name.starts_with("&mut [")) return show_slice;
    const auto found = printers.find(name);
    return found == printers.end() ? nullptr : found->second;
}

constexpr std::size_t most_parts = 16;
constexpr std::uint64_t most_elements = 10;
constexpr int deepest = 8;

/// A text behind a pointer, as arguments of that type show it.
bool is_pointer_to_text(const Type &type) {
    return type.kind == Type::Kind::pointer && type.target && type.target->kind == Type::Kind::char_ &&
           (type.target->size == 1 || type.target->size == 2 || type.target->size == 4);
}

void add_parts(const Type &type, std::uint64_t offset, int depth, Surroundings &around, std::vector<Part> &parts) {
    if (depth == 0 || parts.size() >= most_parts) return;
    if (is_known(type) || is_pointer_to_text(type)) {
        parts.push_back({.offset = offset, .type = &type});
    } else if (type.kind == Type::Kind::array && type.target && type.stride == 0) {
        for (std::uint64_t i = 0; i < std::min(type.count, most_elements); ++i)
            add_parts(*type.target, offset + i * size_of(*type.target), depth - 1, around, parts);
    } else if (type.kind == Type::Kind::structure) {
        const Type &whole = type.incomplete ? around.complete(type) : type;
        for (const value::VirtualBase &base : whole.virtual_bases) parts.push_back({offset, base.type, base.at});
        for (const Member &member : whole.members)
            if (!member.is_static && member.type && member.bit_size == 0)
                add_parts(*member.type, offset + member.offset, depth - 1, around, parts);
    }
}

} // namespace

bool is_known(const Type &type) { return printer_of(type) != nullptr; }

bool show(const Type &type, std::vector<Instr> &out, Surroundings &around) {
    const Printer print = printer_of(type);
    if (print == nullptr) return false;
    const std::size_t before = out.size();
    Writer writer(around.complete(type), out, around);
    const bool is_as_expected = print(writer);
    if (!is_as_expected) out.resize(before);
    return is_as_expected;
}

std::vector<Part> parts_of(const Type &type, Surroundings &around) {
    std::vector<Part> parts;
    add_parts(type, 0, deepest, around, parts);
    return parts;
}

} // namespace ktrace::program::contents
