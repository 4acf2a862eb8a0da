// Where typed parameters and results lie at a function's first instruction and at its return (x86-64 System V psABI,
// 3.2.3): the classes of a value's eightbytes say which registers hold it, or that it lies on the stack.
//
// Invariant: once the place of one parameter is not known, neither is that of those behind it, and that is said rather
// than guessed.
#include "x86_64/x86_64.h"

#include <algorithm>
#include <iterator>

#include "go_results.h"
#include "x86_64/classify.h"
#include "x86_64/insn.h"

namespace ktrace::arch {

namespace {

using value::Op;
using value::Piece;
using value::Place;
using value::Type;
using x86::Class;
using x86::Classes;
using x86::eightbyte;

// DWARF numbers (psABI figure 3.36)
constexpr std::uint16_t dwarf_ax = 0, dwarf_dx = 1, dwarf_sp = 7, dwarf_xmm0 = 17, dwarf_st0 = 33;
constexpr std::uint16_t integer_registers[] = {5, 4, 1, 2, 8, 9}; // rdi rsi rdx rcx r8 r9
constexpr std::size_t sse_registers = 8;
constexpr std::uint32_t x87_size = 10;

Piece register_piece(std::uint16_t reg, std::uint64_t size) {
    Piece piece;
    piece.kind = Piece::Kind::register_;
    piece.reg = reg;
    piece.size = static_cast<std::uint32_t>(size);
    return piece;
}

/// Bytes that no register holds since they are padding.
Piece padding(std::uint64_t size) {
    Piece piece;
    piece.kind = Piece::Kind::bytes;
    piece.size = static_cast<std::uint32_t>(size);
    piece.bytes.assign(size, 0);
    return piece;
}

/// A value without contents (an empty class), of which nothing is passed.
Place empty_place(const Type &type) {
    Place place;
    place.pieces.push_back(padding(type.size));
    return place;
}

/// The registers that values are taken from, in order: those of arguments, or those of results.
struct RegisterOrder {
    std::span<const std::uint16_t> integer;
    std::size_t sse = 0;
    std::size_t next_integer = 0, next_sse = 0;
};

bool fits(const Classes &classes, const RegisterOrder &order) {
    const auto begin = classes.of.begin(), end = begin + static_cast<std::ptrdiff_t>(classes.count);
    const auto integers = static_cast<std::size_t>(std::count(begin, end, Class::integer));
    const auto vectors = static_cast<std::size_t>(std::count(begin, end, Class::sse));
    return order.next_integer + integers <= order.integer.size() && order.next_sse + vectors <= order.sse;
}

/// An SSE register's piece for the eightbyte `i` and the SSEUP ones behind it.
void append_vector(const Classes &classes, std::size_t &i, std::uint64_t left, std::uint16_t reg, Place &place) {
    std::uint64_t size = eightbyte;
    while (i + 1 < classes.count && classes.of[i + 1] == Class::sseup) {
        size += eightbyte;
        ++i;
    }
    place.pieces.push_back(register_piece(reg, std::min(size, left)));
}

Place in_registers(const Type &type, const Classes &classes, RegisterOrder &order) {
    Place place;
    for (std::size_t i = 0; i < classes.count; ++i) {
        const std::uint64_t left = type.size - i * eightbyte, size = std::min(left, eightbyte);
        switch (classes.of[i]) {
        case Class::integer: place.pieces.push_back(register_piece(order.integer[order.next_integer++], size)); break;
        case Class::sse:
            append_vector(classes, i, left, static_cast<std::uint16_t>(dwarf_xmm0 + order.next_sse++), place);
            break;
        default: place.pieces.push_back(padding(size)); break;
        }
    }
    return place;
}

/// `count` x87 registers from st0 on, each an element of `type`.
Place in_x87(const Type &type, unsigned count) {
    Place place;
    const std::uint64_t element = type.size / count;
    for (unsigned i = 0; i < count; ++i) {
        place.pieces.push_back(register_piece(static_cast<std::uint16_t>(dwarf_st0 + i), x87_size));
        if (element > x87_size) place.pieces.push_back(padding(element - x87_size));
    }
    return place;
}

bool is_returned_in_memory(const Type &type) {
    return x86::is_record(type) && (type.by_reference || x86::classify(type).is(Class::memory));
}

/// Hands out the places of one call's arguments, in order.
class Arguments {
  public:
    /// `hidden`: the first integer register holds the address where the result is to go.
    /// `lost`: whether it does is not known.
    Arguments(bool hidden, bool lost) : lost_(lost) { order_.next_integer = hidden ? 1 : 0; }

    Place next(const Type *type) {
        if (lost_ || type == nullptr) return lose();
        if (type->by_reference && x86::is_record(*type)) return pointed_to();
        const Classes classes = x86::classify(*type);
        if (classes.unknown) return lose();
        if (classes.empty()) return empty_place(*type);
        if (type->kind == Type::Kind::integer && type->size == 2 * eightbyte && type->alignment == eightbyte)
            return two_words();
        switch (classes.of[0]) {
        case Class::memory:
        case Class::x87:
        case Class::complex_x87: return on_stack(*type);
        default: return fits(classes, order_) ? in_registers(*type, classes, order_) : on_stack(*type);
        }
    }

  private:
    Place lose(const char *why = "where such a type is passed is not known") {
        if (!lost_) {
            lost_ = true;
            return Place::not_known(why);
        }
        return Place::not_known("where a parameter before it is passed is not known");
    }

