// Classes of values in the x86-64 System V psABI (3.2.3): what psabi.cc finds places by.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "value/type.h"

namespace ktrace::arch::x86 {

inline constexpr std::uint64_t eightbyte = 8, most_eightbytes = 8; // a __m512

enum class Class : std::uint8_t { none, integer, sse, sseup, x87, x87up, complex_x87, memory };

/// The classes of an object's eightbytes.
struct Classes {
    std::array<Class, most_eightbytes> of = {};
    std::size_t count = 0;
    bool unknown = false; // the debug information does not have it
    bool is(Class wanted) const { return count != 0 && of[0] == wanted; }
    /// True for a value without contents, of which nothing is passed (an empty class).
    bool empty() const {
        for (std::size_t i = 0; i < count; ++i)
            if (of[i] != Class::none) return false;
        return !unknown;
    }
};

/// The classes of a value passed by value. MEMORY and COMPLEX_X87 stand in the first eightbyte for the whole.
Classes classify(const value::Type &type);

/// The alignment of a value in memory, bytes: the declared one, else the natural one as far as the layout does not
/// disprove it (packed).
std::uint64_t alignment_of(const value::Type &type);

/// The same if a declared alignment that is less than a member's is without effect: it is the type's own where that is
/// packed, which the debug information does not say.
std::uint64_t largest_alignment_of(const value::Type &type);

bool is_record(const value::Type &type); // a struct, class or union
/// A vector of a single float or double, which gcc and clang pass and return in different ways.
bool is_lone_float(const value::Type &type);

} // namespace ktrace::arch::x86
