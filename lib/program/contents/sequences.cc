// Sequences: vector, array, span, deque, list, forward_list.
#include <algorithm>

#include "program/contents/printers.h"

namespace ktrace::program::contents {

using value::Type;

namespace {

/// The element of a sequence that has a pointer to them.
const Type *pointed_at(Writer &w, const std::optional<Found> &pointer) {
    if (!pointer || !pointer->type->target) return nullptr;
    const Type &element = w.complete(*pointer->type->target);
    return size_of(element) != 0 ? &element : nullptr;
}

/// Begin and end on the stack become begin and count.
void count_between(Writer &w, std::uint64_t size) {
    w.put(Opcode::over);
    w.put(Opcode::sub);
    w.push(static_cast<std::int64_t>(size));
    w.put(Opcode::div_u);
}

std::optional<Found> either(const Type &type, std::string_view one, std::string_view other,
                            std::optional<Type::Kind> of = std::nullopt) {
    const auto found = find(type, one, of);
    return found ? found : find(type, other, of);
}

} // namespace

namespace {

/// With the address of words, the index of a bit in them, and the count of bits on the stack: `[true, false]` of them.
void show_bits(Writer &w) {
    w.show_each(
        Form::list, 3,
        [&] { // the byte
            w.push(3);
            w.put(Opcode::shr_u);
            w.put(Opcode::pick, 3);
            w.put(Opcode::add);
            w.load(0, 1);
            w.put(Opcode::pick, 2); // the bit in it
            w.push(7);
            w.put(Opcode::bit_and);
            w.put(Opcode::shr_u);
            w.push(1);
            w.put(Opcode::bit_and);
            w.put(Opcode::emit_boolean);
        },
        [&] { w.put(Opcode::add_imm, 1); });
}

/// libstdc++: iterators, each the address of a word and a bit in it, the first of which is 0. libc++: the words and a
/// count.
bool show_vector_of_bool(Writer &w) {
    const auto start = find(w.type(), "_M_start"), finish = find(w.type(), "_M_finish");
    const auto words = find(w.type(), "__begin_", Type::Kind::pointer), size = find(w.type(), "__size_");
    if (start && finish) {
        const auto word = find(*start->type, "_M_p", Type::Kind::pointer), bit = find(*start->type, "_M_offset");
        if (!word || !bit) return false;
        w.peek(start->offset + word->offset);
        w.put(Opcode::over);
        w.load(finish->offset + word->offset);
        count_between(w, 1); // address, words, bytes
        w.push(8);
        w.put(Opcode::mul);
        w.put(Opcode::rot); // bits, address, words
        w.put(Opcode::swap);
        w.load(finish->offset + bit->offset, 4);
        w.put(Opcode::rot); // more bits, bits, words
        w.put(Opcode::rot); // words, more bits, bits
        w.put(Opcode::add);
    } else if (words && size && size->type->size == 8) {
        w.peek(words->offset);
        w.put(Opcode::swap);
        w.load(size->offset);
    } else {
        return false;
    }
    w.check_count(2);
    w.push(0);
    w.put(Opcode::swap);
    show_bits(w);
    w.finish();
    return true;
}

} // namespace

bool show_vector(Writer &w) {
    if (const Type *element = w.parameter(0); element && element->kind == Type::Kind::bool_)
        return show_vector_of_bool(w);
    const auto begin = either(w.type(), "_M_start", "__begin_", Type::Kind::pointer);
    const auto end = either(w.type(), "_M_finish", "__end_", Type::Kind::pointer);
    const Type *element = pointed_at(w, begin);
    if (!element || !end) return false;
    w.peek(begin->offset);
    w.put(Opcode::swap);
    w.load(end->offset);
    count_between(w, size_of(*element));
    w.check_count(2);
    w.show_sequence(*element);
    w.finish();
    return true;
}

bool show_array(Writer &w) {
    const auto elements = either(w.type(), "_M_elems", "__elems_", Type::Kind::array);
    if (!elements || !elements->type->target || size_of(*elements->type->target) == 0) return false;
    w.add(elements->offset);
    w.push(static_cast<std::int64_t>(elements->type->count));
    w.show_sequence(w.complete(*elements->type->target));
    return true;
}

/// Also std::initializer_list.
bool show_span(Writer &w) {
    auto begin = either(w.type(), "_M_ptr", "__data", Type::Kind::pointer);
    if (!begin) begin = either(w.type(), "_M_array", "__begin_", Type::Kind::pointer);
    auto size = either(w.type(), "_M_extent_value", "__size", Type::Kind::integer);
    if (!size) size = either(w.type(), "_M_len", "__size_", Type::Kind::integer);
    const Type *element = pointed_at(w, begin);
    const auto fixed = last_number(w.type().name);
    if (!element || (!size && !fixed)) return false;
    w.peek(begin->offset);
    w.put(Opcode::swap);
    if (size) {
        w.load(size->offset);
    } else {
        w.put(Opcode::drop);
        w.push(static_cast<std::int64_t>(*fixed));
    }
    w.check_count(2);
    w.show_sequence(*element);
    w.finish();
    return true;
}

namespace {

/// With the array of blocks, the index of the first element in them, and the count on the stack.
void show_blocks(Writer &w, const Type &element, std::int64_t per_block) {
    w.check_count(3);
    w.show_each(
        Form::list, 3,
        [&] { // index / per_block: the block
            w.push(per_block);
            w.put(Opcode::div_u);
            w.push(8);
            w.put(Opcode::mul);
            w.put(Opcode::pick, 3);
            w.put(Opcode::add);
            w.load(0);
            w.put(Opcode::pick, 2); // index % per_block: the element in it
            w.push(per_block);
            w.put(Opcode::mod_u);
            w.push(static_cast<std::int64_t>(size_of(element)));
            w.put(Opcode::mul);
            w.put(Opcode::add);
            w.show(element);
        },
        [&] { w.put(Opcode::add_imm, 1); });
    w.finish();
}

/// libc++: the blocks between two pointers, the index of the first element, the count.
bool show_libcxx_deque(Writer &w, const Type &element) {
    const auto map = find(w.type(), "__map_"), start = find(w.type(), "__start_");
    const auto begin = map ? find(*map->type, "__begin_") : std::nullopt;
    const auto size = offset_of(w.type(), {"__size_", "__value_"});
    if (!begin || !start || !size) return false;
    constexpr std::uint64_t block = 4096, least = 16;
    const std::uint64_t bytes = size_of(element);
    w.peek(map->offset + begin->offset);
    w.put(Opcode::over);
    w.load(start->offset);
    w.put(Opcode::rot); // the object's address, under them: map, start, address
    w.put(Opcode::rot);
    w.load(*size);
    show_blocks(w, element, static_cast<std::int64_t>(bytes < 256 ? block / bytes : least));
    return true;
}

} // namespace

/// libstdc++: iterators of the first element and of the end, each with a pointer to its block.
bool show_deque(Writer &w) {
    const Type *element = w.parameter(0);
    if (!element || size_of(*element) == 0) return false;
    const auto start = find(w.type(), "_M_start"), finish = find(w.type(), "_M_finish");
    if (!start || !finish) return show_libcxx_deque(w, *element);
    const auto cur = find(*start->type, "_M_cur"), first = find(*start->type, "_M_first");
    const auto node = find(*start->type, "_M_node");
    if (!cur || !first || !node) return false;
    constexpr std::uint64_t block = 512;
    const auto size = size_of(*element);
    const auto per_block = static_cast<std::int64_t>(std::max<std::uint64_t>(block / size, 1));
    auto index_of = [&](const Found &iterator) { // address → address, index in its block
        w.peek(iterator.offset + first->offset);
        w.put(Opcode::over);
        w.load(iterator.offset + cur->offset);
        count_between(w, size);
        w.put(Opcode::swap);
        w.put(Opcode::drop);
    };
    index_of(*start); // address, index
    w.put(Opcode::swap);
    w.peek(start->offset + node->offset);
    w.put(Opcode::swap); // index, blocks, address
    w.put(Opcode::over);
    w.put(Opcode::over);
    w.load(finish->offset + node->offset);
    count_between(w, 8); // index, blocks, address, blocks, blocks between
    w.put(Opcode::swap);
    w.put(Opcode::drop);
    w.push(per_block);
    w.put(Opcode::mul); // index, blocks, address, elements
    w.put(Opcode::swap);
    index_of(*finish);
    w.put(Opcode::swap);
    w.put(Opcode::drop);
    w.put(Opcode::add);     // index, blocks, last index
    w.put(Opcode::pick, 2); // - index
    w.put(Opcode::sub);
    w.put(Opcode::rot); // count, index, blocks
    w.put(Opcode::rot); // blocks, count, index
    w.put(Opcode::swap);
    show_blocks(w, *element, per_block);
    return true;
}

namespace {

/// With the first node and the count on the stack; nodes begin with the pointer to the next at `next`.
void show_nodes(Writer &w, const Type &element, std::uint64_t next_at, std::uint64_t value_at) {
    w.show_each(
        Form::list, 2,
        [&] {
            w.add(value_at);
            w.show(element);
        },
        [&] { w.load(next_at); });
}

} // namespace

bool show_list(Writer &w) {
    const Type *element = w.parameter(0);
    const auto node = find(w.type(), "_M_node"), end = find(w.type(), "__end_");
    const auto size = node ? offset_of(w.type(), {"_M_size"}) : offset_of(w.type(), {"__size_alloc_", "__value_"});
    if (!element || size_of(*element) == 0 || (!node && !end) || !size) return false;
    const std::uint64_t next_at = node ? 0 : 8;
    w.peek((node ? node->offset : end->offset) + next_at);
    w.put(Opcode::swap);
    w.load(*size);
    w.check_count(2);
    show_nodes(w, *element, next_at, aligned(16, *element));
    w.finish();
    return true;
}

/// It has no count: its last node's pointer is null.
bool show_forward_list(Writer &w) {
    const Type *element = w.parameter(0);
    const auto head = either(w.type(), "_M_head", "__before_begin_");
    if (!element || size_of(*element) == 0 || !head) return false;
    w.load(head->offset);
    w.check(1);
    w.begin(Form::list);
    const std::size_t next = w.here();
    w.put(Opcode::dup);
    const std::size_t end = w.jump(Opcode::jump_false);
    w.put(Opcode::more);
    const std::size_t full = w.jump(Opcode::jump_false);
    w.put(Opcode::dup);
    w.add(aligned(8, *element));
    w.show(*element);
    w.load(0);
    w.jump_back(next);
    w.land(end);
    w.land(full);
    w.put(Opcode::drop);
    w.end();
    w.finish();
    return true;
}

} // namespace ktrace::program::contents
