// The machine's instructions on floating point.
#include "program/run/floats.h"
#include "program/run/machine.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace ktrace::program {

namespace {

using State = Slot::State;

double as_double(std::uint64_t bits) { return std::bit_cast<double>(bits); }
std::uint64_t low(std::uint64_t bits, unsigned width) {
    return width >= 64 ? bits : bits & ((std::uint64_t{1} << width) - 1);
}

/// A float, a double, or the target's long double, which is the host's (10 bytes of it count on x86-64).
double double_of(const std::byte *bytes, std::size_t size) {
    if (size == 4) {
        float value;
        std::memcpy(&value, bytes, 4);
        return static_cast<double>(value);
    }
    if (size <= 8) {
        double value = 0;
        std::memcpy(&value, bytes, size);
        return value;
    }
    long double value = 0;
    std::memcpy(&value, bytes, std::min(size, sizeof value));
    return static_cast<double>(value);
}

} // namespace

std::uint64_t double_bits(const std::byte *bytes, std::size_t size) {
    return std::bit_cast<std::uint64_t>(double_of(bytes, size));
}

std::uint32_t float_bits(std::uint64_t double_bits) {
    return std::bit_cast<std::uint32_t>(static_cast<float>(as_double(double_bits)));
}

namespace {

std::uint64_t from_bool(bool value) { return value ? 1 : 0; }

std::uint64_t combine_doubles(Opcode op, double a, double b) {
    switch (op) {
    case Opcode::fadd: return std::bit_cast<std::uint64_t>(a + b);
    case Opcode::fsub: return std::bit_cast<std::uint64_t>(a - b);
    case Opcode::fmul: return std::bit_cast<std::uint64_t>(a * b);
    case Opcode::fdiv: return std::bit_cast<std::uint64_t>(a / b);
    case Opcode::flt: return from_bool(a < b);
    case Opcode::fle: return from_bool(a <= b);
    case Opcode::feq: return from_bool(a == b);
    default: return from_bool(a != b); // fne
    }
}

/// To an integer of `size` bytes, cut towards zero; out of its range: its nearest end. NaN: 0.
std::uint64_t to_integer(double value, unsigned size, bool is_signed) {
    if (value != value) return 0;
    if (is_signed) {
        double limit = size >= 8 ? 0x1p63 : static_cast<double>(std::uint64_t{1} << (size * 8 - 1));
        auto end = static_cast<std::int64_t>((std::uint64_t{1} << (std::min(size, 8U) * 8 - 1)) - 1);
        if (value >= limit) return static_cast<std::uint64_t>(end);
        if (value < -limit) return static_cast<std::uint64_t>(-end - 1);
        return static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
    }
    double limit = size >= 8 ? 0x1p64 : static_cast<double>(std::uint64_t{1} << (size * 8));
    if (value >= limit) return low(~std::uint64_t{0}, size * 8);
    return value <= -1 ? low(static_cast<std::uint64_t>(static_cast<std::int64_t>(std::max(value, -0x1p63))), size * 8)
                       : static_cast<std::uint64_t>(value);
}

std::uint64_t convert(const Instr &instr, std::uint64_t bits) {
    switch (instr.op) {
    case Opcode::fneg: return std::bit_cast<std::uint64_t>(-as_double(bits));
    case Opcode::round_float:
        return std::bit_cast<std::uint64_t>(static_cast<double>(static_cast<float>(as_double(bits))));
    case Opcode::from_signed: return std::bit_cast<std::uint64_t>(static_cast<double>(static_cast<std::int64_t>(bits)));
    case Opcode::from_unsigned: return std::bit_cast<std::uint64_t>(static_cast<double>(bits));
    case Opcode::ftruth: return from_bool(as_double(bits) != 0);
    default: return to_integer(as_double(bits), instr.size, instr.is_signed);
    }
}

} // namespace

bool Machine::floating(const Instr &instr) {
    Slot b = pop();
    Opcode op = instr.op;
    bool binary = is_in(op, Opcode::fadd, Opcode::fdiv) || is_in(op, Opcode::flt, Opcode::fne);
    if (!binary) {
        if (b.state == State::ok)
            b = {.bits = convert(instr, b.bits)};
        else if (op == Opcode::ftruth)
            b = {.bits = 0};
        push(b);
        return !broken_;
    }
    Slot a = pop();
    const Slot &problem = a.state != State::ok ? a : b;
    if (problem.state != State::ok)
        push(is_in(op, Opcode::flt, Opcode::fne) ? Slot{.bits = 0} : problem);
    else
        push_integer(combine_doubles(op, as_double(a.bits), as_double(b.bits)));
    return !broken_;
}

} // namespace ktrace::program
