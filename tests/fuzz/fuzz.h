// Shared by the fuzz harnesses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>

namespace ktrace::fuzz {

inline std::string_view text(const std::uint8_t *data, std::size_t size) {
    return {reinterpret_cast<const char *>(data), size};
}

inline std::span<const std::byte> bytes(const std::uint8_t *data, std::size_t size) {
    return std::as_bytes(std::span(data, size));
}

/// A condition that holds for every input.
inline void require(bool holds) {
    if (!holds) std::abort();
}

/// Takes numbers from the front of the input; zero when it is used up.
template <class T> T take(std::span<const std::byte> &rest) {
    T value{};
    for (std::size_t i = 0; i < sizeof value && !rest.empty(); i++, rest = rest.subspan(1))
        value |= static_cast<T>(static_cast<T>(rest[0]) << (8 * i));
    return value;
}

} // namespace ktrace::fuzz
