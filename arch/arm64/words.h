// A64 words in bytes: instructions are little endian, whatever the data is.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace ktrace::arch {

/// The word at `offset`; the caller has seen that there are four bytes.
inline std::uint32_t a64_word(std::span<const std::byte> code, std::size_t offset = 0) {
    std::uint32_t word = 0;
    for (std::size_t i = 0; i < 4; ++i) word |= std::to_integer<std::uint32_t>(code[offset + i]) << (8 * i);
    return word;
}

constexpr std::array<std::byte, 4> a64_bytes(std::uint32_t word) {
    return {std::byte(word & 0xff), std::byte(word >> 8 & 0xff), std::byte(word >> 16 & 0xff), std::byte(word >> 24)};
}

} // namespace ktrace::arch