    /// The object that a pointer argument, made by the compiler, points to.
    Place pointed_to() {
        if (order_.next_integer < order_.integer.size())
            return Place::at_register(order_.integer[order_.next_integer++], 0);
        Place place = Place::at_register(dwarf_sp, take_stack(eightbyte, eightbyte));
        place.pieces[0].ops.push_back({Op::Code::deref, 8, 0, 0});
        return place;
    }

    /// An __int128 of early clang's: each half wherever the next word goes.
    Place two_words() {
        Place place;
        for (int half = 0; half < 2; ++half) {
            if (order_.next_integer < order_.integer.size()) {
                place.pieces.push_back(register_piece(order_.integer[order_.next_integer++], eightbyte));
                continue;
            }
            place.pieces.push_back(Place::at_register(dwarf_sp, take_stack(eightbyte, eightbyte)).pieces[0]);
            place.pieces.back().size = eightbyte;
        }
        return place;
    }

    Place on_stack(const Type &type) {
        const std::uint64_t at = next_on_stack(x86::alignment_of(type));
        if (at != next_on_stack(x86::largest_alignment_of(type)))
            return lose("the debug information does not say how it is aligned");
        return Place::at_register(dwarf_sp, take_stack(type.size, x86::alignment_of(type)));
    }

    std::uint64_t next_on_stack(std::uint64_t alignment) const {
        const std::uint64_t step = std::max(alignment, eightbyte);
        return (stack_ + step - 1) / step * step;
    }

    /// Offset from sp at the function's first instruction, where the return address lies below the arguments.
    std::int64_t take_stack(std::uint64_t size, std::uint64_t alignment) {
        constexpr std::uint64_t return_address_size = 8;
        const std::uint64_t at = next_on_stack(alignment);
        stack_ = at + (size + eightbyte - 1) / eightbyte * eightbyte;
        return static_cast<std::int64_t>(at + return_address_size);
    }

    RegisterOrder order_{integer_registers, sse_registers};
    std::uint64_t stack_ = 0; // bytes taken of the argument area
    bool lost_;
};

} // namespace

std::vector<Place> X86_64::parameter_places(std::span<const Type *const> parameters, const Type *result) {
    const bool is_unknown = result != nullptr && (x86::is_lone_float(*result) ||
                                                  (x86::is_record(*result) && x86::classify(*result).unknown));
    Arguments arguments(result != nullptr && is_returned_in_memory(*result), is_unknown);
    std::vector<Place> places;
    places.reserve(parameters.size());
    for (const Type *type : parameters) places.push_back(arguments.next(type));
    return places;
}

Place X86_64::result_place(const Type *result) {
    static constexpr std::uint16_t result_registers[] = {dwarf_ax, dwarf_dx};
    if (result == nullptr || result->kind == Type::Kind::void_)
        return Place::unavailable("the function returns nothing");
    if (x86::is_lone_float(*result)) return Place::not_known("compilers return it in different ways");
    if (is_returned_in_memory(*result)) return Place::at_register(dwarf_ax, 0);
    const Classes classes = x86::classify(*result);
    if (classes.unknown) return Place::not_known("where such a type is returned is not known");
    if (classes.empty()) return empty_place(*result);
    if (classes.is(Class::complex_x87)) return in_x87(*result, 2);
    if (classes.is(Class::x87)) return in_x87(*result, 1);
    if (classes.is(Class::memory)) return Place::at_register(dwarf_ax, 0);
    RegisterOrder order{result_registers, 2};
    return in_registers(*result, classes, order);
}

/// rax rbx rcx rdi rsi r8 r9 r10 r11, xmm0 to xmm14.
std::vector<Place> X86_64::go_result_places(std::span<const Type *const> results) {
    static constexpr std::uint16_t integers[] = {0, 3, 2, 5, 4, 8, 9, 10, 11};
    static constexpr std::uint16_t floats[] = {17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31};
    return go_results(results, integers, floats);
}

namespace {

/// Prefixes that may stand before VEX and EVEX: segments, and the size of addresses.
bool is_prefix(std::uint8_t byte) {
    constexpr std::uint8_t prefixes[] = {0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65, 0x67};
    return std::find(std::begin(prefixes), std::end(prefixes), byte) != std::end(prefixes);
}

/// Instructions on general registers that are coded with VEX, too: BMI1 and BMI2 (Intel SDM vol. 2, appendix A.3).
bool is_general(std::uint8_t map, std::uint8_t opcode) {
    return (map == 2 && opcode >= 0xf2 && opcode <= 0xf7) || (map == 3 && opcode == 0xf0);
}

/// Of the vectors that a processor needs to have for one instruction.
std::uint64_t width_of(std::span<const std::byte> instruction) {
    std::size_t at = 0;
    auto byte = [&](std::size_t behind) {
        return at + behind < instruction.size() ? static_cast<std::uint8_t>(instruction[at + behind]) : std::uint8_t{0};
    };
    while (at < instruction.size() && is_prefix(byte(0))) ++at;
    constexpr std::uint8_t evex = 0x62, vex3 = 0xc4, vex2 = 0xc5, map_bits = 0x1f;
    if (byte(0) == evex) return 64;
    if (byte(0) == vex2) return 32;
    return byte(0) == vex3 && !is_general(byte(1) & map_bits, byte(3)) ? 32 : 16;
}

} // namespace

std::uint64_t X86_64::widest_vector(std::span<const std::byte> code) {
    std::uint64_t widest = 16;
    x86::Insn insn;
    while (!code.empty() && x86::decode(code, insn) == x86::Decode::ok) {
        widest = std::max(widest, width_of(code.first(insn.length)));
        code = code.subspan(insn.length);
    }
    return widest;
}

} // namespace ktrace::arch
