// x86-64's answers to isa_errno.h: the forms that glibc and musl have, in libraries and in static programs.
#pragma once

#include "isa_errno.h"

namespace ktrace::arch {

struct X86_64Errno {
    static std::optional<ErrnoOffset> offset(std::span<const std::byte> code, VirtAddr at);
    static std::optional<std::uint16_t> thread_pointer() { return 58; } // fs.base
};

static_assert(Errno<X86_64Errno>);

} // namespace ktrace::arch
