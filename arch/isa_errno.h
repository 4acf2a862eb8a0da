// THE CONTRACT of an instruction set for errno: where a thread has it, by the code of the C library's __errno_location,
// which is a constant, or a number in a slot that the loader fills, plus the thread pointer. All pure, as isa.h.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/addr.h"

namespace ktrace::arch {

/// From the thread pointer to errno: `offset`, or where there is a slot the signed number of 64 bits in it.
struct ErrnoOffset {
    std::int64_t offset = 0;
    std::optional<VirtAddr> slot = {};
};

template <class E>
concept Errno = requires(std::span<const std::byte> code, VirtAddr at) {
    // By the code of __errno_location, which begins at `at`. Nothing: it is not of a known form.
    { E::offset(code, at) } -> std::same_as<std::optional<ErrnoOffset>>;
    // The DWARF number of the register that holds the thread pointer. Nothing: it is not among the Registers.
    { E::thread_pointer() } -> std::same_as<std::optional<std::uint16_t>>;
};

} // namespace ktrace::arch
