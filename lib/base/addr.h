// Addresses in a tracee. A VirtAddr is a place in one address space; a place in a file is a ModuleAddr (symbols/).
#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace ktrace {

/// An address in the address space of a traced process. Never an address of ktrace's own.
struct VirtAddr {
    std::uint64_t value = 0;

    constexpr VirtAddr() = default;
    constexpr explicit VirtAddr(std::uint64_t v) : value(v) {}

    constexpr auto operator<=>(const VirtAddr &) const = default;
    constexpr explicit operator bool() const { return value != 0; }

    constexpr VirtAddr operator+(std::int64_t by) const { return VirtAddr{value + static_cast<std::uint64_t>(by)}; }
    constexpr VirtAddr operator-(std::int64_t by) const { return VirtAddr{value - static_cast<std::uint64_t>(by)}; }
    constexpr std::int64_t operator-(VirtAddr other) const { return static_cast<std::int64_t>(value - other.value); }
};

} // namespace ktrace

template <> struct std::hash<ktrace::VirtAddr> {
    std::size_t operator()(ktrace::VirtAddr a) const noexcept { return std::hash<std::uint64_t>{}(a.value); }
};
