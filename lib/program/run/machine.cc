// The machine's loop, and its instructions on numbers.
#include "program/run/machine.h"

#include <cstring>

namespace ktrace::program {

namespace {

using State = Slot::State;

std::uint64_t extend(std::uint64_t bits, unsigned width, bool is_signed) {
    if (width == 0 || width >= 64) return bits;
    unsigned shift = 64 - width;
    if (!is_signed) return bits << shift >> shift;
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(bits << shift) >> shift);
}

std::int64_t as_signed(std::uint64_t bits) { return static_cast<std::int64_t>(bits); }

} // namespace

Slot &Machine::peek(std::size_t below) {
    if (below < depth_) return stack_.all[depth_ - 1 - below];
    broken_ = true;
    return stack_.all[0];
}

std::span<std::byte> Machine::scratch(std::size_t size) {
    size = std::min(size, scratch_.size() - used_);
    std::span<std::byte> part(scratch_.data() + used_, size);
    used_ += size;
    return part;
}

Slot Machine::run(std::span<const Instr> instrs, NodeWriter &out) {
    depth_ = 0;
    used_ = 0;
    broken_ = false;
    left_ = max_instructions;
    for (std::size_t pc = 0; pc < instrs.size() && !broken_;) {
        const Instr &instr = instrs[pc++];
        if (!step(instr, out, pc) || --left_ == 0) broken_ = true;
    }
    if (broken_) (blob_open_ ? blob_ : out).abandon_groups();
    if (broken_ || depth_ == 0) return bad(State::na);
    return stack_.all[depth_ - 1];
}

bool Machine::step(const Instr &instr, NodeWriter &out, std::size_t &pc) {
    Opcode op = instr.op;
    if (op <= Opcode::tls) return value(instr);
    if (op <= Opcode::pick) return arrange(instr);
    if (op <= Opcode::logical_not) return integer(instr);
    if (op <= Opcode::ftruth) return floating(instr);
    if (op <= Opcode::or_else) return flow(instr, pc);
    if (op <= Opcode::fetch) return memory(instr);
    if (op <= Opcode::object_part) return object(instr);
    if (op <= Opcode::text_le) return text(instr);
    if (op <= Opcode::emit_registers) return emit(instr, blob_open_ ? blob_ : out);
    if (op <= Opcode::copy_blob) return save(instr, out);
    return inject(instr);
}

const std::byte *Machine::register_at(const Instr &instr, std::uint64_t offset) {
    if (!instr.is_float) return reinterpret_cast<const std::byte *>(&hit_.registers) + offset;
    const auto *floating = hit_.floating ? hit_.floating : hit_.thread->floating();
    return floating ? reinterpret_cast<const std::byte *>(floating) + offset : nullptr;
}

namespace {

std::uint64_t compare(Opcode op, std::uint64_t a, std::uint64_t b) {
    switch (op) {
    case Opcode::lt_s: return as_signed(a) < as_signed(b);
    case Opcode::le_s: return as_signed(a) <= as_signed(b);
    case Opcode::lt_u: return a < b;
    case Opcode::le_u: return a <= b;
    case Opcode::eq: return a == b;
    default: return a != b;
    }
}

std::uint64_t compare_with(const Instr &instr, std::uint64_t value) {
    const auto op = static_cast<Opcode>(instr.reg);
    const auto other = static_cast<std::uint64_t>(instr.imm);
    return instr.is_float ? compare(op, other, value) : compare(op, value, other);
}

} // namespace

std::uint64_t compare_register(const Instr &instr, const arch::Host::Registers &registers) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, reinterpret_cast<const std::byte *>(&registers) + instr.index,
                std::min<std::size_t>(instr.size, 8));
    return compare_with(instr, extend(bits, instr.size * 8U, instr.is_signed));
}

bool Machine::value(const Instr &instr) {
    switch (instr.op) {
    case Opcode::push: push_integer(static_cast<std::uint64_t>(instr.imm)); return true;
    case Opcode::push_na: push(bad(State::na)); return true;
    case Opcode::push_unavailable: push(bad(State::unavailable, static_cast<std::uint64_t>(instr.imm))); return true;
    case Opcode::push_pid: push_integer(static_cast<std::uint64_t>(hit_.pid.value)); return true;
    case Opcode::push_tid: push_integer(static_cast<std::uint64_t>(hit_.tid.value)); return true;
    case Opcode::push_nsecs: push_integer(hit_.monotonic_ns); return true;
    case Opcode::push_duration: push_integer(hit_.duration_ns); return true;
    case Opcode::push_register: {
        const std::byte *at = register_at(instr, instr.index);
        std::uint64_t bits = 0;
        if (at) std::memcpy(&bits, at, std::min<std::size_t>(instr.size, 8));
        push(at ? Slot{.bits = extend(bits, instr.size * 8U, instr.is_signed)} : bad(State::unavailable));
        return true;
    }
    case Opcode::compare_register: push_integer(program::compare_register(instr, hit_.registers)); return true;
    case Opcode::push_text: {
        std::span<const std::byte> constant = image_.constant(instr.index);
        push({.bytes = constant.data(), .size = static_cast<std::uint32_t>(constant.size())});
        return true;
    }
    case Opcode::push_comm: {
        std::string_view comm = hit_.thread->comm();
        push({.bytes = reinterpret_cast<const std::byte *>(comm.data()),
              .size = static_cast<std::uint32_t>(comm.size())});
        return true;
    }
    case Opcode::push_captured: {
        std::uint64_t saved[2] = {0, static_cast<std::uint64_t>(State::na)};
        if (instr.index + sizeof saved <= hit_.captured.size())
            std::memcpy(saved, hit_.captured.data() + instr.index, sizeof saved);
        push({.bits = saved[0], .state = static_cast<State>(saved[1] & 3)});
        return true;
    }
    case Opcode::tls: {
        Slot offset = pop();
        if (offset.state != State::ok) {
            push(offset);
            return true;
        }
        if (!hit_.thread && instr.imm != 0)
            return push_integer(hit_.thread_pointer + static_cast<std::uint64_t>(instr.imm) + offset.bits), true;
        auto at = hit_.thread ? hit_.thread->tls(instr.imm, offset.bits) : std::nullopt;
        push(at ? Slot{.bits = at->value} : bad(State::unavailable));
        return true;
    }
    default: return false;
    }
}

