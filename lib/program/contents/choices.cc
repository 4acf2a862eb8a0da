// Choices and compounds: optional, variant, tuple. An optional or variant is what it holds.
#include <algorithm>

#include "program/contents/printers.h"

namespace ktrace::program::contents {

using value::Member;
using value::Type;

bool show_optional(Writer &w) {
    const Type *held = w.parameter(0);
    auto engaged = find(w.type(), "_M_engaged");
    if (!engaged) engaged = find(w.type(), "__engaged_");
    if (!held || !engaged) return false;
    w.peek(engaged->offset, 1);
    w.check(2);
    const std::size_t is_empty = w.jump(Opcode::jump_false);
    w.show(*held);
    w.finish_or_nothing(is_empty);
    return true;
}

/// Its alternatives lie at its start.
bool show_variant(Writer &w) {
    auto index = find(w.type(), "_M_index");
    if (!index) index = find(w.type(), "__index", Type::Kind::integer);
    if (!index || w.type().parameters.empty()) return false;
    w.peek(index->offset, index->type->size);
    w.check(2);
    std::vector<std::size_t> done;
    for (std::size_t n = 0; n < w.type().parameters.size(); ++n) {
        w.put(Opcode::dup);
        w.push(static_cast<std::int64_t>(n));
        w.put(Opcode::eq);
        const std::size_t is_other = w.jump(Opcode::jump_false);
        w.put(Opcode::drop);
        w.show(*w.parameter(n));
        done.push_back(w.jump(Opcode::jump));
        w.land(is_other);
    }
    w.put(Opcode::drop); // left by an exception: without a value
    w.put(Opcode::drop);
    w.begin(Form::nothing);
    w.end();
    for (std::size_t each : done) w.land(each);
    w.finish();
    return true;
}

namespace {

constexpr int most_choices = 32;

/// An element of a tuple, in the base class that its number is an argument of.
struct Element {
    std::uint64_t number = 0, offset = 0;
    const Type *type = nullptr;
};

/// The class has it as its one member, or where it is empty as its base.
std::optional<Found> held_by(const Type &head) {
    for (const Member &member : head.members)
        if (!member.is_static && member.type) return Found{member.offset, member.type};
    return std::nullopt;
}

void add_elements(const Type &type, std::uint64_t offset, int depth, std::vector<Element> &elements) {
    for (const Member &member : type.members) {
        if (member.is_static || !member.type || depth == 0) continue;
        const std::string name = family(*member.type);
        const std::uint64_t at = offset + member.offset;
        if (name == "std::_Head_base" || name == "std::__tuple_leaf") {
            const std::string &whole = member.type->name;
            if (const auto held = held_by(*member.type))
                elements.push_back(
                    {std::strtoull(whole.c_str() + whole.find('<') + 1, nullptr, 10), at + held->offset, held->type});
        } else if (name == "std::_Tuple_impl" || name == "std::__tuple_impl") {
            add_elements(*member.type, at, depth - 1, elements);
        }
    }
}

} // namespace

bool show_tuple(Writer &w) {
    std::vector<Element> elements;
    add_elements(w.type(), 0, most_choices, elements);
    std::sort(elements.begin(), elements.end(), [](const Element &a, const Element &b) { return a.number < b.number; });
    for (std::size_t n = 0; n < elements.size(); ++n)
        if (elements[n].number != n) return false;
    w.begin(Form::tuple);
    for (const Element &element : elements) {
        w.put(Opcode::dup);
        w.add(element.offset);
        w.show(*element.type);
    }
    w.end();
    w.put(Opcode::drop);
    return true;
}

} // namespace ktrace::program::contents
