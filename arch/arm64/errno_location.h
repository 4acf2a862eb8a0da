// arm64's answers to isa_errno.h.
#pragma once

#include "arm64/arm64.h"
#include "isa_errno.h"

namespace ktrace::arch {

struct Arm64Errno {
    static std::optional<ErrnoOffset> offset(std::span<const std::byte> code, VirtAddr at);
    static std::optional<std::uint16_t> thread_pointer() { return arm64_dwarf::tpidr; }
};

static_assert(Errno<Arm64Errno>);

} // namespace ktrace::arch
