// The machine's instructions on the target's memory, and on the objects and texts that were read from it.
#include "program/run/floats.h"
#include "program/run/machine.h"

#include <cstring>

namespace ktrace::program {

namespace {

using State = Slot::State;

std::uint64_t integer_of(const std::byte *bytes, std::size_t size, bool is_signed) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, bytes, std::min<std::size_t>(size, 8));
    if (size >= 8 || size == 0) return bits;
    unsigned shift = 64 - 8 * static_cast<unsigned>(size);
    if (!is_signed) return bits << shift >> shift;
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(bits << shift) >> shift);
}

bool has_nul(std::uint64_t word) { return ((word - 0x0101010101010101U) & ~word & 0x8080808080808080U) != 0; }

std::size_t text_length(const std::byte *bytes, std::size_t size) {
    std::size_t at = 0;
    for (std::uint64_t word; at + sizeof word <= size; at += sizeof word) {
        std::memcpy(&word, bytes + at, sizeof word);
        if (has_nul(word)) break;
    }
    while (at < size && bytes[at] != std::byte{0}) ++at;
    return at;
}

std::uint64_t clamp_length(const Slot &length, std::uint64_t most) {
    auto wanted = static_cast<std::int64_t>(length.bits);
    return wanted < 0 ? 0 : std::min<std::uint64_t>(static_cast<std::uint64_t>(wanted), most);
}

} // namespace

Slot Machine::read_string(std::uint64_t pointer, std::uint64_t length) {
    if (pointer == 0) return bad(State::fault, 0);
    std::span<std::byte> into = scratch(length + 1); // one more shows whether the text goes on
    std::size_t readable = bytes_at(pointer, into);
    if (readable == 0 && !into.empty()) return bad(State::fault, pointer);
    std::size_t size = text_length(into.data(), readable);
    bool ended = size < readable; // by its NUL
    return {.bits = pointer,
            .bytes = into.data(),
            .size = static_cast<std::uint32_t>(std::min<std::uint64_t>(size, length)),
            .truncated = !ended};
}

Slot Machine::read_buffer(std::uint64_t pointer, std::uint64_t length) {
    std::span<std::byte> into = scratch(length);
    std::size_t readable = bytes_at(pointer, into);
    if (readable == 0 && length != 0) return bad(State::fault, pointer);
    return {.bits = pointer,
            .bytes = into.data(),
            .size = static_cast<std::uint32_t>(readable),
            .truncated = readable < length};
}

Slot Machine::read_counted(std::uint64_t pointer, const Slot &length, std::uint64_t most) {
    Slot text = read_buffer(pointer, clamp_length(length, most));
    if (text.state == State::ok && text.truncated) return bad(State::fault, pointer + text.size);
    text.truncated = length.bits > most;
    return text;
}

Slot Machine::load(const Instr &instr, std::uint64_t address) {
    std::byte bytes[16] = {};
    std::size_t size = std::min<std::size_t>(instr.size, sizeof bytes);
    std::size_t readable = bytes_at(address, std::span(bytes).first(size));
    if (readable < size) return bad(State::fault, address + readable);
    if (instr.op == Opcode::load) return {.bits = integer_of(bytes, size, instr.is_signed)};
    return {.bits = double_bits(bytes, size)};
}

Slot Machine::read(const Instr &instr, std::uint64_t address, const Slot &length) {
    switch (instr.op) {
    case Opcode::str:
    case Opcode::str_imm: return read_string(address, clamp_length(length, max_str));
    case Opcode::counted_text: return read_counted(address, length, static_cast<std::uint64_t>(instr.imm));
    case Opcode::array_text: {
        Slot text = read_buffer(address, clamp_length(length, max_value));
        if (text.state == State::ok) text.size = static_cast<std::uint32_t>(text_length(text.bytes, text.size));
        return text;
    }
    case Opcode::buf:
    case Opcode::fetch: return read_buffer(address, clamp_length(length, max_value));
    default: return load(instr, address);
    }
}

bool Machine::memory(const Instr &instr) {
    if (instr.op == Opcode::next_in_tree) {
        next_in_tree(instr);
        return !broken_;
    }
    Slot length{.bits = static_cast<std::uint64_t>(instr.imm)};
    bool counted = instr.op == Opcode::str || instr.op == Opcode::buf || instr.op == Opcode::counted_text;
    if (counted) length = pop();
    Slot at = pop();
    if (at.state == State::ok) at = length.state == State::ok ? read(instr, at.bits, length) : length;
    push(at);
    return !broken_;
}

