// Floats: all that the machine does with floating point, apart from the rest: only this uses its registers, which the
// agent keeps for the program before.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ktrace::program {

/// The bits of a double that has the value of `size` bytes: of a float, a double, or the target's long double.
std::uint64_t double_bits(const std::byte *bytes, std::size_t size);

/// The bits of the float nearest to a double.
std::uint32_t float_bits(std::uint64_t double_bits);

} // namespace ktrace::program
