// Where AAPCS64 (6.8.2, stages A to C, and 6.9) puts the parameters and the result of a function, for typed values.
//
// Invariant: once a parameter's type is not known, neither is the place of those behind it; they are said to be
// unavailable.
#include "arm64/arm64.h"

#include <algorithm>

#include "go_results.h"

namespace ktrace::arch {

namespace {

using value::Member;
using value::Op;
using value::Piece;
using value::Place;
using value::Type;
using Kind = Type::Kind;

constexpr unsigned argument_registers = 8;   // x0-x7, and v0-v7
constexpr std::uint16_t indirect_result = 8; // x8

std::uint64_t round_up(std::uint64_t value, std::uint64_t to) { return (value + to - 1) / to * to; }

bool is_composite(const Type &type) {
    return type.kind == Kind::structure || type.kind == Kind::union_ || type.kind == Kind::complex;
}

/// An empty struct of C, which is not passed.
Place no_contents() {
    Place place;
    place.pieces.emplace_back().kind = Piece::Kind::bytes;
    return place;
}

bool is_short_vector(const Type &type) {
    return type.kind == Kind::array && type.is_vector && (type.size == 8 || type.size == 16);
}

/// How many types may still be looked at: crafted debug information may nest types in themselves.
constexpr int enough_types = 1000;

std::uint64_t natural_alignment(const Type &type, int &types_left);

/// The alignment that a member of this type has by its declaration.
std::uint64_t declared_alignment(const Type &type, int &types_left) {
    return type.alignment != 0 ? type.alignment : natural_alignment(type, types_left);
}

std::uint64_t natural_alignment(const Type &type, int &types_left) {
    std::uint64_t alignment = 1;
    if (--types_left < 0) return alignment;
    switch (type.kind) {
    case Kind::structure:
    case Kind::union_:
        for (const Member &member : type.members)
            if (!member.is_static && member.type != nullptr)
                alignment = std::max(alignment, declared_alignment(*member.type, types_left));
        return alignment;
    case Kind::array:
        if (is_short_vector(type)) return type.size;
        return type.target != nullptr ? declared_alignment(*type.target, types_left) : alignment;
    case Kind::complex: return std::max<std::uint64_t>(1, type.size / 2);
    default: return std::clamp<std::uint64_t>(type.size, 1, 16);
    }
}

/// AAPCS64 5.9: of a composite, the greatest of its members', whatever the composite itself asks for.
std::uint64_t natural_alignment(const Type &type) {
    int types_left = enough_types;
    return natural_alignment(type, types_left);
}

/// The common type of a homogeneous aggregate's members: vectors of one size are alike, whatever is in them.
struct Homogeneous {
    std::uint64_t element_size = 0; // 0: none seen yet
    std::uint64_t count = 0;
    bool is_of_vectors = false;
};

bool is_empty_base(const Member &member) {
    return member.is_base && member.type != nullptr && member.type->members.empty();
}

/// Adds the elements of a type; false where one is neither a floating-point number nor a vector, or differs in kind or
/// size.
bool add_elements(const Type &type, Homogeneous &sum, int &types_left) {
    if (--types_left < 0) return false;
    auto add = [&](std::uint64_t size, std::uint64_t count, bool are_vectors = false) {
        const bool is_first = sum.element_size == 0;
        if (size == 0 || (!is_first && (sum.element_size != size || sum.is_of_vectors != are_vectors))) return false;
        sum.element_size = size;
        sum.is_of_vectors = are_vectors;
        sum.count += count;
        return true;
    };
    switch (type.kind) {
    case Kind::floating: return add(type.size, 1);
    case Kind::complex: return type.target != nullptr && type.target->kind == Kind::floating && add(type.size / 2, 2);
    case Kind::array: {
        if (type.is_vector) return is_short_vector(type) && add(type.size, 1, true);
        Homogeneous element{sum.element_size, 0, sum.is_of_vectors};
        if (type.target == nullptr || type.count == 0 || !add_elements(*type.target, element, types_left)) return false;
        if (element.count == 0) return true; // of empty structs
        return add(element.element_size, element.count * std::min<std::uint64_t>(type.count, 5), element.is_of_vectors);
    }
    case Kind::structure:
    case Kind::union_: {
        std::uint64_t before = sum.count, most = 0;
        for (const Member &member : type.members) {
            if (member.is_static || is_empty_base(member)) continue;
            if (type.kind == Kind::union_) sum.count = before;
            if (member.type == nullptr || !add_elements(*member.type, sum, types_left)) return false;
            most = std::max(most, sum.count);
        }
        if (type.kind == Kind::union_) sum.count = std::max(before, most);
        return true;
    }
    default: return false;
    }
}

/// The elements of a homogeneous aggregate of floating-point numbers or vectors (AAPCS64 5.9.5): one to four alike, and
/// nothing else.
std::optional<Homogeneous> homogeneous(const Type &type) {
    Homogeneous sum;
    int types_left = enough_types;
    if (!is_composite(type) || !add_elements(type, sum, types_left)) return std::nullopt;
    if (sum.count < 1 || sum.count > 4 || sum.count * sum.element_size != type.size) return std::nullopt;
    return sum;
}

/// `count` registers from `first` on, `each` bytes in each, `size` bytes in all.
Place in_registers(unsigned first, unsigned count, std::uint64_t each, std::uint64_t size) {
    if (count == 1) return Place::in_register(static_cast<std::uint16_t>(first));
    Place place;
    for (unsigned i = 0; i < count; ++i) {
        Piece piece;
        piece.kind = Piece::Kind::register_;
        piece.reg = static_cast<std::uint16_t>(first + i);
        piece.size = static_cast<std::uint32_t>(std::min(each, size - i * each));
        place.pieces.push_back(piece);
    }
    return place;
}

/// Pointers, which debug information may leave without a size; C++'s nullptr_t, which it gives as an unspecified type.
bool is_address(const Type &type) {
    return type.kind == Kind::pointer || type.kind == Kind::reference ||
           (type.kind == Kind::unknown && type.name.find("nullptr") != std::string::npos);
}

bool size_is_known(const Type &type) {
    if (is_address(type)) return true;
    if (type.incomplete) return false;
    return type.size != 0 || type.kind == Kind::structure || type.kind == Kind::union_;
}

std::uint64_t size_of(const Type &type) { return is_address(type) && type.size == 0 ? 8 : type.size; }

/// The state of stage C: the next general and SIMD register and the next stacked argument.
class Allocation {
  public:
    Place next(const Type *type) {
        if (type == nullptr || lost_ || !(type->by_reference || size_is_known(*type))) {
            lost_ = true;
            return Place::not_known(
                "the debug information does not give the size of this parameter or of one before it");
        }
        if (type->by_reference) return by_pointer();
        if (type->kind == Kind::array && type->is_vector && type->size < 8) {
            lost_ = true;
            return Place::not_known("vectors of less than 8 bytes have no place in AAPCS64");
        }
        if (type->size == 0 && is_composite(*type)) return no_contents();
        if (type->kind == Kind::floating || is_short_vector(*type)) return simd(1, type->size, type->size, type->size);
        if (auto elements = homogeneous(*type))
            return simd(static_cast<unsigned>(elements->count), elements->element_size, type->size,
                        natural_alignment(*type));
        if (type->size > 16) return by_pointer(); // B.4
        return general(size_of(*type), natural_alignment(*type));
    }

