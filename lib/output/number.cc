#include "output/number.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

namespace ktrace::output {

namespace {

std::span<const std::byte> at_most(std::span<const std::byte> bytes, std::size_t size) {
    return bytes.first(std::min(bytes.size(), size));
}

/// IEEE 754 binary interchange formats that no type of ours holds: one sign bit, then the exponent, then the fraction.
long double interchange(Unsigned128 bits, int exponent_bits, int fraction_bits) {
    bool negative = ((bits >> (exponent_bits + fraction_bits)) & 1) != 0;
    int bias = (1 << (exponent_bits - 1)) - 1;
    int exponent = static_cast<int>((bits >> fraction_bits) & static_cast<unsigned>((1 << exponent_bits) - 1));
    Unsigned128 fraction = bits & ((Unsigned128{1} << fraction_bits) - 1);
    long double magnitude = 0;
    if (exponent == (1 << exponent_bits) - 1) {
        magnitude = fraction != 0 ? static_cast<long double>(NAN) : static_cast<long double>(INFINITY);
    } else {
        Unsigned128 whole = exponent == 0 ? fraction : fraction | (Unsigned128{1} << fraction_bits);
        magnitude = std::ldexp(static_cast<long double>(whole), std::max(exponent, 1) - bias - fraction_bits);
    }
    return negative ? -magnitude : magnitude;
}

template <class Float> long double as_is(std::span<const std::byte> bytes) {
    Float value = 0;
    std::memcpy(&value, bytes.data(), std::min(bytes.size(), sizeof value));
    return static_cast<long double>(value);
}

template <class Float> void append_shortest(std::string &out, Float value) {
    char digits[64];
    out.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
}

} // namespace

Unsigned128 load_unsigned(std::span<const std::byte> bytes) {
    Unsigned128 value = 0;
    bytes = at_most(bytes, sizeof value);
    for (std::size_t i = bytes.size(); i-- > 0;) value = value << 8 | std::to_integer<unsigned>(bytes[i]);
    return value;
}

Signed128 extend_sign(Unsigned128 value, unsigned bits) {
    if (bits == 0 || bits >= 128) return static_cast<Signed128>(value);
    unsigned unused = 128 - bits;
    return static_cast<Signed128>(value << unused) >> unused;
}

Unsigned128 load_bits(std::span<const std::byte> bytes, std::uint32_t bit_offset, std::uint32_t bit_size) {
    std::size_t first = std::min<std::size_t>(bit_offset / 8, bytes.size());
    Unsigned128 value = load_unsigned(bytes.subspan(first)) >> (bit_offset % 8);
    return bit_size < 128 ? value & ((Unsigned128{1} << bit_size) - 1) : value;
}

void append_decimal(std::string &out, Unsigned128 value) {
    char digits[40];
    char *end = digits + sizeof digits;
    char *begin = end;
    do {
        *--begin = static_cast<char>('0' + static_cast<int>(value % 10));
        value /= 10;
    } while (value != 0);
    out.append(begin, end);
}

void append_decimal(std::string &out, Signed128 value) {
    if (value < 0) out += '-';
    append_decimal(out, value < 0 ? 0 - static_cast<Unsigned128>(value) : static_cast<Unsigned128>(value));
}

void append_hex(std::string &out, std::uint64_t value) {
    char digits[16];
    out += "0x";
    out.append(digits, std::to_chars(digits, digits + sizeof digits, value, 16).ptr);
}

long double load_floating(const value::Type &type, std::span<const std::byte> bytes) {
    bytes = at_most(bytes, static_cast<std::size_t>(type.size));
    switch (type.size) {
    case 2: {
        bool brain = type.name.find("bf16") != std::string::npos || type.name.find("bfloat16") != std::string::npos;
        return interchange(load_unsigned(bytes), brain ? 8 : 5, brain ? 7 : 10);
    }
    case 4: return as_is<float>(bytes);
    case 8: return as_is<double>(bytes);
    default: break;
    }
    bool quad = type.name.find("loat128") != std::string::npos;
    return quad ? interchange(load_unsigned(bytes), 15, 112) : as_is<long double>(bytes);
}

void append_floating(std::string &out, long double value, std::uint64_t size) {
    if (std::isnan(value))
        out += "nan";
    else if (std::isinf(value))
        out += value < 0 ? "-inf" : "inf";
    else if (size <= 4)
        append_shortest(out, static_cast<float>(value));
    else if (size == 8)
        append_shortest(out, static_cast<double>(value));
    else
        append_shortest(out, value);
}

namespace {

// Decimal floating point numbers (IEEE 754-2008, 3.5.2; the binary encoding of the significand).

struct Layout {
    unsigned bits, significand_bits; // of the first form
    int bias;
};

Layout layout_of(std::size_t size) {
    if (size == 4) return {32, 23, 101};
    if (size == 8) return {64, 53, 398};
    return {128, 113, 6176};
}

/// `significand` x 10^exponent as people write it.
std::string written(Unsigned128 significand, int exponent) {
    std::string digits;
    append_decimal(digits, significand);
    const auto count = static_cast<int>(digits.size());
    constexpr int most_zeros = 6;
    if (exponent >= 0 && exponent <= most_zeros)
        return significand == 0 ? digits : digits + std::string(static_cast<std::size_t>(exponent), '0');
    if (exponent < 0 && -exponent < count) return digits.insert(static_cast<std::size_t>(count + exponent), ".");
    if (exponent < 0 && -exponent < count + most_zeros)
        return "0." + std::string(static_cast<std::size_t>(-exponent - count), '0') + digits;
    const int first = exponent + count - 1;
    if (count > 1) digits.insert(1, ".");
    return digits + 'e' + (first < 0 ? '-' : '+') + std::to_string(first < 0 ? -first : first);
}

} // namespace

std::string decimal_digits(std::span<const std::byte> bytes) {
    const Layout layout = layout_of(bytes.size());
    const Unsigned128 value = load_unsigned(bytes), one = 1;
    auto field = [&](unsigned first, unsigned count) { return value >> first & ((one << count) - 1); };
    const std::string sign = field(layout.bits - 1, 1) != 0 ? "-" : "";
    const auto top = static_cast<unsigned>(field(layout.bits - 6, 5)); // behind the sign
    if (top == 0x1f) return "nan";
    if (top == 0x1e) return sign + "inf";
    const unsigned exponent_bits = layout.bits - 1 - layout.significand_bits;
    const bool is_large = top >> 3 == 3; // two bits more, the significand begins with 100
    const unsigned significand_bits = is_large ? layout.significand_bits - 2 : layout.significand_bits;
    Unsigned128 significand = field(0, significand_bits);
    if (is_large) significand |= one << layout.significand_bits;
    return sign + written(significand, static_cast<int>(field(significand_bits, exponent_bits)) - layout.bias);
}

} // namespace ktrace::output
