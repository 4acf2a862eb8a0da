// Instructions of this host's set.
#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <span>

#include "arch/host.h"

namespace ktrace::engine::test {

using Instruction = std::array<unsigned char, 4>;

inline constexpr bool is_x86 = arch::Host::longest > 4;
inline constexpr Instruction jump = is_x86 ? Instruction{0xeb, 0x10} : Instruction{0x10, 0, 0, 0x14}; // emulated

inline constexpr Instruction subtract = // from the stack pointer
    is_x86 ? Instruction{0x48, 0x83, 0xec, 0x08} : Instruction{0xff, 0x43, 0x00, 0xd1};

/// Is there a trap?
inline bool is_trap(const void *at) {
    const std::span<const std::byte> trap = arch::Host::trap_bytes();
    return std::memcmp(at, trap.data(), trap.size()) == 0;
}

} // namespace ktrace::engine::test