  private:
    Place simd(unsigned count, std::uint64_t each, std::uint64_t size, std::uint64_t alignment) { // C.1 to C.6
        if (simd_ + count <= argument_registers) {
            unsigned first = arm64_dwarf::v0 + simd_;
            simd_ += count;
            return in_registers(first, count, each, size);
        }
        simd_ = argument_registers;
        return stacked(size, alignment);
    }

    Place general(std::uint64_t size, std::uint64_t alignment) { // C.9 to C.17
        auto words = static_cast<unsigned>(round_up(size, 8) / 8);
        if (alignment >= 16) general_ = static_cast<unsigned>(round_up(general_, 2));
        if (general_ + words <= argument_registers) {
            unsigned first = arm64_dwarf::x0 + general_;
            general_ += words;
            return in_registers(first, words, 8, size);
        }
        general_ = argument_registers;
        return stacked(size, alignment);
    }

    Place stacked(std::uint64_t size, std::uint64_t alignment) {
        stack_ = round_up(stack_, alignment >= 16 ? 16 : 8);
        auto offset = static_cast<std::int64_t>(stack_);
        stack_ += round_up(size, 8);
        return Place::at_register(arm64_dwarf::sp, offset);
    }

    /// A copy of the caller's, whose address is passed.
    Place by_pointer() {
        Place place = general(8, 8);
        Piece &piece = place.pieces[0];
        if (piece.kind == Piece::Kind::register_) return Place::at_register(piece.reg, 0);
        piece.ops.push_back({.code = Op::Code::deref});
        return place;
    }

    unsigned general_ = 0, simd_ = 0; // NGRN, NSRN
    std::uint64_t stack_ = 0;         // NSAA - sp
    bool lost_ = false;
};

} // namespace

std::vector<Place> Arm64::parameter_places(std::span<const Type *const> parameters, const Type *) {
    // The result takes no parameter register: its address is in x8.
    Allocation allocation;
    std::vector<Place> places;
    places.reserve(parameters.size());
    for (const Type *type : parameters) places.push_back(allocation.next(type));
    return places;
}

Place Arm64::result_place(const Type *result) {
    if (result == nullptr || result->kind == Kind::void_) return Place::unavailable("the function returns nothing");
    bool in_memory = result->by_reference || (result->size > 16 && !homogeneous(*result));
    if (!in_memory) return Allocation().next(result);
    Place place;
    place.pieces.emplace_back().ops.push_back(
        {.code = Op::Code::entry_register, .size = 8, .reg = indirect_result, .operand = 0});
    return place;
}

/// R0 to R15, F0 to F15.
std::vector<Place> Arm64::go_result_places(std::span<const Type *const> results) {
    static constexpr std::uint16_t integers[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    static constexpr std::uint16_t floats[] = {64, 65, 66, 67, 68, 69, 70, 71, 72, 73, 74, 75, 76, 77, 78, 79};
    return go_results(results, integers, floats);
}

} // namespace ktrace::arch
