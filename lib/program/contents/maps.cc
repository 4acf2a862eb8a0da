// Maps and sets: trees in order, and tables of buckets, whose nodes are a list.
#include "program/contents/printers.h"

namespace ktrace::program::contents {

using value::Type;

namespace {

/// The element of a map is a pair: libstdc++'s tree or table has it as its second parameter, libc++'s is that which the
/// map's allocator is for.
const Type *pair_of(Writer &w, std::size_t allocator) {
    auto inner = find(w.type(), "_M_t", Type::Kind::structure);
    if (!inner) inner = find(w.type(), "_M_h", Type::Kind::structure);
    const Type *of = inner ? &w.complete(*inner->type) : w.parameter(allocator);
    const std::size_t number = inner ? 1 : 0;
    return of && of->parameters.size() > number ? &w.complete(*of->parameters[number]) : nullptr;
}

const Type *element_of(Writer &w, std::size_t allocator, bool is_map) {
    const Type *element = is_map ? pair_of(w, allocator) : w.parameter(0);
    if (!element || size_of(*element) == 0) return nullptr;
    if (is_map && (!find(*element, "first") || !find(*element, "second"))) return nullptr;
    return element;
}

/// With the address of an element on the stack: shows it, or a pair's two.
void show_element(Writer &w, const Type &element, bool is_map) {
    if (!is_map) return w.show(element);
    const auto key = find(element, "first"), value = find(element, "second");
    w.put(Opcode::dup);
    w.add(key->offset);
    w.show(*key->type);
    w.add(value->offset);
    w.show(*value->type);
}

/// With the first node and the count on the stack. `next`: from a node to the next, on the top of the stack.
template <class Next> void show_nodes(Writer &w, const Type &element, bool is_map, std::uint64_t value_at, Next next) {
    w.show_each(
        is_map ? Form::map : Form::list, 2,
        [&] {
            w.add(value_at);
            show_element(w, element, is_map);
        },
        next);
}

struct TreeLayout {
    std::uint64_t first = 0, count = 0;        // in the object
    std::uint64_t left = 0, right = 0, up = 0; // in a node
    std::uint64_t value = 0;
};

std::optional<TreeLayout> tree_layout(const Type &type, const Type &element) {
    if (const auto header = find(type, "_M_header")) { // libstdc++
        const auto count = find(type, "_M_node_count");
        if (!count) return std::nullopt;
        return TreeLayout{header->offset + 16, count->offset, 16, 24, 8, aligned(32, element)};
    }
    const auto first = find(type, "__begin_node_");
    const auto count = offset_of(type, {"__pair3_", "__value_"});
    if (!first || !count) return std::nullopt;
    return TreeLayout{first->offset, *count, 0, 8, 16, aligned(25, element)};
}

bool show_tree(Writer &w, bool is_map) {
    const Type *element = element_of(w, 3, is_map);
    const auto layout = element ? tree_layout(w.type(), *element) : std::nullopt;
    if (!layout) return false;
    w.peek(layout->first);
    w.put(Opcode::swap);
    w.load(layout->count);
    w.check_count(2);
    show_nodes(w, *element, is_map, layout->value, [&] { w.next_in_tree(layout->left, layout->right, layout->up); });
    w.finish();
    return true;
}

struct TableLayout {
    std::uint64_t first = 0, count = 0; // in the object
    std::uint64_t value = 0;            // in a node, which begins with the pointer to the next
};

std::optional<TableLayout> table_layout(const Type &type, const Type &element) {
    if (const auto head = find(type, "_M_before_begin")) { // libstdc++
        const auto count = find(type, "_M_element_count");
        if (!count) return std::nullopt;
        return TableLayout{head->offset, count->offset, aligned(8, element)};
    }
    const auto first = find(type, "__next_");
    const auto count = offset_of(type, {"__p2_", "__value_"});
    if (!first || !count) return std::nullopt;
    return TableLayout{first->offset, *count, aligned(16, element)};
}

bool show_table(Writer &w, bool is_map) {
    const Type *element = element_of(w, 4, is_map);
    const auto layout = element ? table_layout(w.type(), *element) : std::nullopt;
    if (!layout) return false;
    w.peek(layout->first);
    w.put(Opcode::swap);
    w.load(layout->count);
    w.check_count(2);
    show_nodes(w, *element, is_map, layout->value, [&] { w.load(0); });
    w.finish();
    return true;
}

} // namespace

bool show_map(Writer &w) { return show_tree(w, true); }
bool show_set(Writer &w) { return show_tree(w, false); }
bool show_unordered_map(Writer &w) { return show_table(w, true); }
bool show_unordered_set(Writer &w) { return show_table(w, false); }

} // namespace ktrace::program::contents
