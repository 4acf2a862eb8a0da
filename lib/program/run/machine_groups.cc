// The machine's instructions on what objects hold: groups of nodes, and the way through trees.
#include <algorithm>
#include <cstring>

#include "program/run/machine.h"

namespace ktrace::program {

namespace {

using State = Slot::State;

constexpr std::size_t least_left = 2000; // instructions for what is open to come to its end
constexpr int deepest_tree = 128;

} // namespace

bool Machine::group(const Instr &instr, NodeWriter &out) {
    switch (instr.op) {
    case Opcode::begin_group: out.begin_group(static_cast<Form>(instr.imm), instr.index, used_); return true;
    case Opcode::more: {
        const bool is_late = left_ < least_left;
        if (is_late) out.cut_group();
        push_integer(!is_late && out.more() ? 1 : 0);
        return !broken_;
    }
    default: out.end_group(); return true;
    }
}

/// Bytes of the target's memory, or of an object in the scratch. Gives how many could be read, from the front.
std::size_t Machine::bytes_at(std::uint64_t address, std::span<std::byte> into) {
    if (address < scratch_address || address - scratch_address >= scratch_.size()) return cache_.read(address, into);
    const std::uint64_t at = address - scratch_address;
    const std::size_t size = at < used_ ? std::min<std::size_t>(into.size(), used_ - at) : 0;
    if (size != 0) std::memmove(into.data(), scratch_.data() + at, size);
    return size;
}

/// False: it cannot be read, and the top of the stack says so.
bool Machine::word(std::uint64_t address, std::uint64_t &into) {
    std::byte bytes[sizeof into];
    const std::size_t readable = bytes_at(address, bytes);
    if (readable < sizeof bytes)
        top() = bad(State::fault, address + readable);
    else
        std::memcpy(&into, bytes, sizeof into);
    return readable == sizeof bytes;
}

/// In order: the least node to the right, else the first one upwards that this is not to the right of.
void Machine::next_in_tree(const Instr &instr) {
    const std::uint64_t left = instr.index & 0xff, right = instr.index >> 8 & 0xff, up = instr.index >> 16 & 0xff;
    if (top().state != State::ok) return;
    std::uint64_t node = top().bits, lower = 0, upper = 0, right_of_upper = 0;
    if (!word(node + right, lower)) return;
    const bool goes_down = lower != 0;
    for (int step = 0; step < deepest_tree; ++step) {
        if (goes_down) {
            node = lower;
            if (!word(node + left, lower)) return;
        } else {
            if (!word(node + up, upper) || !word(upper + right, right_of_upper)) return;
        }
        if (goes_down ? lower == 0 : right_of_upper != node) {
            top() = {.bits = goes_down ? node : upper};
            return;
        }
        if (!goes_down) node = upper;
    }
    top() = bad(State::unavailable, unavailable_not_known); // no tree is so deep
}

} // namespace ktrace::program