bool Machine::object(const Instr &instr) {
    auto size = static_cast<std::uint32_t>(instr.imm);
    if (instr.op == Opcode::object_new || instr.op == Opcode::object_captured) {
        std::span<std::byte> bytes = scratch(size);
        Slot made{.bytes = bytes.data(), .size = static_cast<std::uint32_t>(bytes.size())};
        std::memset(bytes.data(), 0, bytes.size());
        if (instr.op == Opcode::object_captured) {
            std::uint64_t saved[2] = {0, static_cast<std::uint64_t>(State::na)};
            std::size_t begin = instr.index + sizeof saved;
            bool there = begin + bytes.size() <= hit_.captured.size();
            if (there) std::memcpy(saved, hit_.captured.data() + instr.index, sizeof saved);
            if (there) std::memcpy(bytes.data(), hit_.captured.data() + begin, bytes.size());
            made.state = static_cast<State>(saved[1] & 3);
            made.bits = saved[0];
        }
        push(made);
        return !broken_;
    }
    bool with_operand = instr.op == Opcode::object_put || instr.op == Opcode::object_read;
    Slot operand = with_operand ? pop() : Slot{};
    Slot &object = top();
    if (broken_ || object.state != State::ok) return !broken_;
    if (operand.state != State::ok) {
        object = operand;
        return true;
    }
    std::size_t left = instr.index < object.size ? object.size - instr.index : 0;
    // Objects made here lie in scratch_, which is ours to write.
    auto *into = const_cast<std::byte *>(object.bytes) + instr.index;
    switch (instr.op) {
    case Opcode::object_address:
        object = {.bits = scratch_address + static_cast<std::uint64_t>(object.bytes - scratch_.data())};
        return true;
    case Opcode::object_put:
        std::memcpy(into, &operand.bits, std::min<std::size_t>({left, instr.size, 8}));
        return true;
    case Opcode::object_read: {
        std::size_t wanted = std::min<std::size_t>(left, size);
        std::size_t readable = bytes_at(operand.bits, std::span(into, wanted));
        if (readable < wanted) object = bad(State::fault, operand.bits + readable);
        return true;
    }
    case Opcode::object_register: {
        const std::byte *from = register_at(instr, static_cast<std::uint64_t>(instr.imm));
        if (from)
            std::memcpy(into, from, std::min<std::size_t>(left, instr.size));
        else
            object = bad(State::unavailable);
        return true;
    }
    case Opcode::object_upper: {
        const auto *upper = reinterpret_cast<const std::byte *>(hit_.thread->upper());
        if (upper)
            std::memcpy(into, upper + instr.imm, std::min<std::size_t>(left, instr.size));
        else
            object = bad(State::unavailable, unavailable_not_known);
        return true;
    }
    case Opcode::object_const: {
        std::span<const std::byte> constant = image_.constant(static_cast<std::uint64_t>(instr.imm));
        if (!constant.empty()) std::memcpy(into, constant.data(), std::min(left, constant.size()));
        return true;
    }
    case Opcode::object_load:
    case Opcode::object_float: {
        if (left < instr.size)
            object = bad(State::na);
        else if (instr.op == Opcode::object_load)
            object = {.bits = integer_of(into, instr.size, instr.is_signed)};
        else
            object = {.bits = double_bits(into, instr.size)};
        return true;
    }
    case Opcode::object_text:
    case Opcode::object_part: {
        object.bytes = into;
        object.size = static_cast<std::uint32_t>(std::min<std::size_t>(left, size));
        object.bits = 0;
        if (instr.op == Opcode::object_text)
            object.size = static_cast<std::uint32_t>(text_length(object.bytes, object.size));
        return true;
    }
    default: return false;
    }
}

bool Machine::text(const Instr &instr) {
    Slot b = pop(), a = pop();
    if (a.state != State::ok || b.state != State::ok) {
        push_integer(0);
        return !broken_;
    }
    std::uint32_t common = std::min(a.size, b.size);
    int order = common == 0 ? 0 : std::memcmp(a.bytes, b.bytes, common);
    bool less = order < 0 || (order == 0 && a.size < b.size);
    bool equal = order == 0 && a.size == b.size;
    switch (instr.op) {
    case Opcode::text_eq: push_integer(equal); break;
    case Opcode::text_ne: push_integer(!equal); break;
    case Opcode::text_lt: push_integer(less); break;
    default: push_integer(less || equal); break; // text_le
    }
    return !broken_;
}

} // namespace ktrace::program
