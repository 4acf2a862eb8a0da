// Bytes: reading numbers and strings out of bytes that may be crafted. Every read is checked against the span.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>

namespace ktrace::symbols {

/// The part [offset, offset + size) of `bytes`; nothing where it does not lie within them.
inline std::optional<std::span<const std::byte>> part(std::span<const std::byte> bytes, std::uint64_t offset,
                                                      std::uint64_t size) {
    if (offset > bytes.size() || size > bytes.size() - offset) return std::nullopt;
    return bytes.subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(size));
}

/// The T at `offset`, at any alignment, in the host's byte order.
template <class T> std::optional<T> load(std::span<const std::byte> bytes, std::uint64_t offset) {
    static_assert(std::is_trivially_copyable_v<T>);
    auto from = part(bytes, offset, sizeof(T));
    if (!from) return std::nullopt;
    T value;
    std::memcpy(&value, from->data(), sizeof(T));
    return value;
}

/// The string at `offset` that ends with a NUL within `bytes`; empty where there is none.
inline std::string_view string_at(std::span<const std::byte> bytes, std::uint64_t offset) {
    if (offset >= bytes.size()) return {};
    const auto *from = reinterpret_cast<const char *>(bytes.data()) + offset;
    const void *end = std::memchr(from, 0, bytes.size() - static_cast<std::size_t>(offset));
    if (!end) return {};
    return {from, static_cast<std::size_t>(static_cast<const char *>(end) - from)};
}

} // namespace ktrace::symbols
