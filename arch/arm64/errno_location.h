// arm64's answers to isa_errno.h: the thread pointer, TPIDR_EL0, is not among the Registers.
#pragma once

#include "isa_errno.h"

namespace ktrace::arch {

struct Arm64Errno {
    static std::optional<ErrnoOffset> offset(std::span<const std::byte>, VirtAddr) { return std::nullopt; }
    static std::optional<std::uint16_t> thread_pointer() { return std::nullopt; }
};

static_assert(Errno<Arm64Errno>);

} // namespace ktrace::arch
