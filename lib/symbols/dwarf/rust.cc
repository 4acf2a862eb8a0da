// Rust's calling convention (dwarf_rust.h). A scalar is passed as C does it; a pair of scalars as these two, where C
// puts both into memory as soon as one register is too few, or packs them into one; larger values are passed by a
// pointer. Nothing distinguishes `extern "C"` functions from others, so only the parts that both conventions share are
// used.
#include "symbols/dwarf/rust.h"

#include "arch/host.h"

namespace ktrace::symbols {

namespace {

using value::Piece;
using value::Place;
using value::Type;
using Kind = value::Type::Kind;

constexpr std::uint64_t word_size = 8;
constexpr int deepest = 8, most_members = 1000; // enough for what is not malformed

/// The form in which a value is passed: its parts, or its address.
enum class Passed : std::uint8_t { unknown, nothing, scalar, pair, address };

Type word_of(std::uint64_t size) {
    Type type;
    type.kind = Kind::integer;
    type.size = size;
    return type;
}

/// True for what goes into one general register. A function itself, of which nothing is passed, is described as a
/// pointer to it.
bool is_word(const Type &type) {
    if (type.kind == Kind::pointer && type.target != nullptr && type.target->kind == Kind::function) return false;
    switch (type.kind) {
    case Kind::bool_:
    case Kind::char_:
    case Kind::integer:
    case Kind::enumeration:
    case Kind::pointer:
    case Kind::reference: return type.size > 0 && type.size <= word_size;
    default: return false;
    }
}

bool is_float(const Type &type) { return type.kind == Kind::floating && (type.size == 4 || type.size == 8); }

/// True for a member in which nothing is: a marker, a variant without fields (which is described as large as the
/// others).
bool is_empty(const Type &type) {
    return type.size == 0 || (type.kind == Kind::structure && !type.incomplete && type.members.empty());
}

/// True where a value is one word, whatever is around that: NonNull, Option<&T>.
bool wraps_word(const Type &type, int depth, int &budget) {
    if (is_word(type)) return true;
    if (type.kind != Kind::structure || type.size > word_size || depth > deepest) return false;
    bool found = false;
    for (const value::Member &member : type.members) {
        if (member.is_static) continue;
        if (member.type == nullptr || --budget < 0) return false;
        if (is_empty(*member.type)) continue;
        if (member.type->size != type.size || !wraps_word(*member.type, depth + 1, budget)) return false;
        found = true;
    }
    return found;
}

bool wraps_word(const Type &type) {
    int budget = most_members;
    return wraps_word(type, 0, budget);
}

/// True where a value is two words, each of which C has in a register of its own: &str, &[T], &dyn T.
bool is_pair(const Type &type) {
    if (type.kind != Kind::structure || type.size <= word_size || type.size > 2 * word_size) return false;
    bool first = false, second = false;
    for (const value::Member &member : type.members) {
        if (member.is_static) continue;
        if (member.type == nullptr) return false;
        if (member.type->size == 0) continue;
        bool &half = member.offset == 0 ? first : second;
        if (half || !is_word(*member.type) || member.offset % word_size != 0) return false;
        half = true;
    }
    return first && second;
}

/// By the place that unoptimized code stores it at, which is known: the value, or its address.
Passed passed(const Type *type, Stored stored) {
    if (type == nullptr || type->incomplete) return Passed::unknown;
    if (type->size == 0) return Passed::nothing;
    if (stored == Stored::address || stored == Stored::nothing) return Passed::address;
    if (stored != Stored::value) return Passed::unknown;
    if (is_float(*type) || wraps_word(*type)) return Passed::scalar;
    return is_pair(*type) ? Passed::pair : Passed::unknown;
}

/// For the result: what C returns in memory (true) or in registers (false). nullopt: Rust may do either.
std::optional<bool> returned_in_memory(const Type *result) {
    if (rust_returns_as_c(result, true)) return false;
    if (result->incomplete) return std::nullopt;
    if (result->size <= word_size) return false;
    if (result->size > 2 * word_size) return true;
    return std::nullopt;
}

/// Types of the first parameters as far as it is known how they are passed, each scalar for itself.
std::vector<Type> scalars_of(const Function &function, const std::vector<Passed> &ways) {
    std::vector<Type> scalars;
    for (std::size_t i = 0; i < ways.size() && ways[i] != Passed::unknown; ++i) {
        const Type &type = *function.parameters[i].type;
        if (ways[i] == Passed::scalar) scalars.push_back(is_float(type) ? type : word_of(type.size));
        if (ways[i] == Passed::address || ways[i] == Passed::pair) scalars.push_back(word_of(word_size));
        if (ways[i] == Passed::pair) scalars.push_back(word_of(type.size - word_size));
    }
    return scalars;
}

std::vector<Place> places_of(const std::vector<Type> &scalars, bool result_in_memory) {
    std::vector<const Type *> types;
    for (const Type &scalar : scalars) types.push_back(&scalar);
    Type result;
    result.kind = result_in_memory ? Kind::structure : Kind::void_;
    result.by_reference = result_in_memory;
    return arch::Host::parameter_places(types, &result);
}

bool is_register(const Place &place) {
    return place.why.empty() && place.pieces.size() == 1 && place.pieces[0].kind == Piece::Kind::register_;
}

/// Where one of them has no register, C has both in memory, and which of the two ways it is is not known.
std::optional<Place> joined(const Place &first, const Place &second) {
    if (!is_register(first) || !is_register(second)) return std::nullopt;
    Place place = first;
    place.pieces[0].size = word_size;
    place.pieces.push_back(second.pieces[0]);
    return place;
}

std::optional<Place> pointed_to(const Place &address) {
    if (!is_register(address)) return std::nullopt;
    return Place::at_register(address.pieces[0].reg, 0);
}

} // namespace

std::vector<std::optional<Place>> rust_places(const Function &function, const std::vector<Dwarf_Die> &parameters,
                                              Dwarf_Die die) {
    std::vector<std::optional<Place>> places(parameters.size());
    auto in_memory = returned_in_memory(function.result);
    // Closures have what they capture in front, which is no parameter in the debug information.
    if (!in_memory || function.name.starts_with("{")) return places;
    std::vector<Passed> ways;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        const Type *type = function.parameters[i].type;
        Stored stored = stored_in_frame(parameters[i], die);
        // Optimized code, whose debug information has all that is known.
        if (stored == Stored::unknown && (type == nullptr || type->size != 0)) return places;
        ways.push_back(passed(type, stored));
    }
    auto scalars = places_of(scalars_of(function, ways), *in_memory);
    auto next = scalars.begin();
    for (std::size_t i = 0; i < places.size() && ways[i] != Passed::unknown; ++i) {
        if (ways[i] == Passed::nothing) continue;
        const Place &first = *next++;
        if (ways[i] == Passed::scalar) places[i] = first;
        if (ways[i] == Passed::address) places[i] = pointed_to(first);
        if (ways[i] == Passed::pair) places[i] = joined(first, *next++);
        if (!places[i]) break;
    }
    return places;
}

bool rust_returns_as_c(const Type *result, bool whole) {
    if (result == nullptr) return true;
    if (result->incomplete) return false;
    if (result->size == 0 || is_float(*result) || wraps_word(*result)) return true;
    bool is_wide = result->kind == Kind::integer && result->size == 2 * word_size;
    return whole && (is_wide || is_pair(*result));
}

} // namespace ktrace::symbols
