// The types that expressions have without any debug information, and C's rules about types (C11 6.3.1, 6.5).
#pragma once

#include <cstdint>
#include <string_view>

#include "value/type.h"

namespace ktrace::program::types {

using value::Type;

extern const Type int8, int16, int32, int64, uint8, uint16, uint32, uint64;
extern const Type character, boolean, float32, float64, void_type;
/// Types that only expressions have: the text of comm or str(), the bytes of buf(), a stack, a caller,
/// an address that is shown by its name.
extern const Type text, buffer, stack, caller, symbol;
/// A text by a pointer and a length of 8 bytes each, which the compiler passes apart (Fortran).
extern const Type counted_text;

/// A built-in type by name: `int32`, `uint8_t`, `unsigned long`, `double`, …; nullptr: none of these.
const Type *named(std::string_view name);

bool is_integer(const Type &type);  // bool, char, enum included; at most 64 bits
bool is_floating(const Type &type); // float, double, long double
bool is_pointer(const Type &type);
bool is_scalar(const Type &type);    // one of the above
bool is_object(const Type &type);    // struct, union, array, and what does not fit in a slot
bool is_record(const Type &type);    // struct, class, union
bool is_char(const Type &type);      // char, signed char, unsigned char
bool is_wide_char(const Type &type); // wchar_t, char16_t, char32_t
bool is_signed(const Type &type);

/// The integer promotions: what C computes a small integer as.
const Type &promoted(const Type &type);
/// The usual arithmetic conversions: what C computes two numbers as.
const Type &common(const Type &a, const Type &b);

} // namespace ktrace::program::types
