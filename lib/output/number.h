// Numbers: the bytes of a scalar in the target become numbers of ours, and numbers become digits.
//
// Invariants: values are little endian, as on both ISAs; no locale is ever asked; a missing byte counts as zero.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "value/type.h"

namespace ktrace::output {

// The widest integers of C: __int128 is an extension, and its own name says so.
__extension__ using Unsigned128 = unsigned __int128;
__extension__ using Signed128 = __int128;

/// The unsigned value of up to 16 bytes.
Unsigned128 load_unsigned(std::span<const std::byte> bytes);

/// The same with the sign of the topmost of its `bits` (1 to 128).
Signed128 extend_sign(Unsigned128 value, unsigned bits);

/// The `bit_size` bits from `bit_offset` on (little endian count).
Unsigned128 load_bits(std::span<const std::byte> bytes, std::uint32_t bit_offset, std::uint32_t bit_size);

void append_decimal(std::string &out, Unsigned128 value);
void append_decimal(std::string &out, Signed128 value);
/// 0x and the digits, without leading zeros.
void append_hex(std::string &out, std::uint64_t value);

/// The value of a floating type (2, 4, 8 bytes, x87's 10 in 16, binary128 by its name), as the widest type of ours.
long double load_floating(const value::Type &type, std::span<const std::byte> bytes);

/// The digits of an IEEE 754 decimal number of 4, 8 or 16 bytes, its significand a binary integer (x86-64).
std::string decimal_digits(std::span<const std::byte> bytes);

/// The shortest digits that read back as the same value of a type of `size` bytes; nan, inf, -inf for what is no
/// number.
void append_floating(std::string &out, long double value, std::uint64_t size);

} // namespace ktrace::output