bool Machine::arrange(const Instr &instr) {
    switch (instr.op) {
    case Opcode::dup: push(top()); return !broken_;
    case Opcode::drop: pop(); return !broken_;
    case Opcode::over: push(peek(1)); return !broken_;
    case Opcode::swap: std::swap(peek(0), peek(1)); return !broken_;
    case Opcode::rot: { // DWARF: the top goes below the two under it
        Slot first = peek(0);
        peek(0) = peek(1);
        peek(1) = peek(2);
        peek(2) = first;
        return !broken_;
    }
    case Opcode::pick: push(peek(static_cast<std::size_t>(instr.imm))); return !broken_;
    default: return false;
    }
}

namespace {

/// Division as the machine does it: nothing where C has no answer. The smallest integer by -1 wraps.
Slot divide(Opcode op, std::uint64_t a, std::uint64_t b) {
    if (b == 0) return {.state = State::na};
    bool is_signed = op == Opcode::div_s || op == Opcode::mod_s, is_mod = op == Opcode::mod_s || op == Opcode::mod_u;
    if (!is_signed) return {.bits = is_mod ? a % b : a / b};
    if (as_signed(b) == -1) return {.bits = is_mod ? 0 : 0 - a};
    return {.bits = static_cast<std::uint64_t>(is_mod ? as_signed(a) % as_signed(b) : as_signed(a) / as_signed(b))};
}

/// Shifts by the width or more shift everything out; a negative count is such a one.
std::uint64_t shift(Opcode op, std::uint64_t a, std::uint64_t by) {
    if (op == Opcode::shl) return by >= 64 ? 0 : a << by;
    if (op == Opcode::shr_u) return by >= 64 ? 0 : a >> by;
    return static_cast<std::uint64_t>(as_signed(a) >> (by >= 64 ? 63 : by));
}

std::uint64_t combine(Opcode op, std::uint64_t a, std::uint64_t b) {
    switch (op) {
    case Opcode::add: return a + b;
    case Opcode::sub: return a - b;
    case Opcode::mul: return a * b;
    case Opcode::bit_and: return a & b;
    case Opcode::bit_or: return a | b;
    case Opcode::bit_xor: return a ^ b;
    case Opcode::shl:
    case Opcode::shr_s:
    case Opcode::shr_u: return shift(op, a, b);
    default: return compare(op, a, b);
    }
}

std::uint64_t alone(const Instr &instr, std::uint64_t a) {
    switch (instr.op) {
    case Opcode::neg: return 0 - a;
    case Opcode::bit_not: return ~a;
    case Opcode::abs: return as_signed(a) < 0 ? 0 - a : a;
    case Opcode::add_imm: return a + static_cast<std::uint64_t>(instr.imm);
    case Opcode::narrow: return extend(a, instr.size * 8U, instr.is_signed);
    default: return extend(a >> (instr.index & 63), static_cast<unsigned>(instr.imm), instr.is_signed); // extract
    }
}

} // namespace

bool Machine::integer(const Instr &instr) {
    Slot b = pop();
    if (is_in(instr.op, Opcode::neg, Opcode::extract)) {
        if (b.state == State::ok) b = {.bits = alone(instr, b.bits)};
        push(b);
        return !broken_;
    }
    if (instr.op == Opcode::compare_with) {
        push_integer(b.state == State::ok ? compare_with(instr, b.bits) : 0);
        return !broken_;
    }
    if (instr.op == Opcode::truth || instr.op == Opcode::logical_not) {
        const bool is_zero = b.bits == 0;
        if (b.state == State::ok)
            push_integer((instr.op == Opcode::logical_not) == is_zero ? 1 : 0);
        else
            push(instr.op == Opcode::truth ? Slot{} : b);
        return !broken_;
    }
    Slot a = pop();
    const Slot &problem = a.state != State::ok ? a : b;
    if (problem.state != State::ok)
        push(is_in(instr.op, Opcode::lt_s, Opcode::ne) ? Slot{.bits = 0} : problem);
    else if (is_in(instr.op, Opcode::div_s, Opcode::mod_u))
        push(divide(instr.op, a.bits, b.bits));
    else
        push_integer(combine(instr.op, a.bits, b.bits));
    return !broken_;
}

bool Machine::flow(const Instr &instr, std::size_t &pc) {
    auto jump = [&] { pc = static_cast<std::size_t>(static_cast<std::int64_t>(pc) + instr.imm); };
    auto holds = [](const Slot &slot) { return slot.state == State::ok && slot.bits != 0; };
    switch (instr.op) {
    case Opcode::jump: jump(); return true;
    case Opcode::jump_false:
        if (!holds(pop())) jump();
        return !broken_;
    case Opcode::jump_bad:
        if (top().state != State::ok) jump();
        return !broken_;
    case Opcode::and_else:
    case Opcode::or_else:
        if (holds(top()) == (instr.op == Opcode::or_else))
            jump();
        else
            pop();
        return !broken_;
    default: return false;
    }
}

} // namespace ktrace::program
