#include "output/enumeration.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "output/number.h"

namespace ktrace::output {

namespace {

/// Two values of an enumeration are the same where the bits that the type has are: debug information writes the
/// constants of unsigned types with and without a sign.
bool same(const value::Type &type, std::int64_t a, std::int64_t b) {
    unsigned unused = type.size >= 1 && type.size < 8 ? 64 - static_cast<unsigned>(type.size) * 8 : 0;
    return (static_cast<std::uint64_t>(a) ^ static_cast<std::uint64_t>(b)) << unused == 0;
}

bool is_bit(std::int64_t value) { return std::has_single_bit(static_cast<std::uint64_t>(value)); }

/// True where the values follow one another without a gap, as those of an enumeration that counts do.
bool is_counting(const value::Type &type) {
    std::vector<std::int64_t> values;
    for (const value::Enumerator &each : type.enumerators) values.push_back(each.value);
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
    return values.empty() ||
           static_cast<std::uint64_t>(values.back()) - static_cast<std::uint64_t>(values.front()) == values.size() - 1;
}

/// The bits that have names of their own, where the enumeration is a set of flags: at least two single bits, all other
/// values made of them, and not just 0, 1, 2, … Else 0.
std::uint64_t flag_bits(const value::Type &type) {
    std::uint64_t bits = 0;
    for (const value::Enumerator &each : type.enumerators)
        if (is_bit(each.value)) bits |= static_cast<std::uint64_t>(each.value);
    if (std::popcount(bits) < 2 || is_counting(type)) return 0;
    for (const value::Enumerator &each : type.enumerators)
        if ((static_cast<std::uint64_t>(each.value) & ~bits) != 0) return 0;
    return bits;
}

std::uint64_t bits_of(const value::Type &type) {
    return type.size >= 1 && type.size < 8 ? (std::uint64_t{1} << type.size * 8) - 1 : ~std::uint64_t{0};
}

/// The name of a number among the bits of `left`, which is taken out of them. False: it has none.
bool append_field(std::string &out, const value::Member &field, std::uint64_t &left) {
    const std::uint64_t mask = ((std::uint64_t{1} << field.bit_size) - 1) << field.bit_offset;
    for (const value::Enumerator &each : field.type->enumerators) {
        if ((left & mask) != static_cast<std::uint64_t>(each.value)) continue;
        out += each.name;
        left &= ~mask;
        return true;
    }
    return false;
}

} // namespace

bool append_enumerators(std::string &out, const value::Type &type, std::int64_t value) {
    for (const value::Enumerator &each : type.enumerators) {
        if (!type.members.empty() || !same(type, each.value, value)) continue;
        out += each.name;
        return true;
    }
    auto left = static_cast<std::uint64_t>(value) & bits_of(type);
    const char *separator = "";
    for (const value::Member &field : type.members)
        if (append_field(out, field, left)) separator = "|";
    if (*separator != 0 && left == 0) return true;
    if ((left & flag_bits(type)) == 0 && *separator == 0) return false;
    for (const value::Enumerator &each : type.enumerators) {
        if (!is_bit(each.value) || (left & static_cast<std::uint64_t>(each.value)) == 0) continue;
        out += separator;
        out += each.name;
        separator = "|";
        left &= ~static_cast<std::uint64_t>(each.value);
    }
    if (left != 0) {
        out += separator;
        append_hex(out, left);
    }
    return true;
}

} // namespace ktrace::output
